/** What is deleted, what is not, and that what is deleted can never count again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import { countRollups } from '../../../src/checkouts/rollups/count.ts'
import { updateStatus } from '../../../src/checkouts/update-status.ts'
import type { Transaction } from '../../../src/database/db.ts'
import { writeHistory } from '../../../src/dev/history.ts'
import { holdEvents, lastSequenceBefore } from '../../../src/events/webhooks/deliveries.ts'
import { networks } from '../../../src/networks.ts'
import { startProgram, untilCrashed } from '../../payments/crash/processes.ts'
import { makeStore, openTestApp, wallet } from '../../support/app.ts'
import { openAs } from '../../support/database.ts'
import { operator } from '../../support/operator.ts'
import { openStore } from '../../support/store.ts'
import {
  agedDays,
  deleteAll,
  isThere,
  makeAged,
  makeEnded,
  openWork,
  rowsOf,
  sendAged,
  tables,
} from './support/aged.ts'

const farthing = await openTestApp({
  NETWORKS: 'LOCAL',
  LOCAL_RPC_URLS: 'http://127.0.0.1:1',
  FIXED_RATES: 'EUR=0.86',
})
const { ctx } = farthing
const work = openWork(farthing)
const sums = [
  'buyer_receipts',
  'buyer_receipt_counters',
  'rollup_quarters',
  'rollup_days',
  'refunds',
  'refund_totals',
  'event_counters',
]

test('of a store’s whole history what is deleted leaves its keys and its sums, and all that stays is as it was', async () => {
  const local = networks.find(({ id }) => id === 'LOCAL')
  const [asset] = local?.assets ?? []
  assert(local && asset)
  const { store } = await makeStore(ctx, { mode: 'test' })
  const place = { network: local.caip2, asset: asset.address, payTo: wallet, actor: operator }
  await writeHistory(ctx, { storeId: store.id, ...place }, 8)
  while ((await numberEvents(ctx)) > 0);
  await deleteAll(work)
  const before = await rowsOf(farthing)
  const summed = await rowsOf(farthing, sums)
  const final = await ctx.db.query<{ key: string; checkout_id: string }>(
    `select x.key::text, k.checkout_id from credits k cross join lateral (values
       (credit_key(k.network, k.transaction_hash, k.asset, k.payer, k.pay_to, k.amount, k.position)),
       (nonce_key(k.network, k.asset, k.payer, k.nonce))) as x (key)
     where k.orphaned_at is null and k.checkout_id is not null and x.key is not null`,
  )
  assert.deepEqual(await ctx.db.query('select 1 as one from kept_credits'), [], 'all of it is recent')

  const later = openWork(farthing, `${agedDays}days`)
  await deleteAll(later, new Date(Date.now() + agedDays * 86_400_000))
  const left = new Set(await rowsOf(farthing))
  const gone = before.filter((row) => !left.has(row))
  assert(gone.length > 50 && left.size > 0, `${gone.length} deleted, ${left.size} left`)
  assert.deepEqual(
    [...left].filter((row) => !before.includes(row)),
    [],
    'nothing that stays has changed',
  )
  assert.deepEqual(await rowsOf(farthing, sums), summed)
  const ids = new Set((await ctx.db.query<{ id: string }>('select id from checkouts')).map(({ id }) => id))
  const kept = new Set(
    (await ctx.db.query<{ key: string }>('select key::text from kept_credits')).map(({ key }) => key),
  )
  for (const { key, checkout_id } of final) assert.equal(kept.has(key), !ids.has(checkout_id), checkout_id)
  for (const table of tables.slice(1))
    assert.deepEqual(
      await ctx.db.query(
        `select 1 as one from ${table} t where t.checkout_id is not null
         and not exists (select 1 from checkouts c where c.id = t.checkout_id)`,
      ),
      [],
      table,
    )
})

/** Each keeps a checkout that was paid long ago from being deleted, until it is undone. */
const reasons: readonly (readonly [why: string, does: string, undoes: string])[] = [
  [
    'it is open',
    "update checkouts set status = 'OPEN' where id = $1",
    "update checkouts set status = 'COMPLETED' where id = $1",
  ],
  [
    'it is being paid',
    "update checkouts set status = 'PROCESSING' where id = $1",
    "update checkouts set status = 'COMPLETED' where id = $1",
  ],
  [
    'it expired lately',
    'update checkouts set expires_at = clock() where id = $1',
    'update checkouts set expires_at = created_at + interval $$1 hour$$ where id = $1',
  ],
  [
    'an event has no number',
    'update events set sequence = null where checkout_id = $1',
    'update events e set sequence = (select max(sequence) from events o where o.store_id = e.store_id) + 1 where checkout_id = $1',
  ],
  [
    'something happened lately',
    'update events set created_at = clock() where checkout_id = $1',
    `update events set created_at = created_at - interval '${agedDays} days' where checkout_id = $1`,
  ],
  [
    'its payment is not final',
    'update credits set finalized_at = null where checkout_id = $1',
    'update credits set finalized_at = included_at where checkout_id = $1',
  ],
  [
    'one provider alone told of its payment',
    'update credits set witnessed_at = null where checkout_id = $1',
    'update credits set witnessed_at = included_at where checkout_id = $1',
  ],
  [
    'nobody decided about its payment',
    "update credits set disposition = 'late' where checkout_id = $1",
    'update credits set dismissed_at = included_at where checkout_id = $1',
  ],
  [
    'its payment left the chain and may return',
    'update credits set orphaned_at = included_at where checkout_id = $1',
    'update credits set orphaned_at = null where checkout_id = $1',
  ],
  [
    'its signature may still move money',
    'update authorizations set is_credited = false where checkout_id = $1',
    'update authorizations set is_credited = true where checkout_id = $1',
  ],
  [
    'a refused signature is still valid',
    "update authorizations set state = 'rejected', is_credited = false, resolved_at = claimed_at, valid_before = 4000000000 where checkout_id = $1",
    'update authorizations set valid_before = 1 where checkout_id = $1',
  ],
  [
    'an amount is reserved for it',
    `insert into reserved_amounts select id, 'n', 'a', 'p', 1, 0, created_at from checkouts where id = $1`,
    'update reserved_amounts set freed_at = reserved_at where checkout_id = $1',
  ],
  [
    'a transaction is being looked for',
    `insert into pasted_transactions select id, 'n', '0x', created_at from checkouts where id = $1`,
    "update pasted_transactions set outcome = 'not_found' where checkout_id = $1",
  ],
  [
    'money without a checkout may be meant for it',
    `with k as (insert into credits select (r).* from (select jsonb_populate_record(k, jsonb_build_object('payment_id', 'pay_stray', 'checkout_id', null, 'nonce', null, 'log_index', 7, 'position', 7, 'disposition', 'unmatched')) as r from credits k where checkout_id = $1) k returning 1) insert into payment_hints select 'pay_stray', id, 'late', created_at from checkouts where id = $1`,
    `with h as (select 1 from checkouts where id = $1) delete from credits where payment_id = 'pay_stray' and exists (select 1 from h)`,
  ],
  [
    'a refund is on its way',
    `with t as (insert into refund_totals select network, asset, 'i', payment_id, store_id, amount, 1 from credits where checkout_id = $1 returning *) insert into refunds (id, store_id, payment_id, checkout_id, network, asset, identity, wallet, amount, way, status, version, actor, created_at) select 'rf_1', store_id, payment_id, $1, network, asset, identity, 'w', 1, 'signed', 'REQUESTED', 1, '{}', clock() - interval '${agedDays} days' from t`,
    "update refunds set status = 'DECLARED', declared = 'x' where checkout_id = $1",
  ],
  [
    'a decision waits',
    `insert into decisions (id, store_id, payment_id, kind, actor, created_at) select 'dec_1', store_id, payment_id, 'note', '{}', clock() from credits where checkout_id = $1`,
    `delete from decisions where payment_id in (select payment_id from credits where checkout_id = $1)`,
  ],
  [
    'a webhook about it was delivered lately',
    `with w as (insert into webhook_endpoints (id, store_id, url, secrets, created_at) select 'we_1', store_id, 'https://shop.example', '[]', clock() from checkouts where id = $1 returning *) insert into deliveries (id, store_id, endpoint_id, event_id, run_at, sequence) select 'dlv_1', w.store_id, w.id, e.id, clock(), e.sequence from w join events e on e.checkout_id = $1 limit 1`,
    'delete from deliveries where event_id in (select id from events where checkout_id = $1)',
  ],
  [
    'what was sent for it has no outcome',
    `with s as (insert into settlers (network, address, next_nonce) select distinct network, '0x5e', 1 from authorizations where checkout_id = $1 returning *), t as (insert into transactions (network, settler, nonce, created_at) select network, address, 0, clock() from s) insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce) select s.network, s.address, 0, 0, a.asset, a.payer, a.nonce from s join authorizations a on a.checkout_id = $1`,
    `with h as (select 1 from checkouts where id = $1) update transactions set mined_at = clock() - interval '${agedDays} days' where exists (select 1 from h)`,
  ],
  [
    'its payment was accepted lately',
    'update credits set accepted_at = clock() where checkout_id = $1',
    'update credits set accepted_at = null where checkout_id = $1',
  ],
  [
    'what it brought is not counted',
    'update events e set sequence = (select max(sequence) from events o where o.store_id = e.store_id) + 100000 where checkout_id = $1',
    'update rollup_cursors r set sequence = 1000000 from checkouts c where c.id = $1 and r.store_id = c.store_id',
  ],
  [
    'a restored database is being compared with its chain',
    "insert into restores select 'n', clock() from checkouts where id = $1",
    'with h as (select 1 from checkouts where id = $1) delete from restores where exists (select 1 from h)',
  ],
]

