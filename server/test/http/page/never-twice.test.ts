import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { encodeFunctionData } from 'viem'
import { letTimePass, setStatus } from '../../support/by-hand.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { payTo } from '../../support/shop.ts'
import { until } from '../../support/until.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'

/** Double clicks, second tabs, reloads and mistakes: a buyer pays exactly once, and is never stuck. */
const browser = await openBrowser()
const shop = await openPageShop()

/** An account that the chain node signs for. */
const sender = '0x976EA74026E726554dB657fA54763abd0C3a0aa9'

const state = (page: Page, name: string) => page.locator(`[data-state=${name}]`)
const payWith = (page: Page, name = 'Fox Wallet') => page.getByRole('button', { name: `Pay with ${name}` })
const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
const received = async (page: Page) => await heading(page, 'Payment received')

/** Two clicks with nothing between them, as no person could and every impatient one does. */
const clickTwice = async (page: Page, selector: string) =>
  await page.evaluate(
    `(() => { const one = document.querySelector('${selector}'); one.click(); one.click() })()`,
  )

/** Sends this many units to the store from an ordinary wallet, and returns the transaction's hash. */
async function send(units: bigint): Promise<string> {
  await shop.chain.mint(sender, units)
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
  const { status, transactionHash } = await shop.chain.perform({ to: shop.chain.token, data, from: sender })
  assert.equal(status, 'success')
  return transactionHash
}

/** Nothing on the page can start a payment or reserve an amount for one. */
async function invitesNothing(page: Page): Promise<void> {
  for (const selector of ['#wallets', '#ways', '.tabs', '.apps', '.qr', 'form', 'button:visible'])
    assert.equal(await page.locator(selector).count(), 0, selector)
}

test('two clicks without a gap ask the wallet once and pay once', async () => {
  const payer = await shop.fund()
  const id = await shop.create('7.00')
  const { openCheckout, signed } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  const page = await openCheckout(id)
  await payWith(page).waitFor()
  await clickTwice(page, '#wallets button')
  await received(page)
  assert.equal(signed.length, 1)
  assert.equal(await shop.chain.balance(payer.address), 993_000_000n)
})

test('a buyer who starts over can pay at once, with the same wallet or another', async () => {
  const payer = await shop.fund()
  const { openCheckout } = await openPage(browser, shop, {
    wallets: [
      { key: payer.key, hang: 'eth_requestAccounts' },
      { key: payer.key, name: 'Rabbit Wallet' },
    ],
  })
  const page = await openCheckout(await shop.create('1.00'))
  await payWith(page).click()
  await state(page, 'connecting').waitFor()
  await page.evaluate(
    `(() => { document.querySelector('#back').click(); document.querySelectorAll('#wallets button')[1].click() })()`,
  )
  await received(page)
})

test('two tabs cannot charge twice', async () => {
  const payer = await shop.fund()
  const id = await shop.create('7.00')
  // Two browser contexts, so that one cannot keep the other from signing.
  const sides = await Promise.all(
    [1, 2].map(async () => await openPage(browser, shop, { wallets: [{ key: payer.key }] })),
  )
  const pages = await Promise.all(sides.map(({ openCheckout }) => openCheckout(id)))
  await Promise.all(pages.map((page) => payWith(page).click()))
  await Promise.all(pages.map(received))
  assert.equal(await shop.chain.balance(payer.address), 993_000_000n)

  // In the same browser, the second tab does not even ask the wallet.
  const other = await shop.create('7.00')
  const { openCheckout } = await openPage(browser, shop, {
    wallets: [{ key: payer.key, hang: 'eth_requestAccounts' }],
  })
  const [first, second] = [await openCheckout(other), await openCheckout(other)]
  await payWith(first).click()
  await state(first, 'connecting').waitFor()
  await payWith(second).click()
  await state(second, 'tab').waitFor()
})

test('a reload during settlement still ends in COMPLETED, with one signature', async () => {
  const payer = await shop.fund()
  const id = await shop.create('4.00')
  const { openCheckout, signed } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  const page = await openCheckout(id)
  await payWith(page).click()
  await until('the payment is claimed', async () => (await shop.read(id)).status !== 'OPEN')
  await page.reload()
  await received(page)
  assert.equal(signed.length, 1)
  assert.equal(await shop.chain.balance(payer.address), 996_000_000n)
})

