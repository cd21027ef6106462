import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EventPage } from '@farthing/sdk'
import type { Database } from '../../src/database/db.ts'
import {
  type Alongside,
  assignWaitingSequences,
  type NumberingPass,
} from '../../src/events/assign-sequence.ts'
import { findStandstill } from '../../src/events/find-standstill.ts'
import { Problem } from '../../src/problems.ts'
import { openTestApp } from '../support/app.ts'
import { openStore, type StoreClient } from '../support/store.ts'

const farthing = await openTestApp({ LOG_LEVEL: 'info' })
const { ctx, clock } = farthing

async function sequences({ call }: StoreClient): Promise<number[]> {
  return (await call('GET', '/api/v1/events')).json<EventPage>().data.map(({ sequence }) => sequence)
}
const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)
const held = async () => (await ctx.metrics.eventLogsHeld.get()).values[0]?.value
const linesOf = (message: RegExp) => farthing.logged.filter(({ msg }) => message.test(String(msg)))

test('a wrong counter and a poisoned event delay only their own stores, which go on once they are repaired', async () => {
  const stores = await Promise.all(Array.from({ length: 5 }, () => openStore(farthing)))
  const [first, behind, second, poisoned, third] = stores
  assert(first && behind && second && poisoned && third)
  const healthy = [first, second, third]
  const endpoint = await poisoned.call('POST', '/api/v1/webhook-endpoints', {
    url: 'https://shop.example/hook',
  })
  assert.equal(endpoint.statusCode, 201, endpoint.body)
  while ((await assignWaitingSequences(ctx)) > 0);
  const before = new Map(
    await Promise.all(stores.map(async (s) => [s, (await sequences(s)).length] as const)),
  )
  const was = (store: StoreClient) => before.get(store) ?? 0
  await ctx.db.query('update event_counters set last_sequence = last_sequence - 1 where store_id = $1', [
    behind.id,
  ])
  for (const store of stores) await store.create()
  await ctx.db.query(
    `insert into deliveries (id, store_id, endpoint_id, event_id, sequence, run_at)
     select 'dlv_taken', store_id, $2, id, 1, clock() from events where store_id = $1 and sequence is null`,
    [poisoned.id, endpoint.json<{ id: string }>().id],
  )

  const pass: NumberingPass = { after: '' }
  clock.now = new Date()
  assert.equal(await assignWaitingSequences(ctx, pass), healthy.length)
  for (const store of healthy) assert.deepEqual(await sequences(store), upTo(was(store) + 1))
  assert.equal(await held(), 2)
  const [line, ...more] = linesOf(/cannot be numbered/)
  assert.deepEqual(more, [])
  assert.deepEqual(line?.storeIds, [behind.id, poisoned.id].sort())
  const [finding, ...others] = await findStandstill(ctx)
  assert.deepEqual(others, [])
  assert.match(
    finding?.says ?? '',
    new RegExp(`the counter of ${behind.id} is \\d+, but its log has event \\d+`),
  )

  // Held stores are left alone for a while, so everybody else is numbered together again.
  for (const store of stores) await store.create()
  assert.equal(await assignWaitingSequences(ctx, pass), healthy.length)
  assert.equal(linesOf(/cannot be numbered/).length, 1)

  // As docs/runbook.md says.
  await ctx.db.query(
    `update event_counters set last_sequence = greatest(
       (select max(sequence) from events where store_id = $1),
       (select last_sequence from truncated_logs where store_id = $1))
     where store_id = $1`,
    [behind.id],
  )
  await ctx.db.query("delete from deliveries where id = 'dlv_taken'")
  clock.now = new Date(clock.now.getTime() + 61_000)
  assert.match(
    (await findStandstill(ctx))[0]?.says ?? '',
    /^4 events have no number yet, the oldest for 6\d seconds/,
  )
  assert.equal(await assignWaitingSequences(ctx, pass), 4)
  for (const store of stores) assert.deepEqual(await sequences(store), upTo(was(store) + 2))
  assert.equal(await held(), 0)
  assert.equal(linesOf(/numbered again/).length, 2)
  assert.deepEqual(await findStandstill(ctx), [])
})

