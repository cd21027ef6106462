/** What settlers sent follows what it carried to the archive, and is still known there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveEnded, firstPass } from '../../src/archive/move.ts'
import { bringBack } from '../../src/archive/rows.ts'
import type { Database } from '../../src/database/db.ts'
import type { Rail } from '../../src/payments/rail.ts'
import { listUnknown } from '../../src/payments/svm/reference-rows.ts'
import { listNotBroadcast } from '../../src/payments/svm/rows.ts'
import { proveSent } from '../../src/refunds/prove-sent.ts'
import { openTestApp, type TestApp } from '../support/app.ts'
import { openStore } from '../support/store.ts'
import { agedDays, archiveAll, makeAged, openWork, placesOf, rowsOf, sendAged } from './support/aged.ts'

const sent = ['transactions', 'transaction_calls', 'broadcasts']
const old = `clock() - interval '${agedDays} days'`
const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp'

/** Writes down transactions of a settler that ended long ago, and cost nobody knows what. */
async function sendMany({ ctx }: TestApp, network: string, settler: string, count: number): Promise<void> {
  await ctx.db.query(
    `with s as (
       insert into settlers (network, address, next_nonce) values ($1, $2, $3) returning *
     )
     insert into transactions (network, settler, nonce, created_at, mined_at)
     select network, address, nonce, ${old}, ${old} from s, generate_series(0, $3::bigint - 1) as nonce`,
    [network, settler, count],
  )
}

/** Lets all transactions but the last carry a signature that is not archived. */
async function holdUp({ ctx }: TestApp, count: number): Promise<void> {
  await ctx.db.query(
    `with a as (
       insert into authorizations (network, asset, payer, nonce, state, pay_to, amount, valid_after, valid_before,
         signature, claimed_at) select distinct network, '0xa', '0x1', '0x2', 'sent', '0x3', 1, 0, 1, ''::bytea, clock()
       from transactions returning *
     )
     insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
     select t.network, t.settler, t.nonce, 0, a.asset, a.payer, a.nonce from transactions t join a using (network)
     where t.nonce < $1`,
    [count - 1],
  )
}

test('what was sent for payments follows the last of them, and comes back with the first', async () => {
  const farthing = await openTestApp()
  const shop = await openStore(farthing)
  const [first, second] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  await sendAged(farthing, [first.id, second.id])
  const sent = ['transactions', 'transaction_calls', 'broadcasts']
  const before = await rowsOf(farthing, '', sent)
  const work = openWork(farthing)
  await farthing.ctx.db.query('update credits set finalized_at = null where checkout_id = $1', [second.id])
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, first.id), ['archive'])
  assert.deepEqual(await rowsOf(farthing, '', sent), before, 'one of its payments is not there yet')

  await farthing.ctx.db.query('update credits set finalized_at = included_at where checkout_id = $1', [
    second.id,
  ])
  await archiveAll(work)
  for (const rows of await rowsOf(farthing, '', sent)) assert.match(rows, / 0 /)
  for (const rows of await rowsOf(farthing, 'archived_', sent)) assert.match(rows, / [12] /)
  await bringBack(farthing.ctx.db, [second.id])
  assert.deepEqual(await rowsOf(farthing, '', sent), before)
  for (const rows of await rowsOf(farthing, 'archived_', sent)) assert.match(rows, / 0 /)
})

test('what was sent on Solana moves, and what nobody knows the cost of', async () => {
  const farthing = await openTestApp()
  const shop = await openStore(farthing)
  const { id } = await makeAged(farthing, shop)
  await sendAged(farthing, [id])
  await farthing.ctx.db.query('update transactions set cost_wei = null')
  await sendMany(farthing, solana, 'So1', 3)
  // Its outcome is not known. On Solana those that follow don't wait for it.
  await farthing.ctx.db.query("update transactions set mined_at = null where settler = 'So1' and nonce = 1")
  await archiveAll(openWork(farthing))
  const left = await farthing.ctx.db.query('select settler, nonce from transactions')
  assert.deepEqual(left, [{ settler: 'So1', nonce: '1' }])
})

