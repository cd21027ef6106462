/** Those who move checkouts to the archive and back, when they meet, and what strangers can make of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bringBack, holdCheckout, moveEnded, openMonth } from '../../src/archive/rows.ts'
import { erasePayer } from '../../src/checkouts/erase-payer.ts'
import { readPayViews } from '../../src/checkouts/pay-rows.ts'
import { notePayment } from '../../src/checkouts/payments/decide.ts'
import { lockCheckout, readCheckout } from '../../src/checkouts/rows.ts'
import { lockCheckouts } from '../../src/checkouts/status-rows.ts'
import { readView } from '../../src/checkouts/view.ts'
import type { Database, Transaction } from '../../src/database/db.ts'
import { holdEvents, lastSequenceBefore } from '../../src/events/webhooks/delivery-rows.ts'
import { type CheckoutId, newId } from '../../src/ids.ts'
import type { Payment } from '../../src/payments/payload.ts'
import { openTestApp } from '../support/app.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { openStore } from '../support/store.ts'
import { until } from '../support/until.ts'
import { agedDays, archiveAll, makeAged, makeEnded, openWork, placesOf } from './support/aged.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const work = openWork(farthing)
const shop = await openStore(farthing)
const storeId = shop.store.id

/** Runs `second` until it waits for a lock that `first` holds, then lets `first` commit. */
async function meet<Result>(
  first: (tx: Transaction) => Promise<unknown>,
  second: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const ahead = work.db.transaction(async (tx) => {
    await first(tx)
    begun.resolve()
    await go.promise
  })
  await Promise.race([begun.promise, ahead])
  const behind = ctx.db.transaction(second)
  const isWaiting = async () => {
    const waiting = await ctx.db.query(
      "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    return waiting.length > 0
  }
  await until('one waits for the other', isWaiting)
  go.resolve()
  await ahead
  return await behind
}

/** Moves whatever can be moved, in the caller's transaction. */
async function move(tx: Transaction, id: string): Promise<void> {
  const { moved } = await moveEnded(tx, { from: id, before: 'ch~', days: 90, limit: 500 })
  assert(moved > 0)
}

test('of those who bring back a checkout at once, all find it', async () => {
  const id = await makeEnded(farthing, shop, 'EXPIRED')
  const finders: readonly ((tx: Transaction) => Promise<boolean>)[] = [
    async (tx) => (await lockCheckout(tx, storeId, id)) !== null,
    async (tx) => (await lockCheckouts(tx, [id])).length === 1,
    async (tx) => {
      await holdCheckout(tx, id)
      const locked = await ctx.db.query(
        'select 1 as one from checkouts where id = $1 for update skip locked',
        [id],
      )
      return locked.length === 0
    },
  ]
  for (const find of finders) {
    await archiveAll(work)
    assert.deepEqual(await placesOf(farthing, id), ['archive'])
    assert(await meet((tx) => lockCheckouts(tx, [id]), find), String(find))
  }
})

test('whoever writes about a checkout that is just being moved brings it back', async () => {
  const { id, paymentId } = await makeAged(farthing, shop)
  await openMonth(work.db, id)
  await meet(
    (tx) => move(tx, id),
    (tx) => holdEvents(tx, storeId, 0n, 1_000),
  )
  assert.deepEqual(await placesOf(farthing, id), ['hot'], 'delivering its events again')
  const decision = {
    ...({ id: 'dec_1', kind: 'note', checkoutId: null } as const),
    ...{ storeId, paymentId, note: 'Thanks', actor: operator, createdAt: new Date() },
  }
  await meet(
    (tx) => move(tx, id),
    (tx) => notePayment(ctx, tx, decision, new Date()),
  )
  assert.deepEqual(await placesOf(farthing, id), ['hot'], 'a note')
})

test('a point in the log is found in the archive too', async () => {
  const quiet = await openStore(farthing)
  const id = await makeEnded(farthing, quiet, 'EXPIRED')
  const since = new Date(Date.now() - (agedDays - 1) * 86_400_000)
  const before = await lastSequenceBefore(ctx.db, quiet.store.id, since)
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, id), ['archive'])
  const after = await lastSequenceBefore(ctx.db, quiet.store.id, since)
  assert.equal(after, before)
})

