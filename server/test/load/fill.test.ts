import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fill } from '../../../bench/fill.ts'
import { arrows, toStoreWire } from '../../src/checkouts/checkout.ts'
import { readStoredAnswer } from '../../src/checkouts/create.ts'
import { readPayViews } from '../../src/checkouts/pay-view.ts'
import { listPayments } from '../../src/checkouts/payments/list.ts'
import { readCheckout } from '../../src/checkouts/read.ts'
import { countRollups, rebuildRollups } from '../../src/checkouts/rollups/count.ts'
import { isPayable, readView } from '../../src/checkouts/view.ts'
import { readConfig } from '../../src/config/read.ts'
import type { Context } from '../../src/context.ts'
import type { Database } from '../../src/database/db.ts'
import { readEvents } from '../../src/events/read.ts'
import type { CheckoutId, StoreId } from '../../src/ids.ts'
import { openLog } from '../../src/log.ts'
import { openMetrics } from '../../src/metrics.ts'
import { freshDatabase } from '../support/database.ts'

/** What benchmarks and load tests fill a database with is what the product would have left there. */
const checkouts = 4_000
/** In several chunks, as a big fill is. */
const options = { stores: 5, checkouts, seed: 'a', until: new Date(), chunk: 1_500 }
const { url, db } = await freshDatabase()
const storeIds = await fill(db, options)
await db.query('analyze')
const ctx: Context = {
  config: readConfig({ DATABASE_URL: url, BASE_URL: 'https://farthing.example' }),
  db,
  log: openLog('silent'),
  metrics: openMetrics(),
  now: () => options.until,
}

test('every kind of checkout and payment is there', async () => {
  const read = async (sql: string) => (await db.query<{ value: string }>(sql)).map(({ value }) => value)
  assert.deepEqual(await read('select distinct status as value from checkouts order by 1'), [
    'CANCELED',
    'COMPLETED',
    'EXPIRED',
    'OPEN',
  ])
  assert.deepEqual(await read('select distinct disposition as value from credits order by 1'), [
    'exact',
    'late',
    'underpaid',
    'unmatched',
  ])
  assert.deepEqual(await read('select count(*)::text as value from checkouts'), [String(checkouts)])
  assert.deepEqual(await read('select max(place)::text as value from transaction_calls'), ['3'])
})

test('each log is numbered from 1 without gaps, in order of time, and its counter agrees', async () => {
  assert.deepEqual(
    await db.query(
      `select c.store_id from event_counters c left join events e on e.store_id = c.store_id group by c.store_id
       having min(e.sequence) <> 1 or max(e.sequence) <> count(*) or count(distinct e.sequence) <> count(*)
         or max(e.sequence) <> c.last_sequence`,
    ),
    [],
  )
  assert.deepEqual(
    await db.query(
      `select id from (select id, created_at < lag(created_at) over log or position < lag(position) over log as is_wrong
         from events window log as (partition by store_id order by sequence)) e where is_wrong`,
    ),
    [],
  )
})

test('what stores took is summed up as work would count it from the events', async () => {
  const read = () =>
    db.query(
      `select store_id, starts_at::text as at, figures from rollup_quarters
       union all select store_id, day::text, figures from rollup_days order by 1, 2`,
    )
  const filled = await read()
  assert.equal(await countRollups(ctx), false)
  for (const storeId of storeIds) await rebuildRollups(ctx, storeId)
  assert.deepEqual(await read(), filled)
})

test('versions have no gaps, statuses follow allowed arrows, and the last one is the checkout’s', async () => {
  const rows = await db.query<{
    id: string
    status: string
    version: number
    told: [number, string, string][]
  }>(
    `select c.id, c.status, c.version,
       json_agg(json_build_array(e.checkout_version, e.data->'checkout'->>'status', e.type) order by e.sequence) as told
     from checkouts c join events e on e.checkout_id = c.id and e.type like 'checkout.%' group by c.id`,
  )
  assert.equal(rows.length, checkouts)
  for (const { id, status, version, told } of rows) {
    assert.deepEqual(
      told.map(([version]) => version),
      Array.from({ length: version }, (_, i) => i + 1),
      id,
    )
    assert.equal(told.at(-1)?.[1], status, id)
    for (const [i, [, after, type]] of told.entries()) {
      const before = told[i - 1]?.[1]
      const allowed: Readonly<Record<string, string>> = arrows[(before ?? 'OPEN') as keyof typeof arrows]
      assert.equal(type, before === undefined ? 'checkout.created' : allowed[after], id)
    }
  }
})