test('nothing is deleted that may still move money, or waits for somebody', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const ids = new Map<string, string>()
  for (const [why] of reasons) ids.set(why, (await makeAged(farthing, shop, why)).id)
  const free = await makeEnded(farthing, shop, 'CANCELED')
  for (const [why, does] of reasons) await ctx.db.query(does, [ids.get(why)])
  // While a database is compared with its chain nothing is deleted at all.
  await deleteAll(work)
  assert(await isThere(farthing, free))
  const [last = ''] = [...ids.values()].reverse()
  await ctx.db.query(reasons.at(-1)?.[2] ?? '', [last])
  await deleteAll(work)
  for (const [why, id] of ids) assert.equal(await isThere(farthing, id), id !== last, why)
  for (const [why, , undoes] of reasons.slice(0, -1)) await ctx.db.query(undoes, [ids.get(why)])
  await deleteAll(work)
  for (const [why, id] of ids) assert.equal(await isThere(farthing, id), false, why)
})

test('nothing is deleted unless RETENTION_DAYS is set, and nothing younger than 90 days, whatever is asked', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const old = await makeEnded(farthing, shop, 'EXPIRED')
  const young = await makeEnded(farthing, shop, 'EXPIRED', 'order-2', 80)
  await deleteAll({ ...work, config: { ...work.config, retentionDays: 0 } })
  assert(await isThere(farthing, old))
  await deleteAll({ ...work, config: { ...work.config, retentionDays: 1 } })
  assert.equal(await isThere(farthing, old), false)
  assert(await isThere(farthing, young))
})

