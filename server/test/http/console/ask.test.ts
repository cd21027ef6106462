/** An owner asks for money, in a real browser with a finger: from the form to the paid link and its list. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Link } from '@farthing/sdk'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { setStatus } from '../../support/by-hand.ts'
import { checkoutIn, openBuyer } from '../links/support/buyer.ts'
import { openBrowser } from '../page/support/browser.ts'
import { openFurnished, openSignedIn } from './support/furnished.ts'

const furnished = await openFurnished()
const { url, store, owner, farthing } = furnished
const chromium = await openBrowser()
const home = `${url}/stores/${store.id}`
const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }

/** What the page gave to the browser to share and print, instead of the sheets that a test cannot close. */
const watch = () => {
  const given: unknown[] = []
  Object.assign(window, { given, print: () => given.push('print') })
  Object.defineProperty(navigator, 'share', { value: async (data: unknown) => void given.push(data) })
}

test('every step of a link, by touch', async () => {
  const page = await openSignedIn(chromium, furnished, owner, phone)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.context().addInitScript(watch)
  const given = async () => (await page.evaluate('window.given')) as unknown[]

  await page.goto(`${home}/payments`)
  await page.getByRole('link', { name: 'New payment' }).tap()
  await page.getByLabel('What is it for?').fill('Two seats on Friday')
  await page.getByLabel('Amount', { exact: true }).fill('0')
  await page.getByLabel('Can be paid for').selectOption('date')
  await page.getByLabel('Last day').waitFor()
  await page.getByLabel('Can be paid for').selectOption('30')
  await page.getByLabel('Last day').waitFor({ state: 'hidden' })
  await page.getByText('Many buyers').tap()
  await page.getByText('Invoice details').tap()
  await page.getByLabel('Invoice number').waitFor()
  await page.getByText('Invoice details').tap()
  await page.getByRole('button', { name: 'Make the link' }).tap()
  await page.getByRole('alert').getByText('Write an amount above zero').waitFor()
  assert.equal(await page.getByLabel('What is it for?').inputValue(), 'Two seats on Friday')
  await page.getByLabel('Amount', { exact: true }).fill('30')
  await page.getByText('One buyer').tap()
  await page.getByRole('button', { name: 'Make the link' }).tap()
  await page.waitForURL(/\/links\/lnk_/)

  const id = page.url().split('/').at(-1) ?? ''
  const link = (await store.call('GET', `/api/v1/links/${id}`)).json<Link>()
  assert.deepEqual([link.kind, link.priceAmount], ['once', '30'])
  await page.locator('.state', { hasText: 'Open' }).waitFor()
  await page.getByRole('button', { name: 'Copy the link' }).tap()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), link.url)
  await page.getByRole('button', { name: 'Share' }).tap()
  await page.getByRole('button', { name: 'Print' }).tap()
  assert.deepEqual(await given(), [{ url: link.url, title: link.title }, 'print'])
  const mail = (await page.getByRole('link', { name: 'Mail it' }).getAttribute('href')) ?? ''
  assert.match(mail, /^mailto:\?subject=.+&body=.+/)

  // A buyer goes on to pay: the screen shows it by itself, and still offers to share.
  const buyer = openBuyer(farthing.app)
  const checkoutId = checkoutIn(await buyer.open(link, await buyer.quote(link)))
  while ((await assignWaitingSequences(farthing.ctx)) > 0);
  await page.locator(`a[href$="/checkouts/${checkoutId}"]`).waitFor()
  assert(await page.getByRole('button', { name: 'Share' }).isVisible())
  await page.getByRole('button', { name: 'Close the link' }).tap()
  await page.getByText('The link cannot be paid any more').waitFor()

  await page.locator(`a[href$="/checkouts/${checkoutId}"]`).tap()
  await page.waitForURL(/\/checkouts\/ch_/)
  await page.getByRole('link', { name: 'Make it again' }).waitFor()
  await setStatus(farthing, checkoutId, 'EXPIRED')
  await page.reload()
  await page.getByRole('link', { name: 'Make it again' }).tap()
  assert.equal(await page.getByLabel('What is it for?').inputValue(), 'Two seats on Friday')
  assert.equal(await page.getByLabel('Amount', { exact: true }).inputValue(), '30')

  await page.goto(`${home}/payments`)
  await page.getByRole('link', { name: 'Links' }).tap()
  await page.getByText('Two seats on Friday').waitFor()
  await page.locator(`a[href$="/links/${id}"]`).tap()
  await page.getByRole('heading', { name: '30.00' }).waitFor()
  await page.context().close()
})

test('a link’s screen on paper is its price, its code and its address', async () => {
  const page = await openSignedIn(chromium, furnished, owner)
  await page.goto(`${home}/links`)
  await page.locator('tr', { hasText: 'Grinder' }).locator('a').click()
  await page.locator('svg.qr').waitFor()
  await page.emulateMedia({ media: 'print' })
  for (const shown of ['h1', 'svg.qr', 'code.link'])
    assert(await page.locator(`main ${shown}`).first().isVisible(), shown)
  for (const hidden of ['.side', 'main button', 'main .list', 'main .state', 'main details'])
    for (const each of await page.locator(hidden).all()) assert(!(await each.isVisible()), hidden)
  await page.context().close()
})