/** What goes wrong with what is written with a store's events, without PostgreSQL refusing anything. */
const mistakes: Readonly<Record<string, () => never>> = {
  'an assertion': () => assert.fail('a fact that must be impossible'),
  'a value that has no meaning': () => void BigInt('a price') as never,
  'an error that looks like a lost connection': () => {
    throw Object.assign(new Error('the connection was terminated'), { code: 'ECONNRESET' })
  },
}

for (const [what, fail] of Object.entries(mistakes))
  test(`${what} about one store’s events delays only that store, which is tried again less and less often`, async () => {
    const stores = await Promise.all(Array.from({ length: 3 }, () => openStore(farthing)))
    const [first, wrong, last] = stores
    assert(first && wrong && last)
    while ((await assignWaitingSequences(ctx)) > 0);
    const before = await Promise.all(stores.map(async (store) => (await sequences(store)).length))
    const lines = linesOf(/cannot be numbered/).length
    let tries = 0
    const alongside: Alongside = {
      types: ['checkout.created'],
      async run(_, events) {
        if (!events.some(({ storeId }) => storeId === wrong.id)) return
        if (events.every(({ storeId }) => storeId === wrong.id)) tries++
        fail()
      },
    }
    const pass: NumberingPass = { after: '' }
    clock.now = new Date()
    const number = () => assignWaitingSequences(ctx, pass, [alongside])
    for (const store of stores) await store.create()
    assert.equal(await number(), 2)
    const given = async () => await Promise.all(stores.map(async (store) => (await sequences(store)).length))
    assert.deepEqual(await given(), [(before[0] ?? 0) + 1, before[1], (before[2] ?? 0) + 1])
    assert.equal(await held(), 1)
    const [line] = linesOf(/cannot be numbered/).slice(lines)
    assert.deepEqual(line?.storeIds, [wrong.id])
    // A minute of runs, ten in a second: it is tried after 1, 3, 7, 15 and 31 seconds, and all others at once.
    const started = clock.now.getTime()
    for (let i = 1; i <= 600; i++) {
      clock.now = new Date(started + i * 100)
      if (i % 100 === 0) await first.create()
      await number()
    }
    assert.equal(tries, 6)
    assert.equal((await given())[0], (before[0] ?? 0) + 7)
    // Repaired.
    clock.now = new Date(started + 120_000)
    assert.equal(await assignWaitingSequences(ctx, pass), 1)
    assert.equal(await held(), 0)
  })

test('without the database nothing is held back, and the run fails as a whole', async () => {
  const shop = await openStore(farthing)
  await shop.create()
  const away = () => Promise.reject(new Problem('unavailable', 'The database cannot be reached.'))
  const lost: Database = { ...ctx.db, transaction: away }
  let questions = 0
  lost.query = async (text, values) => (questions++ === 0 ? await ctx.db.query(text, values) : await away())
  const pass: NumberingPass = { after: '' }
  await assert.rejects(assignWaitingSequences({ ...ctx, db: lost }, pass), /cannot be reached/)
  assert.equal(pass.held?.size, 0)
  assert((await assignWaitingSequences(ctx, pass)) > 0)
})

test('a number that a deleted event had is not given again', async () => {
  const [shop, neighbour] = [await openStore(farthing), await openStore(farthing)]
  while ((await assignWaitingSequences(ctx)) > 0);
  const before = (await sequences(shop)).length
  await ctx.db.query('insert into truncated_logs (store_id, last_sequence) values ($1, $2)', [
    shop.id,
    before + 1,
  ])
  for (const store of [shop, neighbour]) await store.create()
  assert.equal(await assignWaitingSequences(ctx), 1)
  const given = await ctx.db.query<{ sequence: number | null }>(
    'select sequence::integer from events where store_id = $1 order by position',
    [shop.id],
  )
  assert.deepEqual(
    given.map(({ sequence }) => sequence),
    [...upTo(before), null],
  )
  assert.match((await findStandstill(ctx))[0]?.says ?? '', new RegExp(`but its log has event ${before + 1}`))
})
