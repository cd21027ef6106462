/** What moves to the archive, what does not, and that it stays the same on the way there and back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bringBack } from '../../src/archive/rows.ts'
import { updateStatus } from '../../src/checkouts/update-status.ts'
import { writeHistory } from '../../src/dev/history.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { networks } from '../../src/networks.ts'
import { startProgram, untilCrashed } from '../payments/crash/processes.ts'
import { makeStore, openTestApp, wallet } from '../support/app.ts'
import { operator } from '../support/operator.ts'
import { openStore } from '../support/store.ts'
import {
  agedDays,
  archiveAll,
  makeAged,
  makeEnded,
  openWork,
  placesOf,
  rowsOf,
  tables,
} from './support/aged.ts'

const farthing = await openTestApp({
  NETWORKS: 'LOCAL',
  LOCAL_RPC_URLS: 'http://127.0.0.1:1',
  FIXED_RATES: 'EUR=0.86',
})
const { ctx } = farthing
const work = openWork(farthing)

test('a store’s whole history moves and comes back, and every row is as it was', async () => {
  const local = networks.find(({ id }) => id === 'LOCAL')
  const [asset] = local?.assets ?? []
  assert(local && asset)
  const { store } = await makeStore(ctx, { mode: 'test' })
  const place = { network: local.caip2, asset: asset.address, payTo: wallet, actor: operator }
  await writeHistory(ctx, { storeId: store.id, ...place }, 8)
  while ((await assignWaitingSequences(ctx)) > 0);
  const before = await rowsOf(farthing)

  const later = openWork(farthing, `${agedDays}days`)
  await archiveAll(later, new Date(Date.now() + agedDays * 86_400_000))
  const [{ moved, left } = { moved: 0, left: 0 }] = await ctx.db.query<{ moved: number; left: number }>(
    'select (select count(*)::int from archived_checkouts) as moved, (select count(*)::int from checkouts) as left',
  )
  assert(moved > 10 && left > 0, `${moved} moved, ${left} did not`)
  assert.deepEqual(await rowsOf(farthing, 'all_'), before)

  const ids = await ctx.db.query<{ id: string }>('select id from archived_checkouts')
  await bringBack(
    ctx.db,
    ids.map(({ id }) => id),
  )
  assert.deepEqual(await rowsOf(farthing), before)
  for (const rows of await rowsOf(farthing, 'archived_')) assert.match(rows, / 0 /)
})

test('the tables of the archive have the columns of those that they take rows from, in the same order', async () => {
  const columnsOf = async (name: string) =>
    await ctx.db.query(
      `select attname, format_type(atttypid, atttypmod) as type, attcollation::regcollation::text as collation
       from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
      [name],
    )
  for (const table of tables)
    for (const prefix of ['archived_', 'all_'])
      assert.deepEqual(await columnsOf(prefix + table), await columnsOf(table), prefix + table)
})

/** Each keeps a checkout that was paid long ago where it is, until it is undone. */
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
    'a restored database is being compared with its chain',
    "insert into restores select 'n', clock() from checkouts where id = $1",
    'with h as (select 1 from checkouts where id = $1) delete from restores where exists (select 1 from h)',
  ],
]

test('nothing moves that may still move money, or waits for somebody', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const ids = new Map<string, string>()
  for (const [why] of reasons) ids.set(why, (await makeAged(farthing, shop, why)).id)
  const free = await makeEnded(farthing, shop, 'CANCELED')
  for (const [why, does] of reasons) await ctx.db.query(does, [ids.get(why)])
  // While a database is compared with its chain nothing moves at all.
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, free), ['hot'])
  const [last = ''] = [...ids.values()].reverse()
  await ctx.db.query(reasons.at(-1)?.[2] ?? '', [last])
  await archiveAll(work)
  for (const [why, id] of ids)
    assert.deepEqual(await placesOf(farthing, id), id === last ? ['archive'] : ['hot'], why)
  for (const [why, , undoes] of reasons.slice(0, -1)) await ctx.db.query(undoes, [ids.get(why)])
  await archiveAll(work)
  for (const [why, id] of ids) assert.deepEqual(await placesOf(farthing, id), ['archive'], why)
})

