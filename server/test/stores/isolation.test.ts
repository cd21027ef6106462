/**
 * No store sees or changes another store's data. The calls are generated from the API document, so a new operation is
 * either covered automatically or fails this test until it is. FULL=1 tries every pair of stores.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { documented, fillPath, type Operation, operations } from '../http/support/document.ts'
import { openTestApp } from '../support/app.ts'
import { startDeciding } from '../support/decide.ts'
import { type Answer, assertProblem } from '../support/store.ts'
import { bodies, named, openTenants, type Tenant } from './support/tenants.ts'

const storesCount = 50
/** Offsets from a store to the other store of a pair, so that every store is attacked as often as it attacks. */
const distances =
  process.env.FULL === '1' ? Array.from({ length: storesCount - 1 }, (_, i) => i + 1) : [1, 7, 20, 33]

const farthing = await openTestApp(documented)
startDeciding(farthing)
const { db } = farthing.ctx
const tenants = await openTenants(farthing, storesCount)
const owners = await readOwners()

/** Every identifier in the database that could reveal a store, with the store it belongs to. */
async function readOwners(): Promise<Map<string, string>> {
  const rows = await db.query<{ id: string; store_id: string }>(
    `select id, id as store_id from stores
     union all select id, store_id from checkouts
     union all select order_id, store_id from checkouts
     union all select id, store_id from links
     union all select invoice_number, store_id from links
     union all select id, store_id from wallets
     union all select address, store_id from wallets where family = 'EVM'
     union all select payment_id, store_id from credits
     union all select id, store_id from refunds
     union all select id, store_id from events
     union all select id, store_id from webhook_endpoints
     union all select id, store_id from deliveries
     union all select id, store_id from api_keys`,
  )
  return new Map(rows.map(({ id, store_id }) => [id, store_id]))
}

/** The ids in an answer, of any store. */
function idsIn(answer: Answer): string[] {
  const text = `${answer.body} ${JSON.stringify(answer.headers)}`
  const words = text.match(
    /\b(?:(?:st|ch|lnk|wal|pay|rf|evt|we|dlv)_[0-9a-z]{28}|00[0-9a-z]{16}|0x[0-9a-fA-F]{40}|(?:order|invoice)-of-store-\d+)\b/g,
  )
  return (words ?? []).filter((word) => owners.has(word))
}

/** Ids of the same form as those of `named` that don't exist. */
const nothing: Readonly<Record<string, string>> = {
  storeId: `st_00${'0'.repeat(26)}`,
  checkoutId: `ch_00${'0'.repeat(26)}`,
  linkId: `lnk_00${'0'.repeat(26)}`,
  invoiceNumber: 'invoice-of-store-none',
  walletId: `wal_00${'0'.repeat(26)}`,
  paymentId: `pay_00${'0'.repeat(26)}`,
  refundId: `rf_00${'0'.repeat(26)}`,
  endpointId: `we_00${'0'.repeat(26)}`,
  deliveryId: `dlv_00${'0'.repeat(26)}`,
  eventId: `evt_00${'0'.repeat(26)}`,
  orderId: 'order-of-store-none',
  keyId: `00${'0'.repeat(16)}`,
  actor: `00${'0'.repeat(16)}`,
}
const cursors: Readonly<Record<string, (tenant: Tenant) => string>> = {
  listCheckouts: ({ checkoutId }) => checkoutId,
  listLinks: ({ linkId }) => linkId,
  listWallets: ({ walletId }) => walletId,
  listPayments: ({ paymentId }) => paymentId,
  // Each store numbers its own lines.
  listMovements: () => '0',
  listRefunds: ({ refundId }) => refundId,
  listWebhookEndpoints: ({ endpointId }) => endpointId,
  listDeliveries: ({ eventId }) => eventId,
  listKeys: ({ shop }) => shop.key.split('_')[2] ?? '',
}
/** Parameters that don't identify anything that belongs to a store. */
const nameless = [
  'limit',
  'status',
  'disposition',
  'createdFrom',
  'createdBefore',
  'after',
  'type',
  'waitSeconds',
  'state',
  'priceCurrency',
  'minPrice',
  'maxPrice',
  'network',
  'payer',
  'transaction',
  'minAmount',
  'maxAmount',
  'month',
  'bookedFrom',
  'bookedBefore',
  'details',
]
type Attempt = {
  readonly operation: Operation
  readonly foreign: readonly string[]
  readonly query: string | null
}

/** Every keyed operation with every combination of foreign ids in its path, and with a foreign id in each query. */
const attempts: readonly Attempt[] = operations
  .filter(({ isKeyed }) => isKeyed)
  .flatMap((operation) => {
    assert(
      !operation.takesBody || operation.id in bodies,
      `a body for ${operation.id} is missing in this test`,
    )
    const inPath = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
    for (const name of inPath) assert(name in named, `a value for ${name} is missing in this test`)
    const choices: string[][] = [[]]
    for (const name of inPath) choices.push(...choices.map((choice) => [...choice, name]))
    const queries = operation.parameters
      .filter((parameter) => parameter.in === 'query' && !nameless.includes(parameter.name))
      .map(({ name }) => name)
    for (const name of queries)
      assert(
        name === 'cursor' ? operation.id in cursors : name in named,
        `a value for ${name} is missing in this test`,
      )
    return [
      ...choices.filter(({ length }) => length > 0).map((foreign) => ({ operation, foreign, query: null })),
      ...queries.map((query) => ({ operation, foreign: [], query })),
    ]
  })

