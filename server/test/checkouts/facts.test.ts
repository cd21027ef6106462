/** What a store says about a checkout, and the rate that it was priced at: for the store, and what of it is for the buyer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page, StoreCheckout } from '@farthing/sdk'
import { openTestApp } from '../support/app.ts'
import { assertInvalid, assertProblem, openStore, order } from '../support/store.ts'

const farthing = await openTestApp({ FIXED_RATES: 'EUR=0.8' })
const shop = await openStore(farthing)
const path = '/api/v1/checkouts'
const said = {
  description: 'Two tickets for “Così” & a <b>programme</b>',
  metadata: { table: '7', 'crm/id': '=1+1', empty: '' },
}

async function read(id: string): Promise<StoreCheckout> {
  return (await shop.call('GET', `${path}/${id}`)).json()
}

test('description and metadata come back to the store and in every event; the checkout itself keeps its nine fields', async () => {
  const created = await shop.create({ priceCurrency: 'USD', ...said })
  assert.equal(Object.keys(created).length, 9)
  const seen = await read(created.id)
  assert.deepEqual(
    { description: seen.description, metadata: seen.metadata, rate: seen.rate },
    { ...said, rate: undefined },
  )
  await shop.call('POST', `${path}/${created.id}/cancel`)
  const events = (await shop.events()).filter(({ checkoutId }) => checkoutId === created.id)
  assert.deepEqual(
    events.map(({ type, data }) => [
      type,
      'checkout' in data && data.checkout?.description,
      'checkout' in data && data.checkout?.metadata,
    ]),
    ['checkout.created', 'checkout.canceled'].map((type) => [type, said.description, said.metadata]),
  )
  const [listed] = (await shop.call('GET', `${path}?limit=1`)).json<Page<StoreCheckout>>().data
  assert.deepEqual(listed?.metadata, said.metadata)
})

test('the store sees the rate that a checkout was priced at; one that needed none has none', async () => {
  const seen = await read((await shop.create({ priceCurrency: 'EUR' })).id)
  assert.deepEqual(seen.rate, { rate: '1.25', source: 'fixed', time: seen.createdAt })
  const [event] = (await shop.events()).filter(({ checkoutId }) => checkoutId === seen.id)
  assert(event && 'checkout' in event.data)
  assert.deepEqual(event.data.checkout, seen)
  const plain = await read((await shop.create()).id)
  assert.deepEqual(
    ['description', 'metadata', 'rate'].filter((field) => field in plain),
    [],
  )
})

test('the buyer reads the description as text, and nothing of the metadata', async () => {
  const { id, checkoutUrl } = await shop.create({ ...said, metadata: { zebra: 'wholesale 40' } })
  const page = await farthing.app.inject({
    url: new URL(checkoutUrl).pathname,
    headers: { accept: 'text/html' },
  })
  assert.equal(page.statusCode, 200)
  assert(page.body.includes('Two tickets for “Così” &#38; a &#60;b&#62;programme&#60;/b&#62;'))
  const terms = await farthing.app.inject({ method: 'POST', url: `${path}/${id}` })
  assert.equal(terms.statusCode, 402)
  for (const body of [page.body, terms.body]) assert(!/zebra|wholesale/.test(body))
})

test('a repeat with the same key and other metadata is refused', async () => {
  const send = (metadata: object) =>
    shop.call('POST', path, { ...order, metadata }, { 'idempotency-key': 'one' })
  const first = await send({ a: '1' })
  assert.equal(first.statusCode, 201)
  assert.equal((await send({ a: '1' })).body, first.body)
  assertProblem(await send({ a: '2' }), 422, 'idempotency_key_reused')
})

test('what is too long, too much, not text or invisible is refused with its place', async () => {
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, '']))
  const refused: [object, string][] = [
    [{ description: '' }, '/description'],
    [{ description: 'é'.repeat(251) }, '/description'],
    [{ description: 'a\u0000b' }, '/description'],
    [{ description: 'a\u202eb' }, '/description'],
    [{ description: 7 }, '/description'],
    [{ metadata: many }, '/metadata'],
    [{ metadata: { a: 7 } }, '/metadata/a'],
    [{ metadata: { a: 'x'.repeat(501) } }, '/metadata/a'],
    [{ metadata: { a: 'line\nbreak' } }, '/metadata/a'],
    [{ metadata: { 'a/b': '\u0007' } }, '/metadata/a~1b'],
    [{ metadata: { ['k'.repeat(41)]: '' } }, `/metadata/${'k'.repeat(41)}`],
    [{ metadata: [] }, '/metadata'],
  ]
  for (const [body, pointer] of refused)
    assertInvalid(await shop.call('POST', path, { ...order, ...body }), pointer)
  const most = Object.fromEntries(
    Array.from({ length: 20 }, (_, i) => [`${i}`.padStart(40, 'k'), '𝒳'.repeat(250)]),
  )
  for (const fine of [
    { metadata: most },
    { metadata: { __proto__x: '1' } },
    { metadata: {}, description: null },
  ])
    assert.equal((await shop.call('POST', path, { ...order, ...fine })).statusCode, 201)
})

test('checkouts are found by price within a currency, page by page, however rare they are', async () => {
  const seller = await openStore(farthing)
  const dear = await seller.create({ priceAmount: '999.50' })
  for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 40 }, () => seller.create()))
  const newest = await seller.create({ priceAmount: '1000' })
  await seller.create({ priceAmount: '2000', priceCurrency: 'EUR' })
  const list = async (query: string) =>
    (await seller.call('GET', `${path}?${query}`)).json<Page<StoreCheckout>>()
  const first = await list('priceCurrency=usd&minPrice=999.5&maxPrice=1000')
  assert.deepEqual(
    first.data.map(({ id }) => id),
    [newest.id],
  )
  assert(first.nextCursor, 'the rest was not looked at yet')
  const second = await list(`priceCurrency=USD&minPrice=999.5&cursor=${first.nextCursor}`)
  assert.deepEqual([second.data.map(({ id }) => id), second.nextCursor], [[dear.id], null])
  assertInvalid(await seller.call('GET', `${path}?minPrice=1`), 'priceCurrency')
  assertInvalid(await seller.call('GET', `${path}?minPrice=x&priceCurrency=USD`), 'minPrice')
})
