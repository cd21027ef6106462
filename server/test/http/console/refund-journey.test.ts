/** A buyer pays, and the owner gives the money back with the wallet in their browser: half, then the rest, and no more. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { insertSettler } from '../../../src/payments/settlers/rows.ts'
import { fundedKey, openEvm } from '../../support/chain/evm.ts'
import { newPayer, paymentHeader } from '../../support/chain/evm-payment.ts'
import { openClient, startWork, untilReady } from '../../support/client.ts'
import { until } from '../../support/until.ts'
import { giveWallets, openBrowser } from '../page/support/browser.ts'
import { openConsole, openInvitedStore } from './support/console.ts'
import { openDevice } from './support/device.ts'

test('an owner refunds half with the wallet in the browser, then the rest, and a third time is refused in words', async () => {
  const { url, store, payment, wallet, stranger, chain, payer, browser } = await openPaidShop()
  const { page, complaints } = await openDevice(browser)
  const signed = await giveWallets(page.context(), chain.url, [
    { key: stranger.key, name: 'Other Wallet' },
    { key: wallet.key, chainId: 1 },
  ])
  await page.goto(payment.link)
  await page.getByRole('button', { name: 'passkey' }).click()
  await page.waitForURL(/\/stores\/|\/account/)
  await page.goto(`${url}/stores/${store.id}/checkouts/${payment.checkoutId}`)
  await page.getByRole('link', { name: 'Refund up to 10.00 USDC' }).click()
  await page.getByLabel('Amount in USDC').fill('5')
  await page.getByLabel('Reason').fill('Half of it was missing')
  await page.getByRole('button', { name: 'Continue' }).click()

  // A wallet without the account that was paid signs nothing, and nothing is handed out to it.
  await page.getByRole('button', { name: 'Sign with Other Wallet' }).click()
  await page.getByText('This wallet does not offer the account that received the money.').waitFor()
  assert.equal((await payment.prepared()).length, 0)
  await signAndWait(page)
  assert.equal(await chain.balance(payer.address), 5_000_000n)

  await page.getByRole('link', { name: payment.paymentId }).click()
  await page.getByRole('link', { name: 'Refund up to 5.00 USDC' }).click()
  assert.equal(await page.getByLabel('Amount in USDC').inputValue(), '5.00')
  await page.getByRole('button', { name: 'Continue' }).click()
  await signAndWait(page)
  assert.equal(await chain.balance(payer.address), 10_000_000n)
  assert.equal(await chain.balance(wallet.address), 0n)
  for (const typed of signed) {
    const { message, domain } = JSON.parse(typed)
    assert.deepEqual([message.to, message.value, domain.chainId], [payer.address, '5000000', 8453])
  }
  assert.equal(signed.length, 2)

  await page.goto(`${url}/stores/${store.id}/payments/${payment.paymentId}/refund`)
  await page.getByText('All of this payment has been refunded').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Continue' }).count(), 0)
  await page.goto(`${url}/stores/${store.id}/refunds`)
  assert.equal(await page.getByText('Done', { exact: true }).count(), 2)
  assert.deepEqual(complaints, [])
})

async function signAndWait(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign with Fox Wallet' }).click()
  const [done, refused] = [
    page.getByText('The buyer has the money.'),
    page.locator('#unsigned:not([hidden])'),
  ]
  await done.or(refused).first().waitFor()
  if (await refused.isVisible()) assert.fail((await refused.textContent()) ?? '')
}

/** A store that is paid 10 on a chain, with its work going on, and the payment final. */
async function openPaidShop() {
  const chain = await openEvm({ network: 'BASE_MAINNET', blockTimeSeconds: 1 })
  const { caip2, id, witnessesMin } = chain.network
  const urls = Array.from({ length: witnessesMin }, (_, i) => `node-${i + 1}=${chain.url}`).join(',')
  const { farthing, url, app } = await openConsole({
    listens: true,
    settings: { NETWORKS: id, [`${id}_RPC_URLS`]: urls, ECB_RATES_URL: '', EXCHANGE_RATES_URL: '' },
  })
  const { db } = farthing.ctx
  const signer = openSigner(fundedKey(1))
  await insertSettler(db, caip2, signer.address, 0)
  const [wallet, payer, stranger] = [newPayer(), newPayer(), newPayer()]
  const options = { mode: 'live', evmWallet: wallet.address } as const
  const { store, link } = await openInvitedStore({ farthing, url, app }, options)
  await db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  startWork(farthing, [signer])
  await chain.mint(payer.address, 10_000_000n)
  await untilReady(farthing, caip2)
  const client = openClient(farthing, store.key)
  const checkoutId = await client.create('10.00')
  const answer = await client.pay(
    checkoutId,
    await paymentHeader(await client.require(checkoutId), payer.key),
  )
  assert.equal(answer.statusCode, 200, answer.body)
  await chain.mine(10)
  let paymentId = ''
  await until('the payment is final', async () => {
    const [row] = await db.query<{ id: string }>(
      'select payment_id as id from credits where checkout_id = $1 and finalized_at is not null',
      [checkoutId],
    )
    paymentId = row?.id ?? ''
    return paymentId !== ''
  })
  const prepared = () => db.query(`select 1 as one from authorizations where refund_id is not null`)
  const payment = { checkoutId, paymentId, link, prepared }
  return { url, store, wallet, stranger, payer, chain, payment, browser: await openBrowser() }
}
