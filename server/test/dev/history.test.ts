import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseFollower, lockFollower } from '../../src/chains/rows.ts'
import { countRollups } from '../../src/checkouts/rollups/count.ts'
import { readTakings } from '../../src/checkouts/rollups/takings.ts'
import type { Context } from '../../src/context.ts'
import { type Shop, writeHistory } from '../../src/dev/history.ts'
import { type OrderStep, planOrders } from '../../src/dev/orders.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import type { StoreId } from '../../src/ids.ts'
import { networks } from '../../src/networks.ts'
import { watchRefunds } from '../../src/refunds/watch.ts'
import { makeStore, openTestApp, wallet } from '../support/app.ts'
import { operator } from '../support/operator.ts'
import { until } from '../support/until.ts'

const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: 'http://127.0.0.1:1', FIXED_RATES: 'EUR=0.86' }
const { ctx } = await openTestApp(settings)
const moved = await openTestApp(settings)
const local = networks.find(({ id }) => id === 'LOCAL')
const [asset] = local?.assets ?? []
assert(local && asset)
const shopOf = (storeId: StoreId): Shop => ({
  storeId,
  network: local.caip2,
  asset: asset.address,
  payTo: wallet,
  actor: operator,
})

test('the demo store has two months behind it, with everything that happens to a store, each at its time', async () => {
  const { store } = await makeStore(ctx, { mode: 'test' })
  const now = ctx.now()
  await writeHistory(ctx, shopOf(store.id))
  const counts = async (sql: string) =>
    new Map((await ctx.db.query<{ name: string; n: number }>(sql)).map(({ name, n }) => [name, n]))
  const statuses = await counts('select status as name, count(*)::int as n from checkouts group by 1')
  for (const status of ['COMPLETED', 'EXPIRED', 'CANCELED']) assert((statuses.get(status) ?? 0) > 3, status)
  const paid = await counts('select disposition as name, count(*)::int as n from credits group by 1')
  for (const name of ['exact', 'late', 'underpaid', 'unmatched']) assert((paid.get(name) ?? 0) > 0, name)
  const told = await counts('select type as name, count(*)::int as n from events group by 1')
  for (const type of ['checkout.reopened', 'payment.accepted', 'payment.dismissed', 'payment.finalized'])
    assert((told.get(type) ?? 0) > 0, type)
  // Some went back, and work finds nothing new about them.
  while (await watchRefunds(ctx, { after: '' }));
  assert.deepEqual(await counts('select type as name, count(*)::int as n from events group by 1'), told)
  const returned = await counts('select status as name, count(*)::int as n from refunds group by 1')
  assert.deepEqual([...returned.keys()].sort(), ['COMPLETED', 'REQUESTED'])
  assert((returned.get('COMPLETED') ?? 0) > 5)
  const [unfinished] = await ctx.db.query(
    "select from refunds where is_watched or status = 'COMPLETED' and (transaction_hash is null or finality <> 'finalized')",
  )
  assert.equal(unfinished, undefined)
  assert.deepEqual(await listContradictions(ctx, now), [])

  // What happened on a day was booked by its end; only the last day is still to be booked.
  const [books = assert.fail()] = await ctx.db.query<{ days: number; late: number }>(
    `select count(distinct booked_at::date)::int as days,
       count(*) filter (where booked_at > happened_at + interval '2 days')::int as late
     from movements where type in ('payment', 'refund')`,
  )
  assert(books.days > 40, `${books.days}`)
  assert.equal(books.late, 0)

  while ((await assignWaitingSequences(ctx)) > 0);
  while (await countRollups(ctx));
  const takings = await readTakings(
    ctx,
    { id: store.id, timeZone: 'UTC', reportCurrency: 'USD' },
    'month',
    ctx.now(),
  )
  const [{ sum } = { sum: '' }] = await ctx.db.query<{ sum: string }>(
    `select sum(k.amount)::text as sum from credits k join checkouts c on c.id = k.checkout_id
     where k.disposition = 'exact' and c.status = 'COMPLETED' and c.price_currency <> 'USD'`,
  )
  assert(BigInt(sum) > 0n)
  assert.equal(takings.before.sum.left.length, 0)
  assert(takings.before.sum.payments > 50 && takings.before.sum.amount > 1_000_000_000n)
})

