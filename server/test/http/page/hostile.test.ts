import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readView } from '../../../src/checkouts/view.ts'
import { openAssets } from '../../../src/http/page/assets.ts'
import { english } from '../../../src/http/page/languages/en.ts'
import { renderPage } from '../../../src/http/page/render.ts'
import { toTerms } from '../../../src/payments/rail.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { completeByHand } from '../../support/by-hand.ts'
import { openBrowser, openPage } from './support/browser.ts'
import { hostileStrings, skeletonOf, storable, strings } from './support/hostile-strings.ts'
import { openPageShop } from './support/page-shop.ts'

/**
 * Text that a store supplies is shown to its buyers on our origin. These strings try to become anything but text. They
 * are written straight into the database, past the checks of the API, because the page must not depend on those checks.
 */
const stringsAPage = 200

const browser = await openBrowser()
const shop = await openPageShop({ worker: false })
// Many strings together are longer than an order id may be.
await shop.ctx.db.query('alter table checkouts drop constraint checkouts_order_id_check')
await shop.ctx.db.query('drop index checkouts_by_order')

const redirectTo = (text: string) => {
  const url = `https://shop.example/${text.replace(/[\s\p{Cc}\\]/gu, '')}`
  return URL.canParse(url) ? url : null
}

async function write(id: string, text: string): Promise<void> {
  await shop.ctx.db.query(
    `with named as (update stores set name = $2, support_email = $2, support_url = $4 where id = $3)
     update checkouts set order_id = $2, success_redirect_url = $4, cancel_url = $4 where id = $1`,
    [id, storable(text), shop.store.id, redirectTo(storable(text))],
  )
}

test('none of 2,000 hostile strings, in any field, adds or changes an element of the page', async () => {
  const place = { url: shop.url, path: '/pay', assets: openAssets(), cell: '00' }
  const [open, paid] = [await shop.create(), await shop.create()]
  await completeByHand(shop, paid)
  for (const [id, way, announced] of [
    [open, null, []],
    [open, 'send', []],
    [open, null, ['0x00']],
    [paid, null, []],
  ] as const) {
    const view = await readView(shop.ctx, id)
    assert(view)
    const accepts = await toTerms(openRails(shop.ctx), id, view.checkout.options)
    const render = (text: string) => {
      const url = redirectTo(text)
      const checkout = { ...view.checkout, orderId: text, successRedirectUrl: url, cancelUrl: url }
      const store = { ...view.store, name: text, supportEmail: `${text}@shop.example`, supportUrl: url }
      const hostile = { ...view, checkout, store, announced }
      const asked = {
        language: english,
        isLanguageNamed: false,
        notice: null,
        way,
        place: null,
        isUnsent: false,
      }
      return renderPage(shop.ctx, place, { view: hostile, accepts, asked, now: new Date(0) }).text
    }
    // An email address that isn't one is left out, with its link.
    const withoutLinks = (page: string) =>
      skeletonOf(page.replace(/<br><a href="(?:mailto|https):[^>]*>.*?<\/a>/g, ''))
    const skeleton = withoutLinks(render('plain'))
    assert.match(skeleton, /^html lang dir head meta charset/)
    for (const text of strings) {
      const page = render(text)
      assert.equal(withoutLinks(page), skeleton, text)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not occur.
      assert.doesNotMatch(page, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u, text)
      assert(page.isWellFormed())
    }
  }
})

test('none of 2,000 hostile strings, in any field, runs a script, leaves the page, or violates its policy', async () => {
  const [open, paid] = [await shop.create(), await shop.create()]
  await completeByHand(shop, paid)
  const { openCheckout, complaints, requests, context } = await openPage(browser, shop)
  const dialogs: string[] = []
  context.on('dialog', (dialog) => {
    dialogs.push(dialog.message())
    void dialog.dismiss()
  })
  await context.addInitScript(
    "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective), true)",
  )
  const page = await openCheckout(open)
  let seen = 0
  for (let from = 0; from < strings.length; from += stringsAPage) {
    const text = strings.slice(from, from + stringsAPage).join(from % 400 === 0 ? '' : ' ')
    for (const id of [open, paid]) {
      await write(id, text)
      await page.goto(`${shop.url}/${id}`)
      const foreign =
        'document.querySelectorAll(\'iframe,object,base,link:not([href^="/pay/"]):not([rel=icon])\').length'
      assert.equal(await page.evaluate(`typeof pwned + ${foreign}`), 'undefined0')
      // The string is visible as text.
      assert.match(String(await page.locator('.facts dd').first().textContent()), /pwned=1/)
      assert.equal(page.url(), `${shop.url}/${id}`)
      seen++
    }
  }
  assert.equal(seen, (2 * hostileStrings) / stringsAPage)
  assert.deepEqual(dialogs, [])
  assert.deepEqual(complaints, [])
  assert(requests.length > seen)
  for (const url of requests) assert(url.startsWith(shop.url) || url.startsWith('data:'), url)
})

test('a logo is served from our origin as an image, and scripts in an SVG logo never run, even if it is opened directly', async () => {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="pwned=1"><script>pwned=1;top.location="//evil.example"</script><rect width="9" height="9" fill="teal"/></svg>'
  const headers = { 'x-api-key': shop.key, 'content-type': 'application/json' }
  const payload = {
    name: 'Shop',
    logoUrl: `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`,
  }
  const changed = await shop.request({
    method: 'PATCH',
    url: `/api/v1/stores/${shop.store.id}`,
    headers,
    payload,
  })
  assert.equal(changed.statusCode, 200, changed.body)
  const id = await shop.create()
  const { openCheckout, open, complaints } = await openPage(browser, shop)
  const page = await openCheckout(id)
  const logo = page.locator('img.mark')
  await logo.waitFor()
  assert.equal(await page.evaluate("document.querySelector('img.mark').naturalWidth > 0"), true)
  assert.equal(await page.evaluate('typeof pwned'), 'undefined')
  assert.deepEqual(complaints, [])
  const alone = await open(`${shop.url}/${id}/logo`)
  assert.equal(await alone.evaluate('typeof pwned'), 'undefined')
  assert.equal(alone.url(), `${shop.url}/${id}/logo`)
})
