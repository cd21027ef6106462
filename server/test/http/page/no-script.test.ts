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

test('without JavaScript a buyer chooses a way by its link, and sees its QR code, app links, or address and amount', async () => {
  const id = await shop.create('12.50')
  const { openCheckout } = await openPage(browser, shop, { context: { javaScriptEnabled: false } })
  const page = await openCheckout(id)
  await page.getByText('12.50 USDC', { exact: true }).waitFor()
  assert.match(String(await page.locator('noscript').textContent()), /needs JavaScript/)
  assert.equal(await page.locator('button:visible').count(), 0, 'a button is visible that would do nothing')

  await page.getByRole('link', { name: 'Phone', exact: true }).click()
  await page.getByRole('img', { name: 'QR code that opens this page' }).waitFor()
  const links = page.locator('.apps a')
  assert.deepEqual(await links.allTextContents(), [
    'MetaMask',
    'Coinbase Wallet',
    'Phantom',
    'Trust Wallet',
    'OKX Wallet',
  ])
  assert.equal(
    await links.nth(0).getAttribute('href'),
    `https://link.metamask.io/dapp/${shop.url.replace('http://', '')}/${id}`,
  )
  assert.equal(
    await links.nth(1).getAttribute('href'),
    `https://go.cb-w.com/dapp?cb_url=${encodeURIComponent(`${shop.url}/${id}`)}`,
  )

  await page.getByRole('link', { name: 'Exchange or other wallet' }).click()
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  await page.getByText('Send only USDC, and only on Base.').waitFor()
  const [row] = await shop.ctx.db.query<{ amount: string }>(
    'select amount::text as amount from reserved_amounts where checkout_id = $1',
    [id],
  )
  assert(row)
  assert.equal(await page.locator('.exact').textContent(), `${unitsToText(BigInt(row.amount), 6)} USDC`)
  assert.equal(await page.locator('.transfer .address').textContent(), payTo)

  assert.equal(await page.locator('.price').textContent(), `${unitsToText(BigInt(row.amount), 6)} USDC`)

  // The answer is ours, in the page's language, and not the browser's.
  for (const text of ['', '0x12']) {
    await page.getByLabel('Transaction hash').fill(text)
    await page.getByRole('button', { name: 'Find my payment' }).click()
    await page.locator('.notice').getByText('That isn’t a transaction hash.').waitFor()
  }
  await page.getByLabel('Transaction hash').fill(`0x${'ab'.repeat(32)}`)
  await page.getByRole('button', { name: 'Find my payment' }).click()
  await page.getByRole('heading', { name: 'We’re looking for your payment' }).waitFor()

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
  await page.getByRole('link', { name: 'Exchange or other wallet' }).click()
  await page.getByRole('button', { name: 'Show amount and address' }).click()
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
