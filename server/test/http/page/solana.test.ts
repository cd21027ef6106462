import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getTransactionDecoder, type KeyPairSigner } from '@solana/kit'
import type { Page } from 'playwright-core'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { transferWire } from '../../support/chain/svm-payment.ts'
import { svmPayTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { openSvmPageShop } from './support/page-shop.ts'

const browser = await openBrowser()
const shop = await openSvmPageShop()

const payWith = (page: Page, name = 'Moon Wallet') => page.getByRole('button', { name: `Pay with ${name}` })
const received = (page: Page) => page.getByRole('heading', { name: 'Payment received' }).waitFor()
const transfer = async (signer: KeyPairSigner, units: bigint, reference: string) =>
  await shop.chain.rpc('sendTransaction', [
    await transferWire(shop.chain, signer, svmPayTo, units, [reference]),
    { encoding: 'base64', preflightCommitment: 'processed' },
  ])
const state = (page: Page, name: string) => page.locator(`[data-state=${name}]`)

test('a Wallet Standard wallet signs the server’s transaction, pays no fee, and the payment completes', async () => {
  const signer = await shop.chain.payer(20_000_000n)
  const id = await shop.create('12.50')
  const { openCheckout, signed, complaints, requests } = await openPage(browser, shop, {
    standardWallets: [{ signer }],
  })
  const page = await openCheckout(id)
  await payWith(page).click()
  await received(page)
  assert.equal(await shop.chain.balance(signer.address, shop.chain.mint), 7_500_000n)
  assert.equal(await shop.received(), 12_500_000n)
  assert.equal((await shop.read(id)).payment.payer, signer.address)
  assert.equal(signed.length, 1)
  const { signatures } = getTransactionDecoder().decode(Buffer.from(signed[0] ?? '', 'base64'))
  assert.deepEqual(Object.keys(signatures), [shop.signers[0]?.address, signer.address])
  // The payer has no SOL at all.
  const { value } = await shop.chain.rpc<{ value: number }>('getBalance', [signer.address])
  assert.equal(value, 0)
  assert.deepEqual(complaints, [])
  assert(requests.every((url) => url.startsWith(new URL(shop.url).origin)))
})

test('a wallet that is announced late is found, and the buyer can switch from one that does not answer', async () => {
  const signer = await shop.chain.payer()
  const { openCheckout } = await openPage(browser, shop, {
    standardWallets: [
      { signer, hang: 'standard:connect' },
      { signer, name: 'Sun Wallet', late: true },
    ],
  })
  const page = await openCheckout(await shop.create('1.00'))
  await payWith(page).click()
  await state(page, 'connecting').waitFor()
  await page.evaluate('announceStandardWallet()')
  await page.getByRole('button', { name: 'Start over' }).click()
  await payWith(page, 'Sun Wallet').click()
  await received(page)
})

test('a payer who declines, has too little, or whose wallet is on another cluster sees why and is not charged', async () => {
  const signer = await shop.chain.payer()
  const poor = await shop.chain.payer(999_999n)
  const before = await shop.received()
  for (const [wallet, trouble] of [
    [{ signer, refuse: { 'solana:signTransaction': 'User rejected the request.' } }, 'rejected'],
    [{ signer, refuse: { 'standard:connect': 'Something else' } }, 'failed'],
    [{ signer: poor }, 'funds'],
    [{ signer, chains: ['solana:devnet'] }, 'chain'],
  ] as const) {
    const { openCheckout, context } = await openPage(browser, shop, { standardWallets: [wallet] })
    const id = await shop.create('1.00')
    const page = await openCheckout(id)
    await payWith(page).click()
    await state(page, trouble).waitFor()
    if (trouble === 'funds')
      assert.deepEqual(await page.locator('#holder dd:visible').allTextContents(), [
        `${poor.address.slice(0, 6)}…${poor.address.slice(-4)}`,
      ])
    assert.equal((await shop.read(id)).status, 'OPEN')
    await context.close()
  }
  assert.equal(await shop.received(), before)
})

/** From now on, this many payments reach the server when their blockhash has run out. */
function delay(times: number): void {
  let left = times
  shop.chain.meddle(({ method }) => {
    if (method === 'simulateTransaction' && left-- > 0) shop.chain.mine(160)
    return null
  })
}

test('a buyer whose signature came too late is told so and asked again, and pays once', async () => {
  const signer = await shop.chain.payer(2_000_000n)
  const { openCheckout, signed } = await openPage(browser, shop, { standardWallets: [{ signer }] })
  const id = await shop.create('1.00')
  const page = await openCheckout(id)
  await page.evaluate(`globalThis.seen = []
    new MutationObserver(() => seen.push(document.querySelector('[data-state]:not([hidden])')?.dataset.state))
      .observe(document.body, { subtree: true, attributes: true })`)
  delay(1)
  await payWith(page).click()
  await received(page)
  assert.equal(signed.length, 2)
  assert((await page.evaluate<string[]>('seen')).includes('again'))
  assert.equal(await shop.chain.balance(signer.address, shop.chain.mint), 1_000_000n)
})

test('a buyer who is always too late is asked three times, learns why, and is not charged', async () => {
  const signer = await shop.chain.payer(2_000_000n)
  const { openCheckout, signed } = await openPage(browser, shop, { standardWallets: [{ signer }] })
  const id = await shop.create('1.00')
  const page = await openCheckout(id)
  delay(3)
  await payWith(page).click()
  await state(page, 'expired').waitFor()
  assert.equal(signed.length, 3)
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.equal(await shop.chain.balance(signer.address, shop.chain.mint), 2_000_000n)
  await payWith(page).click()
  await received(page)
})

test('an EVM wallet is not offered if the store accepts only Solana', async () => {
  const signer = await shop.chain.payer()
  const { openCheckout } = await openPage(browser, shop, {
    wallets: [{ key: newPayer().key }],
    standardWallets: [{ signer }],
  })
  const page = await openCheckout(await shop.create('1.00'))
  await payWith(page).waitFor()
  assert.equal(await page.locator('#wallets button').count(), 1)
  assert.equal(await page.locator('#networks').count(), 0)
})

test('a Solana Pay transfer is found by its reference, without JavaScript and without our signature', async () => {
  const signer = await shop.chain.payer(20_000_000n)
  await shop.chain.fund(signer.address, { lamports: 1_000_000_000n })
  const id = await shop.create('2.50')
  const { openCheckout } = await openPage(browser, shop, { context: { javaScriptEnabled: false } })
  const page = await openCheckout(id)
  await page.getByRole('link', { name: 'Exchange or other wallet' }).click()
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  const link = (await page.locator('a[href^="solana:"]').getAttribute('href')) ?? ''
  const { protocol, pathname, searchParams } = new URL(link)
  assert.equal(protocol, 'solana:')
  assert.equal(pathname, svmPayTo)
  assert.equal(searchParams.get('amount'), '2.50')
  assert.equal(searchParams.get('spl-token'), shop.chain.mint)
  assert.equal(searchParams.get('label'), 'Shop')
  const reference = searchParams.get('reference') ?? ''
  // Another buyer's checkout with the same price has a different reference.
  const other = await shop.create('2.50')
  const theirs = await openCheckout(other)
  await theirs.getByRole('link', { name: 'Exchange or other wallet' }).click()
  await theirs.getByRole('button', { name: 'Show amount and address' }).click()

  await transfer(signer, 2_500_000n, reference)
  await until('the transfer is found', async () => (await shop.read(id)).status === 'COMPLETED')
  assert.equal((await shop.read(id)).payment.payer, signer.address)
  assert.equal((await shop.read(other)).status, 'OPEN')
  await page.reload()
  await received(page)
  await until('the payment is final', async () => (await shop.read(id)).payment.finality === 'finalized')
})

test('a Solana Pay transfer of too little is shown to the buyer and leaves the checkout open', async () => {
  const signer = await shop.chain.payer(20_000_000n)
  await shop.chain.fund(signer.address, { lamports: 1_000_000_000n })
  const id = await shop.create('3.00')
  const { openCheckout } = await openPage(browser, shop, {})
  const page = await openCheckout(id)
  await page.getByRole('link', { name: 'Exchange or other wallet' }).click()
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  const link = (await page.locator('a[href^="solana:"]').getAttribute('href')) ?? ''
  const reference = new URL(link).searchParams.get('reference') ?? ''
  await transfer(signer, 1_000_000n, reference)
  await page.getByText('1.00 USDC arrived; 3.00 USDC was expected.').waitFor()
  assert.equal((await shop.read(id)).status, 'OPEN')
})

test('if the store accepts both families, the buyer chooses, and the choice is remembered', async () => {
  const both = await openSvmPageShop({ isOnEvm: true })
  const signer = await both.chain.payer()
  const { openCheckout, complaints } = await openPage(browser, both, {
    wallets: [{ key: newPayer().key, name: 'Fox Wallet' }],
    standardWallets: [{ signer }],
  })
  const page = await openCheckout(await both.create('1.00'))
  await payWith(page, 'Fox Wallet').waitFor()
  assert.equal(await payWith(page).count(), 0)
  await page.getByRole('link', { name: 'Local Solana chain' }).click()
  await payWith(page).waitFor()
  assert.equal(await payWith(page, 'Fox Wallet').count(), 0)

  const again = await openCheckout(await both.create('1.00'))
  await payWith(again).click()
  await received(again)
  assert.deepEqual(complaints, [])

  // For a transfer the buyer chooses the network first; only then is there an amount and an address.
  const sending = await openCheckout(await both.create('1.00'), '?way=send')
  assert.equal(await sending.locator('.address').count(), 0)
  await sending.getByRole('button', { name: 'Local Solana chain' }).click()
  await sending.locator('a[href^="solana:"]').waitFor({ state: 'attached' })
  assert.equal(await sending.locator('.address').count(), 1)
  await sending.getByRole('link', { name: 'Use another network' }).click()
  await sending.getByRole('button', { name: 'Local chain', exact: true }).click()
  await sending.locator('a[href^="solana:"]').waitFor({ state: 'detached' })
  await sending.locator('.exact').waitFor()
  assert.equal(await sending.locator('.address').count(), 1)

  // A browser that has lost its Solana wallet since then still finds the one it has.
  const fox = await openPage(browser, both, { wallets: [{ key: newPayer().key, name: 'Fox Wallet' }] })
  const network = await again.evaluate("localStorage.getItem('farthing network')")
  assert.match(String(network), /^solana:/)
  await fox.context.addInitScript(`localStorage.setItem('farthing network', '${network}')`)
  await payWith(await fox.openCheckout(await both.create('1.00')), 'Fox Wallet').waitFor()
})
