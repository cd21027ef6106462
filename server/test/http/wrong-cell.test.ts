import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { buildConsole } from '../../src/http/console/app.ts'
import { newId } from '../../src/ids.ts'
import { makeStore, openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'

const { ctx, databaseUrl, request } = await openTestApp({ CONSOLE_URL: 'https://console.farthing.example' })
const { key } = await makeStore(ctx)
const order = { orderId: 'A-1', priceAmount: '5.00', priceCurrency: 'USD' }
const theirKey = key.replace(/^(sk_live_)00/, '$101')

/** The same application without a database: what it answers, it answers without a look-up. */
const db = openDatabase({ url: databaseUrl, connections: 1, name: 'closed' })
await db.close()
const blind = buildApp({ ...ctx, db }, { isDraining: false })
atEnd(() => blind.close())
await blind.ready()

/** Path parameters of the API and the prefix of the id that each takes. */
const prefixes: Readonly<Record<string, string>> = {
  storeId: 'st',
  checkoutId: 'ch',
  walletId: 'wal',
  linkId: 'lnk',
  paymentId: 'pay',
  refundId: 'rf',
  endpointId: 'we',
  deliveryId: 'dlv',
  eventId: 'evt',
}

const document = JSON.parse(
  await readFile(new URL('../../../docs/api/openapi.json', import.meta.url), 'utf8'),
) as { paths: Record<string, Record<string, unknown>> }

function fill(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'keyId') return `01${'0'.repeat(16)}`
    return newId(prefixes[name] ?? assert.fail(`${path}: what does ${name} hold?`), '01', new Date())
  })
}

test('every operation refuses the ids of another cell with 421, without a look-up', async () => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() as 'GET' })),
  )
  const withIds = operations.filter(({ path }) => path.includes('{'))
  assert(withIds.length > 20)
  for (const { path, method } of withIds) {
    const answer = await blind.inject({
      method,
      url: fill(path).replace(/^\/pay\//, '/c/'),
      headers: { 'x-api-key': key },
    })
    assert.equal(answer.statusCode, 421, `${method} ${path}: ${answer.body}`)
    assert.equal(answer.json().code, 'wrong_cell')
    assert.match(answer.json().detail, /cell 01, and this is cell 00/)
  }
})

test('a key of another cell gets 421 wherever a key counts, and is ignored where none does', async () => {
  const listed = await blind.inject({ url: '/api/v1/checkouts', headers: { 'x-api-key': theirKey } })
  assert.equal(listed.statusCode, 421)
  assert(!listed.body.includes(theirKey.split('_')[3] ?? ''), 'the secret is not repeated')
  const created = await request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers: { 'x-api-key': key },
    payload: order,
  })
  const { id } = created.json<{ id: string }>()
  const paid = await request({
    method: 'POST',
    url: `/api/v1/checkouts/${id}`,
    headers: { 'x-api-key': theirKey },
  })
  assert.equal(paid.statusCode, 402)
})

test('ids in a query or a body are told apart too, but an order id is the store’s own text', async () => {
  const theirs = newId('ch', '01', new Date())
  const headers = { 'x-api-key': key }
  for (const url of [
    `/api/v1/payments?checkoutId=${theirs}`,
    `/api/v1/events?checkoutId=${theirs}`,
    `/api/v1/checkouts?cursor=${theirs}`,
  ])
    assert.equal((await request({ url, headers })).statusCode, 421, url)
  const accept = {
    method: 'POST',
    url: `/api/v1/payments/${newId('pay', '00', new Date())}/accept`,
    headers,
  } as const
  assert.equal((await request({ ...accept, payload: { checkoutId: theirs } })).statusCode, 421)
  const created = await request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers,
    payload: { ...order, orderId: theirs },
  })
  assert.equal(created.statusCode, 201)
  assert.equal((await request({ url: `/api/v1/checkouts?orderId=${theirs}`, headers })).statusCode, 200)
})

test('a buyer with another cell’s address reads that the payment is not here', async () => {
  const url = `/c/${newId('ch', '01', new Date())}`
  const answer = await blind.inject({ url, headers: { accept: 'text/html' } })
  assert.equal(answer.statusCode, 421)
  assert.match(String(answer.headers['content-type']), /text\/html/)
  assert.match(answer.body, /We can’t find this payment/)
})

test('the console says that a store is another console’s', async () => {
  const console = buildConsole({ ...ctx, db }, { isDraining: false }, { ctx, examine: async () => [] })
  atEnd(() => console.close())
  const answer = await console.inject({
    url: `/stores/${newId('st', '01', new Date())}/payments`,
    headers: { host: 'console.farthing.example' },
  })
  assert.equal(answer.statusCode, 421)
  assert.match(answer.body, /belongs to another console/)
})