async function attempt(
  { operation, foreign, query }: Attempt,
  asker: Tenant,
  value: (name: string) => string,
) {
  const own = Object.fromEntries(Object.entries(named).map(([name, of]) => [name, of(asker)]))
  const path = fillPath(operation.path, {
    ...own,
    ...Object.fromEntries(foreign.map((name) => [name, value(name)])),
  })
  const search = query === null ? '' : `?limit=100&${query}=${encodeURIComponent(value(query))}`
  return await asker.shop.call(operation.method, path + search, bodies[operation.id])
}

function withoutRequest(answer: Answer): string {
  return answer.body.replace(/"requestId":"[^"]*"/, '"requestId":""')
}

function assertOwnOnly(answer: Answer, asker: Tenant, about: string): void {
  for (const id of idsIn(answer)) assert.equal(owners.get(id), asker.shop.id, `${about} shows ${id}`)
}

async function snapshot(): Promise<string> {
  const rows = await db.query<{ text: string }>(
    `select stores::text as text from stores union all select wallets::text from wallets
     union all select links::text from links
     union all select checkouts::text from checkouts union all select events::text from events
     union all select credits::text from credits
     union all select refunds::text from refunds union all select refund_totals::text from refund_totals
     union all select webhook_endpoints::text from webhook_endpoints
     union all select deliveries::text from deliveries
     union all select idempotency_keys::text from idempotency_keys order by text`,
  )
  return rows.map(({ text }) => text).join('\n')
}

test('every keyed operation answers another store’s ids exactly like ids that do not exist, and changes nothing', async (t) => {
  const before = await snapshot()
  let count = 0
  for (const asker of tenants) {
    const expected = await Promise.all(
      attempts.map((each) => attempt(each, asker, (name) => nothing[name] ?? '')),
    )
    for (const distance of distances) {
      const other = tenants[(asker.number + distance) % storesCount]
      assert(other && other !== asker)
      await Promise.all(
        attempts.map(async (each, i) => {
          const { operation, query } = each
          const about = `${operation.id} ${each.foreign} ${query ?? ''}`
          const cursor = query === 'cursor' ? cursors[operation.id] : undefined
          const answer = await attempt(each, asker, (name) => (cursor ?? named[name])?.(other) ?? '')
          count++
          assertOwnOnly(answer, asker, about)
          if (query === null) assert.equal(answer.statusCode, 404, `${about}: ${answer.body}`)
          else assert.equal(answer.statusCode, 200, `${about}: ${answer.body}`)
          // A foreign cursor is only a position in time: the page after it has the asker's own data, and depends on it.
          if (!cursor) assert.equal(withoutRequest(answer), withoutRequest(expected[i] as Answer), about)
        }),
      )
    }
  }
  assert.equal(await snapshot(), before)
  assert(count >= 2_000, `only ${count} calls`)
  t.diagnostic(`${count} calls, ${attempts.length} kinds, ${storesCount * distances.length} pairs`)
})

test('a store’s payment cannot be accepted for another store’s checkout', async () => {
  const [mine, other] = tenants
  assert(mine && other)
  const before = await snapshot()
  const path = `/api/v1/payments/${mine.paymentId}/accept`
  const foreign = await mine.shop.call('POST', path, { checkoutId: other.checkoutId })
  const none = await mine.shop.call('POST', path, { checkoutId: nothing.checkoutId })
  assertProblem(foreign, 404, 'not_found')
  assert.equal(withoutRequest(foreign), withoutRequest(none))
  assert.equal(await snapshot(), before)
})

test('the lists, events and records that a store reads contain all of its own data and no other store’s', async () => {
  for (const tenant of tenants) {
    const seen = new Set<string>()
    for (const operation of operations.filter(({ isKeyed, method }) => isKeyed && method === 'GET')) {
      const own = Object.fromEntries(Object.entries(named).map(([name, of]) => [name, of(tenant)]))
      const search = operation.parameters.some(({ name }) => name === 'limit') ? '?limit=100' : ''
      const answer = await tenant.shop.call('GET', fillPath(operation.path, own) + search)
      assert.equal(answer.statusCode, 200, `${operation.id}: ${answer.body}`)
      assertOwnOnly(answer, tenant, operation.id)
      for (const id of idsIn(answer)) seen.add(id)
    }
    const all = [...owners].filter(([, owner]) => owner === tenant.shop.id).map(([id]) => id)
    assert.deepEqual([...seen].sort(), all.sort())
  }
})

test('the payment terms of a checkout do not contain the store’s id', async () => {
  for (const { checkoutId, shop } of tenants)
    for (const { path, method } of operations.filter(({ id }) => id.startsWith('payCheckout'))) {
      const answer = await farthing.request({ method, url: fillPath(path, { checkoutId }) })
      assert.equal(answer.statusCode, 402)
      assert(!JSON.stringify([answer.headers, answer.body]).includes(shop.id))
    }
})
