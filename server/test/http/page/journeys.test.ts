import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { payTo } from '../../support/shop.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'

/** Complete payments, from opening the page to the receipt, in a real browser with a chain. */
const browser = await openBrowser()
const shop = await openPageShop()

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true })
const state = (page: Page, name: string) => page.locator(`[data-state=${name}]`)
const payWith = (page: Page, name = 'Fox Wallet') => page.getByRole('button', { name: `Pay with ${name}` })
const received = (page: Page) => heading(page, 'Payment received').waitFor()
const paidTo = async () => await shop.chain.balance(payTo)

test('a wallet on another chain that does not know Base is switched to it, signs once, and the payment completes', async () => {
  const payer = await shop.fund()
  const id = await shop.create('12.50', { successRedirectUrl: 'https://shop.example/thanks?order=1#top' })
  const { openCheckout, signed, complaints, requests } = await openPage(browser, shop, {
    wallets: [{ key: payer.key, chainId: 1, known: [1] }],
  })
  const page = await openCheckout(id)
  await payWith(page).click()
  await received(page)
  assert.equal((await shop.read(id)).status, 'COMPLETED')
  assert.equal(await shop.chain.balance(payer.address), 987_500_000n)
  assert.equal(signed.length, 1)
  const { domain, message } = JSON.parse(signed[0] ?? '')
  assert.deepEqual(domain, {
    name: 'USD Coin',
    version: '2',
    chainId: 8453,
    verifyingContract: shop.chain.token,
  })
  assert.equal(message.to, payTo)
  assert.equal(message.value, '12500000')
  assert.match(message.nonce, /^0x66746867/)
  const calls: string[] = await page.evaluate('walletCalls')
  assert.deepEqual(
    calls.filter((method) => method.startsWith('wallet_')),
    ['wallet_switchEthereumChain', 'wallet_addEthereumChain', 'wallet_switchEthereumChain'],
  )
  const back = page.getByRole('link', { name: 'Back to shop.example' })
  assert.equal(await back.getAttribute('href'), `https://shop.example/thanks?order=1&checkoutId=${id}#top`)
  assert.equal(await page.evaluate('document.activeElement.id'), 'status')
  assert.deepEqual(complaints, [])
  assert(
    requests.every((url) => url.startsWith(shop.url) || url.startsWith('data:')),
    requests.join(' '),
  )
})

test('a wallet that is announced late is found, and the payment needs only the keyboard', async () => {
  const payer = await shop.fund()
  const id = await shop.create('3.00')
  const { openCheckout, complaints } = await openPage(browser, shop, {
    wallets: [{ key: payer.key, late: true }],
  })
  const page = await openCheckout(id)
  await page.getByText('We found no wallet in this browser.').waitFor()
  await page.evaluate('announceWallet()')
  await payWith(page).waitFor()
  const focused = async () => await page.evaluate('document.activeElement.textContent')
  for (let presses = 0; (await focused()) !== 'Pay with Fox Wallet'; presses++) {
    assert(presses < 20, 'the button cannot be reached by Tab')
    await page.keyboard.press('Tab')
  }
  await page.keyboard.press('Enter')
  await received(page)
  assert.equal(await shop.chain.balance(payer.address), 997_000_000n)
  assert.deepEqual(complaints, [])
})

test('a wallet that only sets window.ethereum can pay', async () => {
  const payer = await shop.fund()
  const { openCheckout } = await openPage(browser, shop, { wallets: [{ key: payer.key, isLegacy: true }] })
  const page = await openCheckout(await shop.create('2.00'))
  await payWith(page, 'browser wallet').click()
  await received(page)
  assert.equal(await shop.chain.balance(payer.address), 998_000_000n)
})

test('a contract wallet (ERC-1271) can pay', async () => {
  const owner = newPayer()
  const account = await shop.chain.deploy('OwnedWallet', [owner.address])
  await shop.chain.mint(account, 5_000_000n)
  const { openCheckout } = await openPage(browser, shop, { wallets: [{ key: owner.key, account }] })
  const page = await openCheckout(await shop.create('5.00'))
  await payWith(page).click()
  await received(page)
  assert.equal(await shop.chain.balance(account), 0n)
})

