import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { updateStore } from '../../../src/stores/update.ts'
import { numberAll, tell } from '../../checkouts/buyer-receipts/support/receipts.ts'
import { completeByHand, letTimePass, setStatus } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { operator } from '../../support/operator.ts'
import { payTo } from '../../support/shop.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { openPageShop } from './support/page-shop.ts'

/** What a buyer sees in each way to pay, on a desk and on a phone. */
const browser = await openBrowser()
const shop = await openPageShop()

const phone: BrowserContextOptions = {
  viewport: { width: 390, height: 720 },
  hasTouch: true,
  isMobile: true,
}
const tab = (page: Page, name: string) => page.locator('.tabs').getByRole('link', { name, exact: true })
/** What people see, without what is hidden. */
const seen = async (page: Page) => String(await page.evaluate('document.body.innerText'))
const amountsIn = (text: string) => new Set(text.match(/\d+\.\d+(?= USDC)/g))
const addressesIn = async (page: Page) =>
  new Set((await page.locator('.address:visible').allTextContents()).map((text) => text))

test('each way shows one amount, one address and one instruction, and only where it is true that no network fee is paid', async () => {
  const id = await shop.create('8.00')
  const { openCheckout, requests, complaints } = await openPage(browser, shop, {
    wallets: [{ key: newPayer().key }],
  })
  const page = await openCheckout(id)
  const loads = () => requests.filter((url) => url.startsWith(`${shop.url}/assets`)).length
  await page.getByRole('button', { name: 'Pay with Fox Wallet' }).waitFor()
  for (const [name, title] of [
    ['Browser wallet', 'Pay with a wallet in this browser'],
    ['Phone', 'Pay with your phone'],
  ] as const) {
    await tab(page, name).click()
    await page.getByRole('heading', { name: title }).waitFor()
    await page.waitForFunction("document.activeElement?.id === 'way'")
    const text = await seen(page)
    assert.deepEqual([...amountsIn(text)], ['8.00'])
    assert.deepEqual([...(await addressesIn(page))], [payTo])
    assert.equal(text.match(/You pay no network fee/g)?.length, 1)
    assert.equal(await page.locator('.way h3:visible').count(), 1)
  }
  await tab(page, 'Exchange or other wallet').click()
  await page.getByRole('button', { name: 'Show amount and address' }).waitFor()
  // Nothing to send yet, so nobody sends the price.
  assert.equal((await addressesIn(page)).size, 0)
  assert.equal(loads(), 1, 'the ways are switched without loading the page again')
  await page.getByRole('button', { name: 'Show amount and address' }).click()
  await page.getByRole('heading', { name: 'Send exactly this amount to this address' }).waitFor()
  const text = await seen(page)
  const [amount = '', ...others] = amountsIn(text)
  assert.match(amount, /^8\.00\d+$/)
  assert.deepEqual(others, [])
  assert.equal(await page.locator('.price b').textContent(), amount)
  assert.deepEqual([...(await addressesIn(page))], [payTo])
  assert.doesNotMatch(text, /network fee|8\.00 USDC|\$8/)
  assert.match(await page.title(), new RegExp(`^Pay ${amount} USDC`))
  assert.deepEqual(complaints, [])
})

test('the price in the order’s currency comes first, what the wallet moves is below it, and one line says what USDC is', async () => {
  const id = await shop.create('44.30')
  await shop.ctx.db.query(
    `update checkouts set price_currency = 'EUR', rate = '{"perBase":"1","usdPerBase":"1.0834"}' where id = $1`,
    [id],
  )
  const { openCheckout } = await openPage(browser, shop)
  const page = await openCheckout(id)
  assert.equal(await page.locator('.price').textContent(), '€44.30')
  assert.equal(await page.locator('.on').textContent(), '44.30 USDC on Base')
  const text = await seen(page)
  assert.equal(text.match(/€44\.30/g)?.length, 1)
  assert.match(text, /1 EUR = 1\.0834 USDC/)
  assert.equal(text.match(/USDC is a digital dollar/g)?.length, 1)
  assert.match(await page.title(), /^Pay €44\.30 to /)
})

test('a phone without a wallet turns to the wallet apps, unless the buyer has chosen a way', async () => {
  const id = await shop.create('8.00')
  for (const [search, wallets, isTurned] of [
    ['', [], true],
    ['?way=wallet', [], false],
    ['', [{ key: newPayer().key }], false],
  ] as const) {
    const { openCheckout, context } = await openPage(browser, shop, { context: phone, wallets: [...wallets] })
    await context.clock.install()
    const page = await openCheckout(id, search)
    await page.locator('#wallet').waitFor()
    const loaded = isTurned && page.waitForResponse((answer) => answer.url().includes('way=phone'))
    await page.clock.runFor(5_000)
    await loaded
    await page.locator(isTurned ? '#phone .apps' : '#wallet').waitFor()
    assert.equal(await page.locator('#phone').count(), isTurned ? 1 : 0)
    await context.close()
  }
})