/** Each finds rows that contradict others, and must find none. */
const contradictions: Readonly<Record<string, string>> = {
  'no COMPLETED checkout is without exactly one live exact credit, of the amount that it asked for': `
    select c.id from checkouts c where c.status = 'COMPLETED' and 1 <> (select count(*) from credits k
      where k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is null and k.store_id = c.store_id
        and k.amount::text = c.options->0->>'amount' and k.pay_to = lower(c.options->0->>'payTo')
        and k.block_time between c.created_at and c.expires_at)`,
  'no COMPLETED checkout is without the event that says so, with its version': `
    select c.id from checkouts c where c.status = 'COMPLETED' and 1 <> (select count(*) from events e
      where e.checkout_id = c.id and e.type = 'checkout.completed' and e.checkout_version = c.version)`,
  'no other checkout has an exact credit': `
    select c.id from checkouts c join credits k on k.checkout_id = c.id and k.disposition = 'exact'
    where c.status <> 'COMPLETED'`,
  'no open checkout is past its time, and none expired before it': `
    select id from checkouts c where (status = 'OPEN') <> (expires_at > now()) and status in ('OPEN', 'EXPIRED')`,
  'no credit is without its event': `
    select k.payment_id from credits k where not exists (select 1 from events e
      where e.type = 'payment.' || k.announced and e.data->'payment'->>'id' = k.payment_id)`,
  'no authorization is marked as credited without a credit, or the reverse': `
    select a.nonce from authorizations a where a.is_credited <> exists (select 1 from credits k where k.network = a.network
      and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce and k.checkout_id = a.checkout_id
      and k.amount = a.amount and k.pay_to = a.pay_to) or a.is_credited <> (a.state = 'sent')`,
  'no authorization is without the mined transaction that its credit names': `
    select a.nonce from authorizations a
    left join transaction_calls t on (t.nonce, t.payer, t.asset, t.network) = (a.nonce, a.payer, a.asset, a.network)
    left join broadcasts b on b.network = t.network and b.settler = t.settler and b.nonce = t.settler_nonce
    left join transactions x on x.network = t.network and x.settler = t.settler and x.nonce = t.settler_nonce
    left join credits k on (k.nonce, k.payer, k.asset, k.network) = (a.nonce, a.payer, a.asset, a.network)
    where x.mined_at is null or b.hash is null or k.transaction_hash <> b.hash`,
  'no settler has gaps in its nonces': `
    select s.address from settlers s join transactions t on t.settler = s.address group by s.network, s.address
    having max(t.nonce) <> count(*) - 1 or s.next_nonce <> count(*) or s.mined_nonce <> count(*)`,
  'no block has two hashes or times': `
    select block_number from credits where network like 'eip155:%' group by block_number
    having count(distinct block_hash) > 1 or count(distinct block_time) > 1`,
  'no plain transfer is matched without a reservation': `
    select k.payment_id from credits k where k.nonce is null and k.checkout_id is not null and not exists (
      select 1 from reserved_amounts r where r.checkout_id = k.checkout_id and r.network = k.network
        and (r.reference is not null or r.amount = k.amount))`,
  'no stored answer differs from the creation of its checkout': `
    select i.key from idempotency_keys i left join checkouts c on c.id = i.resource_id
    left join events e on e.checkout_id = c.id and e.checkout_version = 1 and e.type = 'checkout.created'
    where (e.data->'checkout')::jsonb - 'payment' is distinct from i.answer::jsonb`,
}

for (const [what, sql] of Object.entries(contradictions)) {
  test(what, async () => assert.deepEqual(await db.query(sql), []))
}