test('a batch with a refund moves once the refund has ended for as long, and comes back with a payment', async () => {
  const farthing = await openTestApp()
  const { ctx } = farthing
  const work = openWork(farthing)
  const { id, paymentId } = await makeAged(farthing, await openStore(farthing))
  await sendAged(farthing, [id])
  await ctx.db.query(
    `with t as (
       insert into refund_totals select network, asset, 'i', 'pay_other', store_id, amount, 1 from credits
       where payment_id = $1 returning *
     ), r as (
       insert into refunds (id, store_id, payment_id, network, asset, identity, wallet, amount, way, status, version,
         actor, created_at, slot, nonce, finality, completed_at)
       select 'rf_1', store_id, payment_id, network, asset, identity, '0xw', 1, 'signed', 'COMPLETED', 3, '{}', ${old},
         0, '0xn', 'finalized', ${old} from t returning *
     ), a as (
       insert into authorizations (network, asset, payer, nonce, refund_id, store_id, state, pay_to, amount, valid_after,
         valid_before, signature, claimed_at, is_credited)
       select network, asset, wallet, nonce, id, store_id, 'sent', '0xp', 1, 0, 1, 'x', ${old}, true from r returning *
     )
     insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
     select t.network, t.settler, t.nonce, 9, a.asset, a.payer, a.nonce from transactions t join a using (network)`,
    [paymentId],
  )
  const before = await rowsOf(farthing, '', sent)
  const refund = (change: string) => ctx.db.query(`update refunds set ${change} where id = 'rf_1'`)
  const done = "status = 'COMPLETED', finality = 'finalized', ended_at = null"
  for (const [change, undo] of [
    ["finality = 'safe'", done],
    ['finality = null', done],
    ['is_watched = true', 'is_watched = false'],
    ["status = 'SENT'", done],
    ["status = 'FAILED', ended_at = clock()", done],
    ['completed_at = clock()', `completed_at = ${old}`],
  ] as const) {
    await refund(change)
    await archiveAll(work)
    assert.deepEqual(await placesOf(farthing, id), ['archive'])
    assert.deepEqual(await rowsOf(farthing, '', sent), before, change)
    await refund(undo)
  }
  await ctx.db.query('update authorizations set is_credited = false where refund_id is not null')
  await archiveAll(work)
  assert.deepEqual(await rowsOf(farthing, '', sent), before, 'it may still move money')
  await ctx.db.query("update authorizations set state = 'dead' where refund_id is not null")
  await refund(`status = 'FAILED', finality = null, completed_at = null, ended_at = ${old}`)
  await archiveAll(work)
  for (const rows of await rowsOf(farthing, '', sent)) assert.match(rows, / 0 /)
  await bringBack(ctx.db, [id])
  assert.deepEqual(await rowsOf(farthing, '', sent), before)
})

test('a transfer whose transaction is in the archive is known, and is not sent by a stranger', async () => {
  const farthing = await openTestApp()
  const { db } = farthing.ctx
  const shop = await openStore(farthing)
  const [settled, plain] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  await sendAged(farthing, [settled.id])
  await db.query("update credits set transaction_hash = '0xp1a14' where checkout_id = $1", [plain.id])
  const [{ network } = { network: '' }] = await db.query<{ network: string }>(
    'select network from transactions',
  )
  const ask = async () => [
    await listUnknown(db, network, ['0xba7c4', '0xp1a14', '0xe15e']),
    [...(await listNotBroadcast(db, ['0xba7c4', '0xe15e']))],
  ]
  const before = await ask()
  assert.deepEqual(before, [['0xe15e'], ['0xe15e']])
  await archiveAll(openWork(farthing))
  assert.deepEqual(await db.query('select 1 as one from broadcasts'), [])
  assert.deepEqual(await ask(), before)
})

