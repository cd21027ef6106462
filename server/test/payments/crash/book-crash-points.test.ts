/** Killed while it numbers events or books lines, `work` loses, doubles and swaps neither. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CrashPoint } from '../../../src/crash.ts'
import { makeStore } from '../../support/app.ts'
import { openChain } from '../../support/chain/open.ts'
import { reached, throughDeaths } from './deaths.ts'
import { type Deployment, openDeployment, payTo } from './deployment.ts'
import { until } from './processes.ts'
import { rounds } from './rounds.ts'

const points = [
  'sequence-before-commit',
  'sequence-after-commit',
  'book-before-commit',
  'book-before-done',
] as const satisfies readonly CrashPoint[]

const ordersPerRound = 3

test('killed at any point of it, every event has its number and all final money its line, each once and in order', async (t) => {
  const chain = await openChain({ blockTimeSeconds: 1 })
  const deployment = await openDeployment(chain, { payers: 20 })
  // Money that completes no checkout is in the books of both stores.
  await makeStore(deployment.ctx, { mode: chain.network.mode, evmWallet: payTo })
  let amount = 1_234_567n
  for (const round of rounds(t, 'rounds', 2, 20)) {
    const payers = Array.from({ length: ordersPerRound }, (_, i) => deployment.payer(round + i))
    const orders = await Promise.all(payers.map((payer) => deployment.order(payer)))
    for (const { status } of await Promise.all(orders.map(({ id, header }) => deployment.pay(id, header))))
      assert.equal(status, 200)
    await until('everything is numbered', async () => (await countOf(deployment, waitingEvents)) === 0)
    await deployment.stop('work')
    // What is numbered first after the start are the events of payments that are final now, with their lines.
    await chain.mine(9)
    const before = points.map((point) => reached.get(point) ?? 0)
    const isOver = () => points.every((point, i) => (reached.get(point) ?? 0) > (before[i] ?? 0))
    await throughDeaths(deployment, 'work', points, () =>
      until('it was killed at each of them', async () => {
        if (isOver()) return true
        await chain.mint(payTo, amount++)
        await chain.mine(9)
        return false
      }),
    )
    await chain.mine(9)
    await until('all of it is numbered and booked', async () => {
      const left = await countOf(deployment, `${waitingEvents} union all ${unbooked}`)
      return left === 0
    })
    assert.deepEqual(await listWrong(deployment), [])
  }
  await deployment.check()
})

const waitingEvents = 'select 1 as one from events where sequence is null'

/** Final or queued money without its line. */
const unbooked = `select 1 from movements_due
  union all select 1 from credits k where k.orphaned_at is null and not exists (
    select 1 from movements m where m.payment_id = k.payment_id and m.type = 'payment')`

async function countOf({ db }: Deployment, sql: string): Promise<number> {
  return (await db.query(sql)).length
}

/** What must never be. */
async function listWrong({ db }: Deployment): Promise<readonly unknown[]> {
  const found = await Promise.all(
    [
      `select 'a number of an event is missing or given twice' as what, store_id from events e
       group by store_id having max(sequence) <> count(*) or min(sequence) <> 1 or count(distinct sequence) <> count(*)
         or max(sequence) <> (select last_sequence from event_counters c where c.store_id = e.store_id)`,
      `select 'the events of a checkout are not in order' as what, checkout_id from (
         select checkout_id, sequence < lag(sequence) over (partition by checkout_id order by position) as wrong
         from events where checkout_id is not null) e where wrong`,
      `select 'a payment is told to be final other than once' as what, checkout_id from credits k
       where checkout_id is not null and 1 <> (select count(*) from events e where e.checkout_id = k.checkout_id
         and e.type = 'payment.finalized')`,
      `select 'a number of a line is missing' as what, store_id from movements
       group by store_id having max(number) <> count(*) or min(number) <> 1`,
      `select 'lines are not in the order of time' as what, store_id, number from (
         select store_id, number, booked_at < lag(booked_at) over (partition by store_id order by number) as wrong
         from movements) m where wrong`,
      // Two stores have the wallet, so money without a checkout has two lines.
      `select 'money is booked other than once per store' as what, k.payment_id from credits k
       where orphaned_at is null and (select count(*) from movements m where m.payment_id = k.payment_id)
         <> case when k.checkout_id is null then 2 else 1 end`,
      `select 'sums differ from the lines' as what, m.sum from (select sum(amount) from movements) m,
         (select sum(amount) from movement_quarters) q where m.sum <> q.sum`,
    ].map((sql) => db.query(sql)),
  )
  return found.flat()
}

test('every crash point of numbering and booking was reached', () => {
  assert.deepEqual(
    points.filter((point) => (reached.get(point) ?? 0) < 2),
    [],
  )
})