test('a smart wallet that wraps its signature (ERC-6492) is told if it is not active yet, and pays once it is', async () => {
  const owner = newPayer()
  const { address: account, ...wrapper } = await shop.chain.foresee(owner.address)
  await shop.chain.mint(account, 5_000_000n)
  const id = await shop.create('5.00')
  const { openCheckout, signed } = await openPage(browser, shop, {
    wallets: [{ key: owner.key, account, wrapper }],
  })
  const page = await openCheckout(id)
  await payWith(page).click()
  await state(page, 'undeployed').getByText('Your smart wallet isn’t active on Base yet').waitFor()
  assert(await page.getByRole('link', { name: 'Exchange or other wallet' }).isVisible())
  assert.equal(await shop.chain.balance(account), 5_000_000n)
  await shop.chain.perform({ to: wrapper.factory, data: wrapper.calldata })
  await payWith(page).click()
  await received(page)
  assert.equal(await shop.chain.balance(account), 0n)
  assert.equal(signed.length, 2)
})

test('a second tab is updated live', async () => {
  const payer = await shop.fund()
  const id = await shop.create('1.00')
  const { openCheckout } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  const watching = await (await openPage(browser, shop)).openCheckout(id)
  const page = await openCheckout(id)
  await payWith(page).click()
  await received(page)
  await received(watching)
})

test('a payer who declines, has too little, or whose smart account cannot sign sees why and is not charged', async () => {
  const payer = await shop.fund()
  const id = await shop.create('1.00')
  const before = await paidTo()

  const declining = await openPage(browser, shop, {
    wallets: [{ key: payer.key, refuse: { eth_signTypedData_v4: 4001 } }],
  })
  const declined = await declining.openCheckout(id)
  await payWith(declined).click()
  await state(declined, 'rejected').getByText('You declined the request in your wallet.').waitFor()
  assert(await payWith(declined).isVisible())

  const short = newPayer()
  await shop.chain.mint(short.address, 240_000n)
  const poor = await openPage(browser, shop, { wallets: [{ key: short.key }] })
  const refused = await poor.openCheckout(id)
  await payWith(refused).click()
  await state(refused, 'funds').getByText('doesn’t have 1.00 USDC on Base').waitFor()
  assert.deepEqual(await refused.locator('#holder dd:visible').allTextContents(), [
    `${short.address.slice(0, 6)}…${short.address.slice(-4)}`,
    '0.24 USDC',
  ])
  assert.equal(poor.signed.length, 0)

  // The payer signs, but the contract at the address does not accept the signature.
  const account = await shop.chain.deploy('OwnedWallet', [newPayer().address])
  await shop.chain.mint(account, 5_000_000n)
  const smart = await openPage(browser, shop, { wallets: [{ key: payer.key, account }] })
  const unsupported = await smart.openCheckout(id)
  await payWith(unsupported).click()
  await state(unsupported, 'smart').getByText('choose “Exchange or other wallet”').waitFor()
  assert(await unsupported.getByRole('link', { name: 'Exchange or other wallet' }).isVisible())

  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.equal(await paidTo(), before)
})

test('the page says when the wallet already has a request open, and lets the buyer leave one that does not answer', async () => {
  const { key } = await shop.fund()
  const id = await shop.create('1.00')
  const busy = await openPage(browser, shop, { wallets: [{ key, refuse: { eth_requestAccounts: -32002 } }] })
  const page = await busy.openCheckout(id)
  await payWith(page).click()
  await state(page, 'pending').waitFor()

  const silent = await openPage(browser, shop, {
    wallets: [
      { key, hang: 'eth_requestAccounts' },
      { key, name: 'Rabbit Wallet' },
    ],
  })
  const waiting = await silent.openCheckout(id)
  await payWith(waiting).click()
  await state(waiting, 'connecting').waitFor()
  await waiting.getByRole('button', { name: 'Start over' }).click()
  await payWith(waiting, 'Rabbit Wallet').click()
  await received(waiting)
})

test('a buyer who sees the payment complete is sent back to the store, unless they choose to stay', async () => {
  const payer = await shop.fund()
  const { openCheckout, context } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  await context.route('https://shop.example/**', (route) => route.fulfill({ body: 'the shop' }))
  const more = { successRedirectUrl: 'https://shop.example/thanks' }
  const [leaving, staying] = [await shop.create('1.00', more), await shop.create('1.00', more)]

  const page = await openCheckout(leaving)
  await payWith(page).click()
  await received(page)
  await page.waitForURL(`https://shop.example/thanks?checkoutId=${leaving}`)

  const other = await openCheckout(staying)
  await payWith(other).click()
  await received(other)
  await other.getByRole('button', { name: 'Stay here' }).click()
  await other.locator('#leaving').waitFor({ state: 'hidden' })

  // A receipt that is opened later does not redirect.
  const old = await openCheckout(leaving)
  await received(old)
  assert(await old.locator('#leaving').isHidden())
})