test('a transfer that is a payment proves no refund, wherever in its transaction it is and wherever the payment lies', async () => {
  const farthing = await openTestApp()
  const { ctx } = farthing
  const shop = await openStore(farthing)
  const { id } = await makeAged(farthing, shop)
  const { paymentId } = await makeAged(farthing, shop)
  const credited = { block: '7/So1d', transaction: 'So1d' }
  await ctx.db.query('update credits set block_hash = $2, transaction_hash = $3 where checkout_id = $1', [
    id,
    credited.block,
    credited.transaction,
  ])
  await ctx.db.query(
    `with t as (
       insert into refund_totals select network, asset, 'i', payment_id, store_id, amount, 1 from credits
       where payment_id = $1 returning *
     )
     insert into refunds (id, store_id, payment_id, network, asset, identity, wallet, amount, recipient, way, status,
       version, actor, created_at)
     select 'rf_1', store_id, payment_id, network, asset, identity, '0xw', 1, '0xp', 'sent', 'REQUESTED', 1, '{}', ${old}
     from t`,
    [paymentId],
  )
  const [{ network } = { network: '' }] = await ctx.db.query<{ network: string }>(
    'select network from refunds',
  )
  const prove = async (block: string, transaction: string) => {
    await ctx.db.query(
      "update refunds set status = 'SENT', transaction_hash = $1, named_at = clock(), looked_at = null, failure = null",
      [transaction],
    )
    const found = { outcome: 'found', block, places: [3], creditedAs: 0 } as const
    const sent = { parse: () => transaction, find: async () => found }
    await proveSent(ctx, { network: { caip2: network }, sent } as unknown as Rail)
    const [row] = await ctx.db.query<{ position: number | null; failure: string | null }>(
      'select position, failure from refunds',
    )
    return row
  }
  for (const place of ['hot', 'archive']) {
    assert.deepEqual(await placesOf(farthing, id), [place])
    const { position, failure } = (await prove(credited.block, credited.transaction)) ?? {}
    assert.equal(position, null)
    assert.match(failure ?? '', /recorded as a payment/, place)
    await archiveAll(openWork(farthing))
  }
  assert.deepEqual(await prove('8/So1e', 'So1e'), { position: 3, failure: null })
})

test('any number of transactions that may not move keep none that follows from moving', async () => {
  const farthing = await openTestApp()
  const count = 10_101
  for (const settler of ['0x5e771e4', '0x5e771e5']) await sendMany(farthing, 'eip155:8453', settler, count)
  await holdUp(farthing, count)
  await archiveAll(openWork(farthing))
  const left = await farthing.ctx.db.query<{ settler: string; left: number; last: string }>(
    `select settler, count(*)::int as left, max(nonce) as last from transactions group by settler order by settler`,
  )
  assert.deepEqual(left, [
    { settler: '0x5e771e4', left: count - 1, last: `${count - 2}` },
    { settler: '0x5e771e5', left: count - 1, last: `${count - 2}` },
  ])
})

test('a pass looks only at transactions that have become old enough, and about once a day at all', async () => {
  const farthing = await openTestApp()
  await sendMany(farthing, solana, 'So1', 300)
  await holdUp(farthing, 301)
  await farthing.ctx.db.query('update transactions set created_at = clock() where nonce >= 250')
  const work = openWork(farthing)
  const looked: unknown[] = []
  const query: Database['query'] = (text, values = []) => {
    if (text.includes('archive_transactions')) looked.push(values[2])
    return work.db.query(text, values)
  }
  const counting = { ...work, db: { ...work.db, query } }
  const pass = firstPass()
  for (let passes = 0, now = new Date(); passes < 146; passes++) {
    while (pass.notBefore <= now) await archiveEnded(counting, pass, now)
    now = pass.notBefore
  }
  assert.deepEqual(looked.slice(0, 4), ['0', '200', '250', '250'])
  assert.deepEqual(looked.slice(-3), ['0', '200', '250'])
  assert.equal(looked.length, 146 + 2)
})