test('a point in a long log is found without reading it, also between months that were dropped', async () => {
  const long = (await openStore(farthing)).store.id
  const [events, start] = [5_000, Date.now() - 100 * 86_400_000]
  const timeOf = (sequence: number) => new Date(start + sequence * 60_000)
  const kept = Array.from({ length: events }, (_, i) => i + 1).filter(
    (sequence) => sequence > 700 && (sequence <= 2_000 || sequence > 4_000),
  )
  await ctx.db.query('delete from events where store_id = $1', [long])
  await ctx.db.query(
    `insert into events (id, store_id, type, data, created_at, sequence)
     select 'evt_long' || i, $1, 'store.updated', '{}', $2::timestamptz + make_interval(mins => i), i
     from unnest($3::integer[]) i`,
    [long, timeOf(0), kept],
  )
  await ctx.db.query('update event_counters set last_sequence = $2 where store_id = $1', [long, events])
  await ctx.db.query('analyze events')
  let looks = 0
  let plans = ''
  const db: Database = {
    ...ctx.db,
    async query(text, values) {
      if (!text.includes('all_events')) return await ctx.db.query(text, values)
      looks++
      plans += JSON.stringify(await ctx.db.query(`explain (analyze, format json) ${text}`, values))
      return await ctx.db.query(text, values)
    },
  }
  for (const at of [-5, 1, 700, 702, 703, 1_234, 2_000, 2_002, 3_000, 4_001, 4_002, 4_999, 5_001, 9_000]) {
    looks = 0
    const found = Number(await lastSequenceBefore(db, long, timeOf(at)))
    // A minute of margin, which is one event here.
    assert.deepEqual(
      kept.filter((sequence) => sequence > found),
      kept.filter((sequence) => sequence >= at - 1),
      `since ${at}`,
    )
    assert(looks <= Math.ceil(Math.log2(events)) + 1, `${looks} looks`)
  }
  assert.doesNotMatch(plans, /"Rows Removed by Filter":[1-9]|"Seq Scan"|"Sort"/)
})

test('an id that nobody has is not looked for in every month of every table', async () => {
  const asked: string[] = []
  const query: Database['query'] = (text, values) => {
    asked.push(text)
    return ctx.db.query(text, values)
  }
  const db = { ...ctx.db, query }
  const id = newId('ch', ctx.config.cell, new Date(0))
  assert.equal(await readView({ ...ctx, db }, id), null)
  assert.deepEqual(await readPayViews(db, [{ checkoutId: id, payment: null }]), [null])
  assert.equal(await readCheckout(db, storeId, id), null)
  assert(asked.length > 3)
  for (const sql of asked) assert.doesNotMatch(sql, /all_(credits|authorizations|reserved_amounts)/)
})

test('a payer’s archived payments are not gone through when a payment names the payer and an archived checkout', async () => {
  const { id } = await makeAged(farthing, shop)
  await archiveAll(work)
  const [archived] = await ctx.db.query<{ network: string; asset: string; payer: string }>(
    'select network, asset, payer from archived_authorizations where checkout_id = $1',
    [id],
  )
  assert(archived)
  await ctx.db.query(
    `insert into archived_authorizations select (jsonb_populate_record(a, jsonb_build_object('nonce', n::text))).*
     from archived_authorizations a cross join generate_series(1, 300) as n where a.checkout_id = $1`,
    [id],
  )
  await ctx.db.query('analyze archived_authorizations')
  const heard: [string, readonly unknown[]][] = []
  const query: Database['query'] = (text, values = []) => {
    if (text.includes(' all_authorizations')) heard.push([text, values])
    return ctx.db.query(text, values)
  }
  const payment = { ...archived, nonce: '0x00', identifier: null } as unknown as Payment
  const [view] = await readPayViews({ ...ctx.db, query }, [{ checkoutId: id as CheckoutId, payment }])
  assert.equal(view?.checkout.id, id)
  assert.equal(heard.length, 1)
  const [text, values] = heard[0] ?? ['', []]
  const plan = JSON.stringify(await ctx.db.query(`explain (analyze, format json) ${text}`, values))
  const scans = plan.matchAll(
    /"Relation Name":"archived_authorizations\w*".*?"Actual Rows":(\d+).*?(?="Node Type"|$)/g,
  )
  const visited = Array.from(
    scans,
    ([scan, rows]) => Number(rows) + Number(/"Rows Removed by Filter":(\d+)/.exec(scan)?.[1] ?? 0),
  )
  assert(visited.length > 0 && Math.max(...visited) < 10, visited.join())
})

