import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createServer, connect as dial, type Socket } from 'node:net'
import { after, test } from 'node:test'
import type { CreateCheckout } from '@farthing/sdk'
import type { Checkout } from '../../src/checkouts/checkout.ts'
import { insertCheckouts, type NewCheckout, openCreateCheckout } from '../../src/checkouts/create.ts'
import type { Context } from '../../src/context.ts'
import { type Database, openDatabase, sqlState } from '../../src/database/db.ts'
import { newId } from '../../src/ids.ts'
import { type Caller, openAuthenticator } from '../../src/stores/authenticate.ts'
import { makeStore, openTestApp, wallet } from '../support/app.ts'
import { operator } from '../support/operator.ts'
import { startProcess } from '../support/process.ts'

/** One request in five repeats an earlier one. LOAD_CREATES=2000 for a quick look. */
const requestCount = Number.parseInt(process.env.LOAD_CREATES ?? '10000', 10)
const keyCount = (requestCount / 5) * 4
const clients = 64
const deadlockRounds = 100
const lockTimeoutMs = 5_000

const app = await openTestApp()
const shop = await makeStore(app.ctx)
// PostgreSQL checks for deadlocks after this long. The default of one second would only make this file slow.
await app.ctx.db.query(
  `alter database ${new URL(app.databaseUrl).pathname.slice(1)} set deadlock_timeout = '20ms'`,
)