test('a payment that was signed while offline is submitted unchanged when the connection is back', async () => {
  const payer = await shop.fund()
  const id = await shop.create('4.00')
  const { openCheckout, signed, context } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  const page = await openCheckout(id)
  await page.route('**/pay/*', (route) =>
    route.request().method() === 'POST' ? route.abort('internetdisconnected') : route.continue(),
  )
  await payWith(page).click()
  await state(page, 'offline').waitFor()
  assert(await page.locator('#ways').isHidden())
  await page.unroute('**/pay/*')
  await received(page)
  assert.equal(signed.length, 1)
  await context.close()
})

test('a page that was tampered with asks for no signature, because it would sign something other than it shows', async () => {
  const payer = await shop.fund()
  const { openCheckout, signed } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  for (const tamper of [
    "document.querySelector('[data-amount]').textContent = '0.01'",
    "document.querySelector('[data-address] span').textContent = '0x00'",
    "document.querySelector('[data-network]').textContent = 'Elsewhere'",
  ]) {
    const page = await openCheckout(await shop.create('1.00'))
    await page.evaluate(tamper)
    await payWith(page).click()
    await state(page, 'changed').waitFor()
  }
  assert.deepEqual(signed, [])
})

test('page updates are fetched one at a time, so an older one never replaces a newer one', async () => {
  const payer = await shop.fund()
  const id = await shop.create('1.00')
  const { openCheckout } = await openPage(browser, shop, { wallets: [{ key: payer.key }] })
  const page = await openCheckout(id)
  const isPaid = page.waitForResponse((answer) => answer.request().method() === 'POST' && answer.ok())
  let [under, most, fetched] = [0, 0, 0]
  await page.route(`**/pay/${id}`, async (route) => {
    if (route.request().method() !== 'GET') return await route.continue()
    fetched++
    most = Math.max(most, ++under)
    // The first fetch starts when the payment is claimed and is held until it is settled, when the next one is due.
    await isPaid
    await page.evaluate('new Promise((resolve) => setTimeout(resolve))')
    under--
    await route.continue()
  })
  await payWith(page).click()
  await received(page)
  assert(fetched > 0)
  assert.equal(most, 1)
})

test('two clicks on a choice or a form, in two tabs, reserve one amount, and both tabs show it', async () => {
  const id = await shop.create('8.00')
  const { openCheckout, complaints } = await openPage(browser, shop)
  const [page, other] = [await openCheckout(id), await openCheckout(id, '?way=send')]
  await page
    .getByRole('button', { name: 'Pay from an exchange' })
    .or(page.locator('.tabs a').last())
    .first()
    .waitFor()
  await clickTwice(page, '.tabs [data-way=send]')
  await page.getByRole('button', { name: 'Show amount and address' }).waitFor()
  await clickTwice(page, '#send form button')
  const amount = String(await page.locator('.exact b').textContent())
  assert.match(amount, /^8\.00\d+$/)
  assert.equal(await page.locator('.price b').textContent(), amount)
  await other.locator('.exact b').waitFor()
  assert.equal(await other.locator('.exact b').textContent(), amount)
  await page.reload()
  assert.equal(await page.locator('.exact b').textContent(), amount)
  assert.deepEqual(complaints, [])
})

test('a buyer who sends the price and not the exact amount is told what arrived and what was expected, and nothing invites a second payment', async () => {
  const id = await shop.create('8.00')
  const { openCheckout } = await openPage(browser, shop)
  const [page, other] = [await openCheckout(id, '?way=send'), await openCheckout(id)]
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  const amount = String(await page.locator('.exact b').textContent())
  await page.getByLabel('Transaction hash').fill(await send(8_000_000n))
  await page.getByRole('button', { name: 'Find my payment' }).click()
  await heading(page, 'The store needs to look at your transfer')
  await heading(other, 'The store needs to look at your transfer')
  for (const tab of [page, other]) {
    await tab
      .getByText(`8.00 USDC arrived; ${amount} USDC was expected. We’ve told the store. They will decide.`)
      .waitFor()
    assert.equal(await tab.locator('.price b').textContent(), amount)
    await invitesNothing(tab)
  }
  // If the store dismisses it, for example because it has sent the money back, the order can be paid again.
  const headers = { 'x-api-key': shop.key }
  const listed = await shop.request({ url: '/api/v1/payments', headers })
  const { data } = listed.json<{ data: { id: string; hints: { checkoutId: string }[] }[] }>()
  const payment = data.find(({ hints }) => hints.some(({ checkoutId }) => checkoutId === id))
  await shop.request({ method: 'POST', url: `/api/v1/payments/${payment?.id}/dismiss`, headers })
  await heading(other, 'How would you like to pay?')
})