test('foreign keys hold, although the rows were written without checking them', async () => {
  const keys = await db.query<{ child: string; parent: string; columns: string[]; keys: string[] }>(
    `select conrelid::regclass::text as child, confrelid::regclass::text as parent,
       array(select attname::text from unnest(conkey) with ordinality as c (n, i) join pg_attribute on attrelid = conrelid
         and attnum = n order by i) as columns,
       array(select attname::text from unnest(confkey) with ordinality as c (n, i) join pg_attribute on attrelid = confrelid
         and attnum = n order by i) as keys
     from pg_constraint where contype = 'f'`,
  )
  assert(keys.length > 5)
  for (const { child, parent, columns, keys: names } of keys) {
    const match = columns.map((column, i) => `c.${column} = p.${names[i]}`).join(' and ')
    const isSet = columns.map((column) => `c.${column} is not null`).join(' and ')
    const sql = `select 1 as one from ${child} c where ${isSet}
      and not exists (select 1 from ${parent} p where ${match}) limit 1`
    assert.deepEqual(await db.query(sql), [], `${child} refers to ${parent}`)
  }
})

test('the product reads what is there as its own', async () => {
  const sample = await db.query<{ id: CheckoutId; store_id: StoreId; status: string; key: string | null }>(
    `select distinct on (c.status, c.version, n.type) c.id, c.store_id, c.status, i.key from checkouts c
     left join idempotency_keys i on i.resource_id = c.id
     left join events n on n.checkout_id = c.id and n.type like 'payment.%'
     order by c.status, c.version, n.type, c.id desc`,
  )
  assert(sample.length >= 7)
  for (const { id, store_id: storeId, status, key } of sample) {
    const read = await readCheckout(ctx, storeId, id)
    const log = await readEvents(ctx, storeId, {
      after: null,
      type: null,
      checkoutId: id,
      actor: null,
      limit: 100,
    })
    const payments = await listPayments(ctx, storeId, {
      checkoutId: id,
      disposition: null,
      cursor: null,
      limit: 20,
    })
    const last = log.data.at(-1)?.data as { checkout: object; payment?: object }
    assert.deepEqual(last.checkout, read, id)
    if (status === 'COMPLETED') assert.deepEqual([last.payment], payments.data)
    const view = await readView(ctx, id)
    assert(view)
    assert.equal(isPayable(view), status === 'OPEN')
    assert.equal(view.payment !== null, status === 'COMPLETED')
    assert.equal(view.notes.length, status === 'COMPLETED' ? 0 : payments.data.length)
    const [pay] = await readPayViews(db, [{ checkoutId: id, payment: null }])
    assert(pay)
    assert.deepEqual(toStoreWire(ctx, pay.checkout, null), { ...read, payment: null })
    if (key !== null) {
      const answer = await readStoredAnswer(db, storeId, 'POST /api/v1/checkouts', key)
      const created = log.data[0]?.data as { checkout: object }
      assert.deepEqual({ ...JSON.parse(answer?.body ?? ''), payment: null }, created.checkout)
    }
  }
  const strays = await Promise.all(
    storeIds.map((id) =>
      listPayments(ctx, id, { checkoutId: null, disposition: 'unmatched', cursor: null, limit: 100 }),
    ),
  )
  assert(strays.flatMap(({ data }) => data).length > 0)
})

test('the same seed gives the same rows, another seed gives others', async () => {
  const digest = async (of: Database) => {
    const tables = [
      'checkouts',
      'events',
      'idempotency_keys',
      'authorizations',
      'credits',
      'broadcasts',
      'reserved_amounts',
    ]
    // Events of different stores are written at the same time, so their places differ.
    const columns = tables.map(
      (
        name,
      ) => `(select md5(string_agg(r.row, '' order by r.row)) from (select (to_jsonb(r) - '${name === 'events' ? 'position' : ''}')::text as row
         from ${name} r) r) as ${name}`,
    )
    return await of.query(`select ${columns.join(', ')}`)
  }
  const { db: same } = await freshDatabase()
  await fill(same, options)
  assert.deepEqual(await digest(same), await digest(db))
  const { db: other } = await freshDatabase()
  await fill(other, { ...options, checkouts: 100, seed: 'b' })
  await fill(other, { ...options, checkouts: 100, seed: 'c' })
  assert.deepEqual(await other.query('select count(*)::integer as all from checkouts'), [{ all: 200 }])
})