test('under load on two processes every key creates one checkout and one event, and repeats get the first answer byte for byte', async (t) => {
  const { ctx, databaseUrl } = app
  const environment = {
    DATABASE_URL: databaseUrl,
    KEY_REQUESTS_PER_SECOND: '1000000',
    ADDRESS_REQUESTS_PER_SECOND: '1000000',
  }
  const processes = await Promise.all([
    startProcess('serve', environment),
    startProcess('serve', environment),
  ])
  const { store, key } = await makeStore(ctx)
  const requests = planRequests()
  assert.equal(requests.length, requestCount)

  const began = performance.now()
  type Answer = { status: number; isReplay: boolean; body: string; from: number; to: number }
  const answers = Map.groupBy(await inParallel(requests, clients, send), ({ name }) => name)
  async function send({ name, process }: PlannedRequest): Promise<Answer & { name: string }> {
    const from = performance.now()
    const response = await fetch(`${processes[process]?.started.address}/api/v1/checkouts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json', 'idempotency-key': name },
      body: JSON.stringify({ orderId: `order of ${name}`, priceAmount: '12.50', priceCurrency: 'USD' }),
    })
    const body = await response.text()
    const isReplay = response.headers.get('idempotency-replayed') === 'true'
    return { name, status: response.status, isReplay, body, from, to: performance.now() }
  }

  t.diagnostic(`${requestCount} requests took ${Math.round(performance.now() - began)} ms`)
  let together = 0
  for (const [name, [first, second, ...rest]] of answers) {
    assert(first && rest.length === 0)
    const both = second ? [first, second] : [first]
    for (const { status, body } of both) assert.equal(status, 201, `${name}: ${body}`)
    assert.equal(both.filter(({ isReplay }) => isReplay).length, both.length - 1, name)
    assert.equal(second?.body ?? first.body, first.body, name)
    if (second && first.from < second.to && second.from < first.to) together++
  }
  t.diagnostic(
    `${together} of ${requestCount - keyCount} repeats were in flight at the same time as the first request`,
  )
  assert(together >= (requestCount - keyCount) / 4)

  // Without statistics of the rows that were just written, the planner reads one table for each row of another.
  await ctx.db.query('analyze checkouts, idempotency_keys, events')
  const rows = await ctx.db.query<{ key: string; answer: string; events: number }>(
    `select k.key, k.answer, count(e.id)::int as events
     from checkouts c
     left join idempotency_keys k on k.resource_id = c.id
     left join events e on e.checkout_id = c.id and e.type = 'checkout.created'
     where c.store_id = $1 group by c.id, k.key, k.answer`,
    [store.id],
  )
  assert.equal(rows.length, keyCount)
  for (const row of rows) assert.deepEqual([row.events, row.answer], [1, answers.get(row.key)?.[0]?.body])
})

type PlannedRequest = { readonly name: string; readonly process: 0 | 1 }

/**
 * Every fourth key is used twice. The repeat comes either right after the first request on the other process, right
 * after it on the same process (so that both are in one batch), or long after it.
 */
function planRequests(): PlannedRequest[] {
  const planned: PlannedRequest[] = []
  const late: PlannedRequest[] = []
  for (let i = 0; i < keyCount; i++) {
    const first: PlannedRequest = { name: randomUUID(), process: i % 2 === 0 ? 0 : 1 }
    const other: PlannedRequest = { name: first.name, process: first.process === 0 ? 1 : 0 }
    planned.push(first)
    if (i % 16 === 0 || i % 16 === 5) planned.push(other)
    else if (i % 16 === 10) planned.push(first)
    else if (i % 16 === 15) late.push(other)
  }
  return [...planned, ...late]
}

async function inParallel<Item, Result>(
  items: readonly Item[],
  width: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const queue = items.values()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) results.push(await run(item))
    }),
  )
  return results
}

test('two processes whose batches contain the same keys in opposite order never deadlock', async () => {
  const [one, other] = [openMore(app.databaseUrl), openMore(app.databaseUrl)]
  for (let round = 0; round < deadlockRounds; round++) {
    const batch = newBatch(64)
    const made = await Promise.all([
      insertCheckouts(one, batch, lockTimeoutMs),
      insertCheckouts(other, twin(batch).toReversed(), lockTimeoutMs),
    ])
    // For each key exactly one of the two creates the checkout.
    assert.equal((made[0]?.size ?? 0) + (made[1]?.size ?? 0), batch.length)
  }
})

test('without its order by, the same statement deadlocks, so the test above can fail', async () => {
  const [one, other] = [unordered(openMore(app.databaseUrl)), unordered(openMore(app.databaseUrl))]
  for (let round = 0; round < deadlockRounds; round++) {
    const batch = newBatch(64)
    const results = await Promise.allSettled([
      insertCheckouts(one, batch, lockTimeoutMs),
      insertCheckouts(other, twin(batch).toReversed(), lockTimeoutMs),
    ])
    const failures = results.filter((result) => result.status === 'rejected')
    for (const { reason } of failures) assert.equal(sqlState(reason.cause), '40P01', reason)
    if (failures.length > 0) return
  }
  assert.fail(`no deadlock in ${deadlockRounds} rounds`)
})

function unordered(db: Database): Database {
  return {
    ...db,
    query: (text, values) => {
      const changed = text.replace('order by store_id, route, key', '')
      assert.notEqual(changed, text)
      return db.query(changed, values)
    },
  }
}

test('text with quotes, commas, braces or backslashes is stored as it is, next to values that are missing', async () => {
  const { ctx } = app
  const create = openCreateCheckout(ctx, openAuthenticator(ctx))
  const orderIds = ['a"b', "a'b", 'a\\b', 'a,b', '{a}', 'NULL', 'ü 🙂', '\\x1f'].map(
    (text) => `plain ${text}`,
  )
  const made = await Promise.all(
    orderIds.map((orderId, i) => {
      const bodyHash = Buffer.alloc(32, i).toString('base64')
      const key = i % 2 === 0 ? { route: 'create', key: `{"plain,${i}\\`, bodyHash } : null
      return create(caller(), order(orderId, 600), key, ctx.now())
    }),
  )
  assert.deepEqual(await storedOrders('plain %'), orderIds.toSorted())
  for (const [i, { id, body }] of made.entries()) {
    const [row] = await ctx.db.query<{ order_id: string; data: string; answer: string | null }>(
      `select c.order_id, e.data::text as data, k.answer from checkouts c join events e on e.checkout_id = c.id
       left join idempotency_keys k on k.resource_id = c.id where c.id = $1`,
      [id],
    )
    const data = JSON.stringify({ checkout: { ...JSON.parse(body), payment: null } })
    assert.deepEqual(row, { order_id: orderIds[i], data, answer: i % 2 === 0 ? body : null })
  }
})

test('a value with the separator of columns is refused before it can move another checkout’s values', async () => {
  const [good, bad] = [newRow(randomUUID()), newRow(randomUUID())]
  const checkout = { ...bad.checkout, orderId: 'a\u001fb' }
  await assert.rejects(insertCheckouts(app.ctx.db, [good, { ...bad, checkout }], lockTimeoutMs), /joined/)
})

test('one bad row does not affect the other rows of its batch', async () => {
  const { ctx } = app
  const create = openCreateCheckout(ctx, openAuthenticator(ctx))
  const batchesBefore = await batchCounts(ctx)
  const orders = Array.from({ length: 32 }, (_, i) => `bad batch ${i}`)
  const results = await Promise.allSettled(
    // One checkout expires before it is created. Only a check constraint of the table rejects it here.
    orders.map((orderId, i) => create(caller(), order(orderId, i === 7 ? -1 : 600), null, ctx.now())),
  )
  const batches = await batchCounts(ctx)
  assert.deepEqual([batches.count - batchesBefore.count, batches.sum - batchesBefore.sum], [1, orders.length])
  results.forEach((result, i) => {
    if (i === 7) assert.equal(result.status === 'rejected' && sqlState(result.reason), '23514')
    else assert.equal(result.status, 'fulfilled')
  })
  assert.deepEqual(await storedOrders('bad batch %'), orders.toSpliced(7, 1).sort())
})