test('money that is found while its checkout moves brings the checkout back', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const { id } = await makeAged(farthing, shop)
  await ctx.db.transaction(async (tx) => {
    // Not committed, so the mover cannot see it.
    await tx.query(
      `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash,
         position, asset, payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
       select network, 'later', 0, 'pay_later', 2, clock(), 'later', 0, asset, payer, pay_to, amount, store_id,
         checkout_id, 'overpaid', clock(), clock() from credits where checkout_id = $1`,
      [id],
    )
    await archiveAll(work)
    assert.deepEqual(await ctx.db.query('select id from archived_checkouts where id = $1', [id]), [{ id }])
    await updateStatus(ctx, tx, [id], new Date())
  })
  assert.deepEqual(await placesOf(farthing, id), ['hot'])
  const told = await ctx.db.query<{ type: string }>('select type from events where checkout_id = $1', [id])
  assert(told.some(({ type }) => type === 'payment.late'))
})

test('a checkout comes back although its authorization was claimed again meanwhile, and the one that paid stays', async () => {
  const farthing = await openTestApp()
  const shop = await openStore(farthing)
  const key = 'payer, nonce, asset, network'
  const claims = async (ids: readonly string[]) =>
    await farthing.ctx.db.query<{ checkout_id: string; state: string }>(
      `select checkout_id, state from authorizations where checkout_id = any($1) order by checkout_id`,
      [ids],
    )
  for (const [isPaid, twin, stays] of [
    [true, 'rejected', 'old'],
    [true, 'claimed', 'new'],
    [false, 'rejected', 'new'],
    [false, 'claimed', 'new'],
  ] as const) {
    const [old, next] = [await makeAged(farthing, shop), await shop.create()]
    if (!isPaid)
      await farthing.ctx.db.query(
        `update authorizations set state = 'rejected', is_credited = false where checkout_id = $1`,
        [old.id],
      )
    await archiveAll(openWork(farthing))
    assert.deepEqual(await placesOf(farthing, old.id), ['archive'])
    await farthing.ctx.db.query(
      `insert into authorizations (${key}, checkout_id, store_id, state, pay_to, amount, valid_after, valid_before, signature, claimed_at)
       select ${key}, $2, store_id, $3, pay_to, amount, valid_after, valid_before, signature, claimed_at
       from archived_authorizations where checkout_id = $1`,
      [old.id, next.id, twin],
    )
    await bringBack(farthing.ctx.db, [old.id])
    assert.deepEqual(await placesOf(farthing, old.id), ['hot'])
    const [kept, ...more] = await claims([old.id, next.id])
    assert.deepEqual([kept?.checkout_id, more], [stays === 'old' ? old.id : next.id, []], `${isPaid} ${twin}`)
  }
})

test('whoever is killed while it moves leaves every row in one place', async () => {
  const farthing = await openTestApp()
  const shop = await openStore(farthing)
  const made = [await makeAged(farthing, shop), await makeAged(farthing, shop)].map(({ id }) => id)
  made.push(await makeEnded(farthing, shop, 'EXPIRED'))
  const before = await rowsOf(farthing, 'all_')
  for (const [point, place] of [
    ['archive-before-commit', 'hot'],
    ['archive-after-commit', 'archive'],
  ] as const) {
    const settings = {
      DATABASE_URL: farthing.databaseUrl,
      BASE_URL: 'https://farthing.example',
      NETWORKS: 'LOCAL',
      LOCAL_RPC_URLS: 'http://127.0.0.1:1',
      OPERATIONS_PORT: '0',
    }
    const program = startProgram(['work'], settings, point)
    await untilCrashed(program, point)
    for (const id of made) assert.deepEqual(await placesOf(farthing, id), [place], point)
    assert.deepEqual(await rowsOf(farthing, 'all_'), before)
  }
})