test('a phone without a wallet is offered apps and the exchange, and no QR code; a desk a QR code and no apps', async () => {
  const id = await shop.create('8.00')
  for (const [context, isPhone] of [
    [phone, true],
    [{}, false],
  ] as const) {
    for (const javaScriptEnabled of [true, false]) {
      const { openCheckout, context: opened } = await openPage(browser, shop, {
        context: { ...context, javaScriptEnabled },
      })
      const page = await openCheckout(id)
      const metaMask = page.getByRole('link', { name: 'MetaMask' })
      if (javaScriptEnabled && !isPhone) {
        await page.getByText('We found no wallet in this browser.').waitFor()
        assert.equal(await metaMask.isVisible(), isPhone)
        assert(await page.getByRole('link', { name: 'Pay from an exchange or another wallet' }).isVisible())
      }
      assert.equal(await page.locator('.qr:visible').count(), 0)
      await tab(page, isPhone ? 'Wallet app' : 'Phone').click()
      await page
        .locator(isPhone ? '.apps' : '.qr')
        .filter({ visible: true })
        .waitFor()
      assert.equal(await metaMask.isVisible(), isPhone)
      assert.equal(await page.locator('.qr:visible').count(), isPhone ? 0 : 1)
      assert.equal(await page.locator('figure:visible figcaption').count(), isPhone ? 0 : 1)
      await opened.close()
    }
  }
})

test('a paid page shows the amount paid, when, its reference and the rate, and leads to a receipt that can be printed', async () => {
  const id = await shop.create('44.30')
  await shop.ctx.db.query(
    `update checkouts set price_currency = 'EUR', rate = '{"perBase":"1","usdPerBase":"1.0834"}' where id = $1`,
    [id],
  )
  await completeByHand(shop, id)
  const { openCheckout } = await openPage(browser, shop, { context: { timezoneId: 'Europe/Berlin' } })
  const page = await openCheckout(id)
  const text = await seen(page)
  assert.deepEqual([...amountsIn(text)], ['44.30', '1.0834'])
  assert.match(text, /€44\.30/)
  assert.match(text, /1 EUR = 1\.0834 USDC/)
  assert.match(text, /Date and time\n\w{3} \d+, 20\d\d, \d+:\d\d:\d\d [AP]M GMT\+[12]/)
  assert(text.includes(`Payment reference\n${id}`))
  assert.match(text, /Paid to/)
  assert.doesNotMatch(text, /Pay to/)
  await tell(shop, id, 'checkout.completed')
  await numberAll(shop)
  await page.getByRole('link', { name: 'Save' }).click()
  await page.getByText(/^20\d\d-000001$/).waitFor()
  await page.evaluate('window.print = () => { window.printed = true }')
  await page.getByRole('button', { name: 'Print or save' }).click()
  assert.equal(await page.evaluate('window.printed'), true)
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  assert.equal(await page.locator('button:visible, .button:visible, footer:visible').count(), 0)
  assert.equal(await page.evaluate('getComputedStyle(document.body).color'), 'rgb(0, 0, 0)')
})

test('pages that are not paid lead back to the store, and every page says how to reach it', async () => {
  await updateStore(
    shop.ctx,
    shop.store.id,
    operator,
    { supportEmail: 'help@shop.example', supportUrl: 'https://shop.example/help' },
    shop.ctx.now(),
  )
  const { openCheckout } = await openPage(browser, shop)
  for (const [change, isPaid] of [
    [async () => {}, false],
    [async (id: string) => await letTimePass(shop, id), false],
    [async (id: string) => await setStatus(shop, id, 'CANCELED'), false],
    [async (id: string) => void (await completeByHand(shop, id)), true],
  ] as const) {
    const id = await shop.create('1.00', { cancelUrl: 'https://shop.example/cart?x=1' })
    await change(id)
    const page = await openCheckout(id)
    const back = page.getByRole('link', { name: 'Back to shop.example' })
    assert.equal(await back.count(), isPaid ? 0 : 1)
    if (!isPaid)
      assert.equal(await back.getAttribute('href'), `https://shop.example/cart?x=1&checkoutId=${id}`)
    await page.getByText(`Questions? Contact the store and quote ${id}.`).waitFor()
    const mail = page.getByRole('link', { name: 'help@shop.example' })
    assert.equal(await mail.getAttribute('href'), `mailto:help@shop.example?subject=${id}`)
    const help = page.getByRole('link', { name: 'shop.example/help' })
    assert.equal(await help.getAttribute('href'), 'https://shop.example/help')
    assert.equal(/Paid to/.test(await seen(page)), isPaid)
  }
})

test('an amount is never broken inside its number, however long it is and however narrow the screen', async () => {
  const { openCheckout } = await openPage(browser, shop, {
    context: { viewport: { width: 320, height: 640 } },
  })
  for (const price of ['1.00', '12345.678901', '999999999999999.999999']) {
    const page = await openCheckout(await shop.create(price))
    assert.equal(await page.evaluate(`document.querySelector('.on b').getClientRects().length`), 1)
    assert.equal(await page.evaluate(`document.querySelector('.price bdi').getClientRects().length`), 1)
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
  }
})