for (const keyed of [true, false]) {
  test(`after a lost reply, create recognises the checkout that it committed, ${keyed ? 'with' : 'without'} a key`, async () => {
    const proxy = await openProxy(app.databaseUrl)
    const db = openMore(proxy.url)
    const ctx: Context = { ...app.ctx, db }
    const create = openCreateCheckout(ctx, openAuthenticator(ctx))
    const orderId = `lost reply ${keyed}`
    const idempotency = keyed
      ? { route: 'create', key: randomUUID(), bodyHash: Buffer.alloc(32).toString('base64') }
      : null

    proxy.loseReplyTo(orderId)
    const created = await create(caller(), order(orderId, 600), idempotency, ctx.now())

    assert.equal(proxy.lost(), 1)
    assert.equal(created.isReplay, false)
    assert.deepEqual(await storedOrders(orderId), [orderId])
    const [row] = await app.ctx.db.query<{ id: string }>(
      `select c.id from checkouts c join events e on e.checkout_id = c.id where c.order_id = $1`,
      [orderId],
    )
    assert.equal(row?.id, created.id)
  })
}

/** A proxy to the database that can lose a reply: the statement has run, but the connection is gone. */
async function openProxy(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let awaited: string | null = null
  let lost = 0
  const server = createServer((client) => {
    const upstream = dial(Number.parseInt(target.port, 10), target.hostname)
    let isDoomed = false
    for (const socket of [client, upstream]) sockets.add(socket.on('error', () => {}))
    client.on('data', (chunk) => {
      if (awaited !== null && chunk.includes(awaited)) {
        awaited = null
        isDoomed = true
      }
      upstream.write(chunk)
    })
    upstream.on('data', (chunk) => {
      if (!isDoomed) return void client.write(chunk)
      lost++
      client.destroy()
      upstream.destroy()
    })
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = new URL(databaseUrl)
  const address = server.address()
  url.port = String(typeof address === 'object' && address?.port)
  return {
    url: url.href,
    lost: () => lost,
    loseReplyTo(text: string) {
      awaited = text
    },
  }
}

function openMore(url: string): Database {
  const db = openDatabase({ url, connections: 4, name: 'test-load' })
  after(() => db.close())
  return db
}

function caller(): Caller {
  const { store } = shop
  // Registering the wallet and creating the key each raised the revision.
  const holder = {
    secretHash: Buffer.alloc(32),
    key: { id: 'test', label: null, scopes: null, addresses: [], lastUsedAt: null },
    store: { ...store, revision: 3 },
    wallets: [{ family: 'EVM', address: wallet, isElsewhere: false, readyOn: [] }],
  } as const
  return { keyId: 'test', holder, actor: operator }
}

function order(orderId: string, expiresInSeconds: number): CreateCheckout {
  return { orderId, priceAmount: '12.50', priceCurrency: 'USD', expiresInSeconds }
}

async function batchCounts(ctx: Context): Promise<{ count: number; sum: number }> {
  const { values } = await ctx.metrics.batchRows.get()
  const value = (suffix: string) => values.find(({ metricName }) => metricName?.endsWith(suffix))?.value ?? 0
  return { count: value('_count'), sum: value('_sum') }
}

async function storedOrders(pattern: string): Promise<string[]> {
  const rows = await app.ctx.db.query<{ order_id: string }>(
    `select c.order_id from checkouts c join events e on e.checkout_id = c.id
     where c.order_id like $1 order by c.order_id`,
    [pattern],
  )
  return rows.map(({ order_id }) => order_id)
}

function newBatch(rows: number): NewCheckout[] {
  return Array.from({ length: rows }, () => newRow(randomUUID()))
}

/** The same keys as another process would send them, with different checkout ids. */
function twin(batch: readonly NewCheckout[]): NewCheckout[] {
  return batch.map(({ idempotency }) => newRow(idempotency?.key ?? ''))
}

function newRow(key: string): NewCheckout {
  const now = new Date()
  const checkout: Checkout = {
    id: newId('ch', '00', now),
    storeId: shop.store.id,
    linkId: null,
    orderId: `order of ${key}`,
    priceAmount: '12.50',
    priceCurrency: 'USD',
    successRedirectUrl: null,
    cancelUrl: null,
    description: null,
    metadata: null,
    rate: null,
    options: [],
    finality: 'included',
    status: 'OPEN',
    version: 1,
    createdAt: now,
    expiresAt: new Date(now.getTime() + 600_000),
  }
  return {
    checkout,
    revision: 3,
    eventId: newId('evt', '00', now),
    actor: operator,
    idempotency: { route: 'create', key, bodyHash: Buffer.alloc(32).toString('base64') },
    answer: JSON.stringify({ id: checkout.id }),
  }
}
