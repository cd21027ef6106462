import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { unitsToText } from '../../../src/money.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { payTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'

/** An account that the chain node signs for. */
const sender = '0x976EA74026E726554dB657fA54763abd0C3a0aa9'

const browser = await openBrowser()
const shop = await openPageShop()

test('without JavaScript the page shows amount, status, QR code, wallet app links, and address and amount on request', async () => {
  const id = await shop.create('12.50')
  const { openCheckout } = await openPage(browser, shop, { context: { javaScriptEnabled: false } })
  const page = await openCheckout(id)
  await page.getByText('$12.50').waitFor()
  await page.getByText('12.50 USDC · Base').waitFor()
  await page.getByRole('img', { name: 'QR code of the address of this page' }).waitFor()
  assert.equal(
    await page.getByRole('link', { name: 'MetaMask' }).getAttribute('href'),
    `https://link.metamask.io/dapp/${shop.url.replace('http://', '')}/${id}`,
  )
  assert.equal(
    await page.getByRole('link', { name: 'Coinbase Wallet' }).getAttribute('href'),
    `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(`${shop.url}/${id}`)}`,
  )
  for (const name of ['Phantom', 'Trust Wallet', 'OKX Wallet'])
    assert(await page.getByRole('link', { name }).isVisible())
  assert.match(String(await page.locator('noscript').textContent()), /Your browser does not run JavaScript/)
  assert.equal(await page.locator('button:visible').count(), 0, 'a button is visible that would do nothing')

  await page.getByText('Send it yourself').click()
  await page.getByRole('button', { name: 'Show address and amount' }).click()
  await page.getByText('Send USDC on Base only.').waitFor()
  const [row] = await shop.ctx.db.query<{ amount: string }>(
    'select amount::text as amount from reserved_amounts where checkout_id = $1',
    [id],
  )
  assert(row)
  assert.equal(await page.locator('.exact').textContent(), `${unitsToText(BigInt(row.amount), 6)} USDC`)
  assert.equal(await page.locator('.transfer .address').textContent(), payTo)

  await page.getByLabel('Transaction hash').fill(`0x${'ab'.repeat(32)}`)
  await page.getByRole('button', { name: 'Look for it' }).click()
  await page.locator('.notice').waitFor()

  const payer = await shop.fund()
  const answer = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  await page.reload()
  await page.getByRole('heading', { name: 'Payment received' }).waitFor()
})

test('after a plain transfer of the exact amount the page turns into a receipt without a reload', async () => {
  const id = await shop.create('3.00')
  const { openCheckout, complaints } = await openPage(browser, shop)
  const page = await openCheckout(id)
  await page.getByText('Send it yourself').click()
  await page.getByRole('button', { name: 'Show address and amount' }).click()
  const amount = String(await page.locator('.exact b').textContent())
  const copied = await page.getByRole('button', { name: 'Copy: Exact amount' }).getAttribute('data-copy')
  assert.equal(copied, amount)
  const value = BigInt(amount.replace('.', '').padEnd(7, '0'))
  await shop.chain.mint(sender, value)
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, value] })
  assert.equal((await shop.chain.perform({ to: shop.chain.token, data, from: sender })).status, 'success')
  await page.getByRole('heading', { name: 'Payment received' }).waitFor()
  await until('the checkout is completed', async () => (await shop.read(id)).status === 'COMPLETED')
  assert.deepEqual(complaints, [])
})
