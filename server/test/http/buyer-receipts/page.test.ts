/** The receipt that a buyer prints or saves: what it says in each language, and to whom. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { languages } from '../../../src/http/page/languages/choose.ts'
import { updateStore } from '../../../src/stores/update.ts'
import { numberAll, payOne, reverse } from '../../checkouts/buyer-receipts/support/receipts.ts'
import { openTestApp } from '../../support/app.ts'
import { setStatus } from '../../support/by-hand.ts'
import { operator } from '../../support/operator.ts'
import { openStore } from '../../support/store.ts'
import { skeletonOf, storable, strings } from '../page/support/hostile-strings.ts'

const farthing = await openTestApp()
const { ctx, clock } = farthing
const shop = await openStore(farthing)
await updateStore(
  ctx,
  shop.store.id,
  operator,
  {
    name: 'Juniper & Pine',
    legalName: 'Juniper & Pine Ltd',
    legalAddress: '4 Mill Lane\nBristol BS1 4TR',
    taxId: 'GB123456789',
    timeZone: 'Pacific/Kiritimati',
  },
  ctx.now(),
)

const get = (id: string, query = '') =>
  farthing.request({ url: `/c/${id}/receipt${query}`, headers: { accept: 'text/html' } })

/** What a reader sees. */
function textOf(body: string): string {
  return body
    .replace(/<(style|script)\b.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, '\n')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
}

test('a receipt has the seller’s legal data, its number and day, the order, the price and what was paid, in each language', async () => {
  clock.now = new Date('2026-12-31T11:00:00Z')
  const id = await payOne(farthing, shop, 'A-1273')
  await numberAll(farthing)
  clock.now = null
  for (const { tag, texts, direction } of languages) {
    const { statusCode, headers, body } = await get(id, `?lang=${tag}`)
    assert.equal(statusCode, 200)
    assert.equal(headers['cache-control'], 'no-store')
    assert(body.includes(`<html lang="${tag}" dir="${direction}">`))
    const text = textOf(body)
    const day = new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(
      new Date('2027-01-01'),
    )
    for (const part of [
      ...[texts.receipt, texts.buyerReceipt.number, '2027-000001', day, 'A-1273', '12.50 USDC', 'Base'],
      ...['Juniper & Pine', 'Juniper & Pine Ltd', '4 Mill Lane', 'Bristol BS1 4TR', 'GB123456789', id],
      texts.buyerReceipt.back,
    ])
      assert(text.includes(part), `${tag}: ${part}`)
    assert.match(body, /\/tx\/0x[0-9a-f]{64}/)
    assert(!text.includes(texts.buyerReceipt.void.title))
    assert(!text.includes(texts.mailIt), 'nothing is mailed without a mail server')
  }
})

test('the page of a paid checkout leads to its receipt; no other page does', async () => {
  const paid = await payOne(farthing, shop)
  const open = await shop.create()
  const page = async (id: string, lang = '') =>
    (await farthing.request({ url: `/c/${id}${lang}`, headers: { accept: 'text/html' } })).body
  assert((await page(paid)).includes(`href="/c/${paid}/receipt">Save</a>`))
  assert((await page(paid, '?lang=es')).includes(`href="/c/${paid}/receipt?lang=es">Guardar</a>`))
  assert(!(await page(open.id)).includes('/receipt'))
})

test('until a receipt has its number the page says so; what is not paid or in doubt has no receipt', async () => {
  const id = await payOne(farthing, shop)
  assert.match((await get(id)).body, /Your receipt is on its way/)
  await numberAll(farthing)
  assert.match((await get(id)).body, /2\d{3}-00000\d/)
  await setStatus(farthing, id, 'PROCESSING')
  const doubted = await get(id, '?lang=fr')
  assert.deepEqual([doubted.statusCode, doubted.headers.location], [303, `/c/${id}?lang=fr`])
  const { id: open } = await shop.create()
  assert.equal((await get(open)).headers.location, `/c/${open}`)
  for (const none of ['x', `ch_00${'0'.repeat(26)}`]) assert.equal((await get(none)).statusCode, 404)
})

test('a receipt whose payment was taken back says in each language that it is void', async () => {
  const id = await payOne(farthing, shop)
  await numberAll(farthing)
  await reverse(farthing, id)
  await numberAll(farthing)
  for (const { tag, texts } of languages) {
    const { body } = await get(id, `?lang=${tag}`)
    const text = textOf(body)
    assert(text.includes(texts.buyerReceipt.void.title) && text.includes(texts.buyerReceipt.void.text), tag)
    assert.doesNotMatch(body, /\/tx\/0x/)
  }
})

test('none of 2,000 hostile strings, as any word of a store, adds or changes an element of a receipt', async () => {
  const id = await payOne(farthing, shop)
  await numberAll(farthing)
  await ctx.db.query('alter table checkouts drop constraint checkouts_order_id_check')
  await ctx.db.query('drop index checkouts_by_order')
  const write = async (text: string) => {
    await ctx.db.query(
      `with named as (update buyer_receipts set store_name = $2, legal_name = $2 || '.', legal_address = $3, tax_id = $2
         where checkout_id = $1)
       update checkouts set order_id = $2 where id = $1`,
      [id, text, text.replaceAll('\n', ' ')],
    )
    return (await get(id)).body
  }
  const skeleton = skeletonOf(await write('plain'))
  // Many at once: a page for each of them would take minutes.
  for (let from = 0; from < strings.length; from += 40) {
    const text = storable(strings.slice(from, from + 40).join(' '))
    assert.equal(skeletonOf(await write(text)), skeleton, `from ${from}`)
  }
})