test('a month of the archive is opened only for a checkout that there is', async () => {
  const db = openAs('work', farthing.databaseUrl)
  for (const id of [
    newId('ch', ctx.config.cell, new Date(0)),
    newId('ch', 'zz', new Date(Date.now() - 1e10)),
  ])
    await assert.rejects(openMonth(db, id), /no such checkout/)
  // Two that open one at once do not disturb each other.
  const made = await makeEnded(farthing, await openStore(farthing), 'EXPIRED')
  await ctx.db.query('update checkouts set id = $2 where id = $1', [
    made,
    newId('ch', ctx.config.cell, new Date(1.6e12)),
  ])
  const [{ id } = { id: '' }] = await ctx.db.query<{ id: string }>(
    'select id from checkouts order by id limit 1',
  )
  const opened = await Promise.all([openMonth(db, id), openMonth(work.db, id)])
  assert.deepEqual(opened.toSorted(), [false, true])
})

test('a payer who is erased is erased from what settlers sent too, wherever that is', async () => {
  const { id } = await makeAged(farthing, await openStore(farthing))
  await archiveAll(work)
  const [signed] = await ctx.db.query<{ payer: string; nonce: string; asset: string; network: string }>(
    'select payer, nonce, asset, network from archived_authorizations where checkout_id = $1',
    [id],
  )
  assert(signed)
  const { payer, nonce, asset, network } = signed
  await ctx.db.query(
    'create table archived_transaction_calls_old partition of archived_transaction_calls default',
  )
  await ctx.db.query("insert into archived_transaction_calls values ($1, '0x1', 0, 0, $2, $3, $4, clock())", [
    network,
    asset,
    payer,
    nonce,
  ])
  await erasePayer(ctx, payer)
  const left = await ctx.db.query('select 1 as one from all_transaction_calls where payer = $1', [payer])
  assert.deepEqual(left, [])
})

test('two payers of one amount in one transaction, with one nonce between them, can be erased and their checkouts come back', async () => {
  const [first, second] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  const payers = ['0x00000000000000000000000000000000000000a1', '0x00000000000000000000000000000000000000a2']
  const nonce = `0x${'7'.repeat(64)}`
  for (const [i, { id }] of [first, second].entries()) {
    await ctx.db.query('update authorizations set payer = $2, nonce = $3 where checkout_id = $1', [
      id,
      payers[i],
      nonce,
    ])
    await ctx.db.query(
      `update credits set payer = $2, nonce = $3, transaction_hash = '0x7a', block_hash = '0x7b', log_index = $4
       where checkout_id = $1`,
      [id, payers[i], nonce, i],
    )
  }
  await archiveAll(work)
  for (const payer of payers) await erasePayer(ctx, payer)
  for (const { id } of [first, second]) {
    await bringBack(ctx.db, [id])
    assert.deepEqual(await placesOf(farthing, id), ['hot'])
  }
  const [row] = await ctx.db.query<{ whole: number }>(
    `select count(*)::int as whole from credits k join authorizations a using (payer, nonce, asset, network)
     where k.checkout_id = any($1) and a.checkout_id = k.checkout_id and a.is_credited and a.nonce <> $2`,
    [[first.id, second.id], nonce],
  )
  assert.equal(row?.whole, 2, 'each payment still has the signature that made it')
})