test('while a transaction that the buyer named is looked for, nothing invites a second payment, in any tab, and a wallet’s late signature is not used', async () => {
  const payer = await shop.fund()
  const id = await shop.create('8.00')
  const before = await shop.chain.balance(payTo)
  const { openCheckout } = await openPage(browser, shop, { wallets: [{ key: payer.key, slow: true }] })
  const signing = await openCheckout(id)
  await payWith(signing).click()
  await state(signing, 'signing').waitFor()
  const page = await openCheckout(id, '?way=send')
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  const hash = `0x${'ab'.repeat(32)}`
  await page.getByLabel('Transaction hash').fill(hash)
  await page.getByRole('button', { name: 'Find my payment' }).click()
  for (const tab of [page, signing]) {
    await heading(tab, 'We’re looking for your payment')
    await tab.getByText(hash).waitFor()
    await invitesNothing(tab)
  }
  await signing.evaluate('answerWallet()')
  await page.reload()
  await heading(page, 'We’re looking for your payment')
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.equal(await shop.chain.balance(payTo), before)
  // Whoever named it by mistake is not stuck.
  await page.getByRole('link', { name: 'I haven’t sent anything yet' }).click()
  await page.locator('.exact b').waitFor()
})

for (const [name, close] of [
  ['expired', async (id: string) => await letTimePass(shop, id)],
  ['canceled', async (id: string) => await setStatus(shop, id, 'CANCELED')],
] as const)
  test(`a buyer who sent money to a checkout that is ${name} names it there, and every tab says what arrived and that the store decides`, async () => {
    const id = await shop.create('8.00')
    const { openCheckout } = await openPage(browser, shop)
    await close(id)
    const [page, other] = [await openCheckout(id), await openCheckout(id)]
    const hash = await send(8_000_000n)
    for (const tab of [page, other]) {
      assert.equal(await tab.locator('#wallets, #ways, .tabs, .apps, .qr').count(), 0)
      assert(await tab.getByLabel('Transaction hash').isHidden())
    }
    await page.getByText('I’ve already sent it').click()
    await page.getByLabel('Transaction hash').fill('not a hash')
    await page.getByRole('button', { name: 'Find my payment' }).click()
    await page.getByText('That isn’t a transaction hash.').waitFor()
    await page.getByLabel('Transaction hash').fill(hash)
    await page.getByRole('button', { name: 'Find my payment' }).click()
    const told = /^8\.00 USDC arrived.* We’ve told the store\. They will decide\./
    await page.getByText(told).waitFor()
    await page.getByText(hash).waitFor()
    // One that is closed no longer listens: it looks when it comes to the front, or is loaded.
    await other.reload()
    await other.getByText(told).waitFor()
    assert.notEqual((await shop.read(id)).status, 'COMPLETED')
  })

test('a transaction named on a closed page is looked for in every tab, also one that was opened after', async () => {
  const id = await shop.create('8.00')
  const { openCheckout } = await openPage(browser, shop)
  await setStatus(shop, id, 'CANCELED')
  const [page, other] = [await openCheckout(id), await openCheckout(id)]
  const hash = `0x${'cd'.repeat(32)}`
  await page.getByText('I’ve already sent it').click()
  await page.getByLabel('Transaction hash').fill(hash)
  await page.getByRole('button', { name: 'Find my payment' }).click()
  const later = await openCheckout(id)
  for (const tab of [page, later]) {
    await heading(tab, 'We’re looking for your payment')
    await tab.getByText(hash).waitFor()
    await invitesNothing(tab)
  }
  await other.reload()
  await heading(other, 'We’re looking for your payment')
})