/** What work would have to finish, and what was written at another time than that of its step. */
async function listContradictions({ db }: Context, now: Date): Promise<readonly unknown[]> {
  const times = planOrders(now).flatMap(({ steps }) => steps.map(({ at }) => at.getTime()))
  return await db.query(
    `select 'credit' as what from credits where finalized_at is null or included_at > $1
     union all select 'status' from checkouts where status = 'PROCESSING' or status = 'OPEN' and expires_at < $2
     union all select 'refund' from events where type like 'refund.%' and created_at > $1
     union all select 'claim' from authorizations where state in ('claimed', 'sent')
     union all select 'order' from (select created_at < lag(created_at) over (order by position) as wrong
       from events where checkout_id is not null) e where wrong`,
    // The database's times are finer than ours.
    [new Date(Math.max(...times) + 1), now],
  )
}

test('a refund a minute before it is written is no contradiction: goods come back at any time of the day', async () => {
  // Half a minute after the last refund that is planned for a day.
  const evening = new Date('2026-11-19T23:59:00Z')
  const refundsAt = planOrders(evening).flatMap(({ steps }) =>
    steps.filter(({ does }) => does.startsWith('refund')).map(({ at }) => at.getTime()),
  )
  const now = new Date(Math.max(...refundsAt) + 30_000)
  moved.clock.now = now
  const { store } = await makeStore(moved.ctx, { mode: 'test' })
  await writeHistory(moved.ctx, shopOf(store.id))
  const [latest] = await moved.ctx.db.query<{ at: Date }>(
    "select max(created_at) as at from events where type = 'refund.completed'",
  )
  assert.equal(latest?.at.getTime(), now.getTime() - 30_000)
  assert.deepEqual(await listContradictions(moved.ctx, now), [])
})

test('whatever the day it ends on, every kind of order is in it', () => {
  const week = Array.from({ length: 7 }, (_, day) => new Date(Date.UTC(2026, 10, 16 + day, 12)))
  for (const now of week) {
    const steps = planOrders(now).flatMap((order) => order.steps)
    const count = (does: OrderStep['does']) => steps.filter((step) => step.does === does).length
    for (const does of [
      'create',
      'pay',
      'stray',
      'refuse',
      'cancel',
      'expire',
      'refund',
      'refund-half',
    ] as const)
      assert(count(does) > 3, `${does} on ${now.toISOString()}`)
    for (const does of ['accept', 'dismiss', 'ask-refund'] as const)
      assert(count(does) > 0, `${does} on ${now.toISOString()}`)
  }
})

test('it waits for a worker that holds the chain for longer than a request would wait', async () => {
  const { ctx: fresh } = await openTestApp(settings)
  const { store } = await makeStore(fresh, { mode: 'test' })
  await leaseFollower(fresh.db, local.caip2, 'work', 60)
  const isWaiting = async () => {
    const found = await fresh.db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
         and query like '%from followers%' and query_start < clock_timestamp() - interval '6 seconds'`,
    )
    return found.length > 0
  }
  // A promise in an object, because the transaction must not wait for what waits for it.
  const { writing } = await fresh.db.transaction(async (tx) => {
    await lockFollower(tx, local.caip2)
    const writing = writeHistory(fresh, shopOf(store.id))
    const tooEarly = writing.then(() => assert.fail('it did not wait'))
    await Promise.race([tooEarly, until('it has waited for six seconds', isWaiting)])
    tooEarly.catch(() => {})
    return { writing }
  })
  await writing
})

test('it is the same for everybody, and ends before today', () => {
  const now = new Date('2026-11-16T20:00:00Z')
  const orders = planOrders(now)
  assert.deepEqual(planOrders(now), orders)
  assert(orders.length > 250 && orders.length < 450, `${orders.length} orders`)
  assert(orders.every(({ steps }) => steps.every(({ at }) => at < now)))
  assert(orders.every(({ steps: [made] }) => made && made.at < new Date('2026-11-16')))
})