test('money that is found while its checkout is deleted is written without it by the next run', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const { id } = await makeAged(farthing, shop)
  const writing = ctx.db.transaction(async (tx) => {
    // Not committed, so whoever deletes cannot see it.
    await tx.query(
      `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
         position, asset, payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
       select network, 'later', 0, 'pay_later', 2, clock(), 'later', 0, asset, payer, pay_to, amount, store_id,
         checkout_id, 'overpaid', clock(), clock() from credits where checkout_id = $1`,
      [id],
    )
    await deleteAll(work)
    await updateStatus(ctx, tx, [id], new Date())
  })
  await assert.rejects(writing, /deleted meanwhile/)
  assert.equal(await isThere(farthing, id), false)
})

test('a checkout that somebody holds is passed, and an event that is redelivered is not deleted', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const store = await openStore(farthing, { mode: 'test' })
  const held = await makeEnded(farthing, shop, 'EXPIRED')
  const told = await makeEnded(farthing, store, 'EXPIRED')
  const free = await makeEnded(farthing, shop, 'EXPIRED')
  await ctx.db.transaction(async (tx: Transaction) => {
    await tx.query('select 1 as one from checkouts where id = $1 for no key update', [held])
    await holdEvents(tx, store.store.id, 0n, 1_000)
    await deleteAll(work)
  })
  assert(await isThere(farthing, held))
  assert(await isThere(farthing, told))
  assert.equal(await isThere(farthing, free), false)
  const since = new Date(Date.now() - (agedDays - 1) * 86_400_000)
  const before = await lastSequenceBefore(ctx.db, shop.store.id, since)
  await deleteAll(work)
  assert.equal(
    await lastSequenceBefore(ctx.db, shop.store.id, since),
    before,
    'a point in the log is still found',
  )
})

