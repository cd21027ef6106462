import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliDecompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { languages } from '../../../src/http/page/languages/choose.ts'
import { updateStore } from '../../../src/stores/update.ts'
import { openTestApp } from '../../support/app.ts'
import { freePort } from '../../support/free-port.ts'
import { operator } from '../../support/operator.ts'
import { openStore, type StoreClient } from '../../support/store.ts'
import { isTurn } from '../../support/turns.ts'
import { findFaults } from '../page/support/axe.ts'
import { openBrowser } from '../page/support/browser.ts'
import { newInvoice, newLink } from '../support/new-link.ts'
import { makeLink } from './support/buyer.ts'

const port = await freePort()
const origin = `http://127.0.0.1:${port}`
const farthing = await openTestApp({ CHECKOUT_PAGE_URL: `${origin}/pay`, BASE_URL: origin })
const shop = await openStore(farthing)
await updateStore(
  farthing.ctx,
  shop.store.id,
  operator,
  { name: 'Juniper & Pine', supportEmail: 'help@juniper.example' },
  farthing.ctx.now(),
)
await farthing.app.listen({ host: '127.0.0.1', port })
const browser = await openBrowser()
let number = 1
const choice = { priceAmount: undefined, minAmount: '5', maxAmount: '5000' }

const change = async (id: string, set: string) =>
  await farthing.ctx.db.query(`update links set ${set} where id = $1`, [id])

/** Every state of the page, as the address to open. */
const states = {
  fixed: async (store) => (await makeLink(store, newLink({ description: 'Row 7, seats 12 and 13' }))).url,
  choice: async (store) => (await makeLink(store, newLink({ kind: 'many', ...choice }))).url,
  invoice: async (store) => (await makeLink(store, newInvoice(`2026-${number++}`))).url,
  paid: async (store) => await withFact(store, 'paid_at = clock()'),
  closed: async (store) => await withFact(store, 'closed_at = clock()'),
  ended: async (store) => await withFact(store, 'until = clock()'),
  unpayable: async () => {
    const seller = await openStore(farthing)
    const { url } = await makeLink(seller)
    await farthing.ctx.db.query(
      "update stores set suspended_at = clock(), suspended_reason = 'x', revision = revision + 1 where id = $1",
      [seller.id],
    )
    return url
  },
} satisfies Record<string, (store: StoreClient) => Promise<string>>

async function withFact(store: StoreClient, set: string): Promise<string> {
  const { id, url } = await makeLink(store)
  await change(id, set)
  return url
}

async function open(url: string, lang: string): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(`${url}?lang=${lang}`)
  return page
}

test('without script: the button leads to the checkout, in the same language, and a wrong amount is said on the page', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto(`${await states.choice(shop)}?lang=de`)
  await page.getByRole('textbox').fill('4,99')
  await page.getByRole('button', { name: 'Weiter' }).click()
  assert.match(String(await page.getByRole('alert').textContent()), /zwischen 5,00\s\$ und 5\.000,00\s\$/)
  assert.equal(await page.getByRole('textbox').inputValue(), '4.99')
  await page.getByRole('textbox').fill('12,50')
  await page.getByRole('button', { name: 'Weiter' }).click()
  await page.waitForURL(/\/pay\/ch_\w+\?lang=de$/)
  assert.match(String(await page.locator('main').textContent()), /12\.50/)
  await context.close()
})

test('a link’s page is at most 12 KB, is all there is to load, and previews say what it asks for', async () => {
  const url = await states.invoice(shop)
  const headers = { accept: 'text/html', 'accept-encoding': 'br' }
  const answer = await farthing.request({ url: new URL(url).pathname, headers })
  assert(answer.rawPayload.length <= 12 * 1024, `${answer.rawPayload.length} bytes`)
  const body = brotliDecompressSync(answer.rawPayload).toString()
  assert.doesNotMatch(body, /<script|<img|url\(/)
  for (const [name, content] of [
    ['url', url],
    ['site_name', 'Juniper &#38; Pine'],
    ['title', 'Tea · Juniper &#38; Pine'],
    ['description', '$64.74'],
  ])
    assert(body.includes(`<meta property="og:${name}" content="${content}">`), name)
})

test('what a store writes is text: on the page, in its title and in previews', async () => {
  const evil = '"><script>alert(1)</script>&quot;'
  const { url } = await makeLink(shop, newLink({ title: evil, description: evil }))
  const { body } = await farthing.request({ url: new URL(url).pathname, headers: { accept: 'text/html' } })
  assert(!body.includes('<script'))
  // In the title, the heading, the description and the preview.
  assert.equal(body.split('&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;&#38;quot;').length, 5)
})

for (const [turn, { tag, direction }] of languages.entries())
  for (const [place, [name, make]] of Object.entries(states).entries()) {
    // In the gate each state in one or two of the languages.
    if (!isTurn(place + turn, languages.length - 1)) continue
    test(`the page of a link (${name}, ${tag}) passes the axe checks, light and dark, and fits 320 px`, async () => {
      const page = await open(await make(shop), tag)
      assert.equal(await page.evaluate('document.documentElement.dir'), direction)
      assert.deepEqual(await findFaults(page), [])
      await page.context().close()
    })
  }
