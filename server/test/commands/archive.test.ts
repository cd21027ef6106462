/** Whole months of the archive, and what is left of a payer whose data was erased. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { archiveCommand, eraseCommand } from '../../src/commands/archive.ts'
import { rollupsCommand } from '../../src/commands/rollups.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { newId } from '../../src/ids.ts'
import { agedDays, archiveAll, makeAged, openWork, placesOf } from '../archive/support/aged.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { creditByHand, payer, refundByHand } from '../support/by-hand.ts'
import { openAs } from '../support/database.ts'
import { assertProblem, openStore } from '../support/store.ts'

const farthing = await openTestApp({ NETWORKS: 'LOCAL', LOCAL_RPC_URLS: 'http://127.0.0.1:1' })
const { ctx } = farthing
const shop = await openStore(farthing, { mode: 'test' })
const work = openWork(farthing)
const month = new Date(Date.now() - agedDays * 86_400_000).toISOString().slice(0, 7)
const folder = await mkdtemp(join(tmpdir(), 'farthing-archive-'))
atEnd(() => rm(folder, { recursive: true }))

const archive = (...words: string[]) => archiveCommand(ctx, words, {})
const kept = (days: number) => ({ ...ctx, config: { ...ctx.config, retentionCheckoutsDays: days } })

test('a payer’s address leaves the archive, and what the store wrote about the buyer; amounts and transactions stay', async () => {
  const { id, paymentId } = await makeAged(farthing, shop)
  const { id: recent } = await makeAged(farthing, shop, 'order-2')
  await ctx.db.query(`update checkouts set metadata = '{"customer":"ada@example.com"}' where id = $1`, [id])
  await ctx.db.query(
    `insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select 'evt_' || substr($1, 4), store_id, 'payment.finalized', id, 9,
       json_build_object('checkout', json_build_object('id', id, 'metadata', metadata), 'payment',
         json_build_object('payer', $2::text)), created_at from checkouts where id = $1`,
    [id, payer],
  )
  await assignWaitingSequences(ctx)
  // One that nothing has happened to for a day only.
  await ctx.db.query('update credits set finalized_at = clock() where checkout_id = $1', [recent])
  await archiveAll(work)

  const before = (await shop.call('GET', `/api/v1/payments/${paymentId}`)).json()
  const said = await eraseCommand(ctx, ['payer', payer])
  assert.match(said, /from 1 checkout in the archive/)
  assert.match(said, /^1 not in the archive/m)

  for (const table of ['checkouts', 'events', 'credits', 'authorizations'])
    assert.deepEqual(
      await ctx.db.query(
        `select 1 as one from archived_${table} t where to_jsonb(t)::text ~* $1 or to_jsonb(t)::text like '%ada@%'`,
        [payer.slice(2)],
      ),
      [],
      table,
    )
  assert.deepEqual(await placesOf(farthing, id), ['archive'])
  const after = (await shop.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert.deepEqual(after, { ...before, payer: `0x${'0'.repeat(32)}e2A5ed00` })
  assertProblem(await shop.call('POST', `/api/v1/payments/${paymentId}/refunds`, {}), 409, 'payment_not_open')
  assert.deepEqual(await placesOf(farthing, id), ['archive'])
  assert.match(await eraseCommand(ctx, ['payer', payer.toLowerCase()]), /from 0 checkouts/)
  await assert.rejects(eraseCommand(ctx, ['payer', 'nobody']), /not the address of a wallet/)
})

test('money of a payer that came without a checkout is kept and reported, until it is archived with one', async () => {
  const payer = '0x00000000000000000000000000000000000000e1'
  const { id } = await makeAged(farthing, shop, 'stray')
  const paymentId = await creditByHand(farthing, id)
  const stray = await creditByHand(farthing, id)
  await ctx.db.query('update credits set payer = $2 where payment_id = $1', [paymentId, payer])
  await ctx.db.query('update credits set sender = $2, dismissed_at = clock() where payment_id = $1', [
    stray,
    payer,
  ])
  await ctx.db.query(
    `insert into events (id, store_id, type, data, created_at)
     select $2, store_id, 'payment.unmatched', json_build_object('checkout', null, 'payment', json_build_object('id',
       payment_id, 'payer', upper(payer))), clock() from credits where payment_id = $1`,
    [paymentId, newId('evt', ctx.config.cell, new Date(Date.now() - agedDays * 86_400_000))],
  )
  const said = await eraseCommand(ctx, ['payer', payer])
  assert.match(said, /from 0 checkouts/)
  assert.match(said, /^2 payments without a checkout still name it/m)
  // As accepting does, long ago.
  await ctx.db.query(
    `update credits k set checkout_id = $2, disposition = 'overpaid', accepted_at = o.included_at,
       included_at = o.included_at, first_seen_block_time = o.included_at, finalized_at = o.finalized_at, witnessed_at = o.witnessed_at
     from credits o where k.payment_id = any($1) and o.checkout_id = $2`,
    [[paymentId, stray], id],
  )
  await archiveAll(work)
  const later = await eraseCommand(ctx, ['payer', payer])
  assert.match(later, /from 1 checkout in/)
  assert.doesNotMatch(later, /without a checkout/)
  for (const table of ['all_credits', 'all_events'])
    assert.deepEqual(
      await ctx.db.query(`select 1 as one from ${table} t where to_jsonb(t)::text ~* $1`, [payer.slice(2)]),
      [],
      table,
    )
})

test('a month is exported with everything about its checkouts, to a file that only its owner reads', async () => {
  const { id, paymentId } = await makeAged(farthing, shop, 'exported')
  await archiveAll(work)
  const out = join(folder, 'month.jsonl.gz')
  assert.match(await archive('list'), new RegExp(`^${month}  .*, kept$`, 'm'))
  assert.match(await archiveCommand(ctx, ['export', month], { out }), /^Wrote 3 checkouts and 0 transactions/)
  assert.equal((await stat(out)).mode & 0o777, 0o600)
  const lines = gunzipSync(await readFile(out))
    .toString()
    .trim()
    .split('\n')
  const found = lines.map((line) => JSON.parse(line)).find(({ checkout }) => checkout.id === id)
  assert.equal(found.credits[0].payment_id, paymentId)
  assert(found.events.length > 0 && found.authorizations.length === 1)
  await assert.rejects(archiveCommand(ctx, ['export', month], { out }), /must not exist yet/)
})

test('a month is dropped when its retention is over, by the owner of its tables, and its checkouts are gone', async () => {
  const shop = await openStore(farthing, { mode: 'test' })
  const { id } = await makeAged(farthing, shop, 'dropped')
  const rebuild = () => rollupsCommand(ctx, ['rebuild'], { store: shop.id })
  await archiveAll(work)
  assert.match(await rebuild(), /^Counted 1 store again/)
  await assert.rejects(archive('drop', month), /kept for ever/)
  await assert.rejects(archiveCommand(kept(36_500), ['drop', month], {}), /is kept until/)
  await archiveCommand(ctx, ['export', month], { out: join(folder, 'dropped.jsonl') })
  const operator = { ...kept(90), db: openAs('operator', farthing.databaseUrl) }
  await assert.rejects(archiveCommand(operator, ['drop', month], {}), /Only the role that migrates/)
  assert.equal((await shop.call('GET', `/api/v1/checkouts/${id}`)).statusCode, 200)

  assert.match(await archiveCommand(kept(90), ['drop', month], {}), /^Dropped/)
  assertProblem(await shop.call('GET', `/api/v1/checkouts/${id}`), 404, 'not_found')
  await assert.rejects(archive('drop', month), /The archive has no month/)
  assert.equal((await shop.call('GET', '/api/v1/events')).statusCode, 200)
  // What was counted of it is not counted again.
  await assert.rejects(rebuild(), /is not whole/)
  // What is archived later makes the month again.
  const { id: next } = await makeAged(farthing, shop, 'again')
  await archiveAll(work)
  assert.equal((await shop.call('GET', `/api/v1/checkouts/${next}`)).statusCode, 200)
  assert.match(await archive('list'), new RegExp(month))
})

test('an address that only sent the transaction, such as the owner of a smart wallet, is erased too, and counted where it stays', async () => {
  const owner = '0x00000000000000000000000000000000000000e2'
  const [plain, refunded, recent] = [
    await makeAged(farthing, shop, 'owned'),
    await makeAged(farthing, shop, 'owned-refunded'),
    await makeAged(farthing, shop, 'owned-recent'),
  ]
  const ids = [plain.id, refunded.id, recent.id]
  await ctx.db.query('update credits set sender = $2, sender_nonce = 7 where checkout_id = any($1)', [
    ids,
    owner,
  ])
  await ctx.db.query('update credits set finalized_at = clock() where checkout_id = $1', [recent.id])
  await refundByHand(farthing, refunded.id, 'DECLARED')
  await ctx.db.query(`update refunds set created_at = created_at - interval '${agedDays} days'`)
  await archiveAll(work)
  assert.deepEqual(await Promise.all(ids.map((id) => placesOf(farthing, id))), [
    ['archive'],
    ['archive'],
    ['hot'],
  ])

  const said = await eraseCommand(ctx, ['payer', owner])
  assert.match(said, /from 1 checkout in the archive/)
  assert.match(said, /^1 with a refund still name it/m)
  assert.match(said, /^1 not in the archive still name it/m)
  const left = await ctx.db.query<{ id: string }>(
    'select checkout_id as id from all_credits where sender = $1',
    [owner],
  )
  assert.deepEqual(left.map(({ id }) => id).toSorted(), [refunded.id, recent.id].toSorted())
  assert.match(await eraseCommand(ctx, ['payer', owner]), /from 0 checkouts/)
})

test('what an address has sent is found by an index, in the archive and outside', async () => {
  const plans: string[] = []
  const db: typeof ctx.db = {
    ...ctx.db,
    async query(text, values) {
      plans.push(JSON.stringify(await ctx.db.query(`explain (format json) ${text}`, values)))
      return await ctx.db.query(text, values)
    },
  }
  await eraseCommand({ ...ctx, db }, ['payer', `0x${'e3'.repeat(20)}`])
  const [listed = '', counted = ''] = plans
  assert.match(listed, /"archived_credits_\w*sender\w*"/)
  assert.match(counted, /"archived_credits_\w*sender\w*"/)
  assert.match(counted, /"credits_by_sender"/)
  assert.doesNotMatch(plans.join(), /Seq Scan/)
})