test('what was sent for payments goes with the last of them, and stays while it carried something that is kept', async () => {
  const farthing = await openTestApp()
  const { ctx } = farthing
  const shop = await openStore(farthing)
  const work = openWork(farthing)
  const [first, second] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  await sendAged(farthing, [first.id, second.id])
  const sent = ['transactions', 'transaction_calls', 'broadcasts']
  const before = await rowsOf(farthing, sent)
  await ctx.db.query('update credits set finalized_at = null where checkout_id = $1', [second.id])
  await deleteAll(work)
  assert.equal(await isThere(farthing, first.id), false)
  assert.deepEqual(await rowsOf(farthing, sent), before, 'one of its payments is still there')
  await ctx.db.query('update credits set finalized_at = included_at where checkout_id = $1', [second.id])
  await deleteAll(work)
  assert.deepEqual(await rowsOf(farthing, sent), [])

  const { id } = await makeAged(farthing, shop)
  await ctx.db.query('delete from settlers')
  await sendAged(farthing, [id])
  await ctx.db.query(
    `with a as (
       insert into authorizations (network, asset, payer, nonce, state, pay_to, amount, valid_after,
         valid_before, signature, claimed_at, is_credited)
       select network, asset, '0xw', '0xn', 'sent', '0xp', 1, 0, 1, 'x', claimed_at, true from authorizations
       where checkout_id = $1 returning *
     )
     insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
     select t.network, t.settler, t.nonce, 9, a.asset, a.payer, a.nonce from transactions t join a using (network)`,
    [id],
  )
  await deleteAll(work)
  assert.equal(await isThere(farthing, id), false)
  assert.equal((await rowsOf(farthing, sent)).length, 4)
})

test('no process can delete anything else, or change what must never count again', async () => {
  for (const role of ['serve', 'work', 'console'] as const) {
    const db = openAs(role, farthing.databaseUrl)
    for (const sql of [
      'delete from checkouts',
      'delete from credits',
      'delete from kept_credits',
      "insert into kept_credits values ('', '', 'exact')",
      'delete from truncated_logs',
      ...(role === 'work' ? [] : ["select delete_over('', 'ch~', 0, 1)"]),
    ])
      await assert.rejects(db.query(sql), /permission denied/, `${role}: ${sql}`)
  }
})

test('two processes that delete at once, and more than a batch, leave nothing over and nothing in part', async () => {
  const farthing = await openTestApp()
  const shop = await openStore(farthing)
  const { id } = await makeAged(farthing, shop)
  await makeEnded(farthing, shop, 'EXPIRED')
  await farthing.ctx.db.query(
    `insert into checkouts select (jsonb_populate_record(c, jsonb_build_object('id', substr(c.id, 1, 23) || lpad(n::text, 8, '0')))).*
     from checkouts c cross join generate_series(1, 450) as n where c.id <> $1`,
    [id],
  )
  await Promise.all([deleteAll(openWork(farthing)), deleteAll(openWork(farthing))])
  await deleteAll(openWork(farthing))
  assert.deepEqual((await rowsOf(farthing)).filter(isOfCheckout), [])
})

/** The store's other events stay. */
function isOfCheckout(row: string): boolean {
  return !row.startsWith('events ') || !row.includes('"checkout_id": null')
}

test('whoever is killed while it deletes leaves all of a batch or nothing of it', async () => {
  const farthing = await openTestApp()
  const { ctx } = farthing
  const shop = await openStore(farthing)
  const made = [await makeAged(farthing, shop), await makeAged(farthing, shop)].map(({ id }) => id)
  made.push(await makeEnded(farthing, shop, 'EXPIRED'))
  // What is not counted yet is not deleted.
  while (await countRollups(ctx));
  const all = [...tables, 'kept_credits', 'truncated_logs']
  const before = await rowsOf(farthing, all)
  for (const point of ['retention-before-commit', 'retention-after-commit'] as const) {
    const settings = {
      DATABASE_URL: farthing.databaseUrl,
      BASE_URL: 'https://farthing.example',
      NETWORKS: 'LOCAL',
      LOCAL_RPC_URLS: 'http://127.0.0.1:1',
      OPERATIONS_PORT: '0',
      RETENTION_DAYS: '90',
    }
    const program = startProgram(['work'], settings, point)
    await untilCrashed(program, point)
    const isDeleted = point === 'retention-after-commit'
    for (const id of made) assert.equal(await isThere(farthing, id), !isDeleted, point)
    const after = await rowsOf(farthing, all)
    if (!isDeleted) assert.deepEqual(after, before)
    else
      assert.equal(
        after.filter(isOfCheckout).length,
        2 * 2 + 1,
        'two keys of each payment, and where the log begins',
      )
  }
})
