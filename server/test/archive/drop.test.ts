/** A month is dropped only if a file has all of it, whatever moves meanwhile. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { bringBack, moveEnded, openMonth } from '../../src/archive/rows.ts'
import { archiveCommand } from '../../src/commands/archive.ts'
import type { Context } from '../../src/context.ts'
import type { Database, Transaction } from '../../src/database/db.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { openStore } from '../support/store.ts'
import { until } from '../support/until.ts'
import { agedDays, archiveAll, makeAged, makeEnded, openWork, placesOf } from './support/aged.ts'

const month = new Date(Date.now() - agedDays * 86_400_000).toISOString().slice(0, 7)
const folder = await mkdtemp(join(tmpdir(), 'farthing-drop-'))
atEnd(() => rm(folder, { recursive: true }))
let files = 0

async function open() {
  const farthing = await openTestApp()
  const { ctx } = farthing
  const shop = await openStore(farthing)
  return {
    farthing,
    ctx,
    shop,
    work: openWork(farthing),
    isFound: async (id: string) => (await shop.call('GET', `/api/v1/checkouts/${id}`)).statusCode === 200,
    drop: (options = {}) => archiveCommand(ctx, ['drop', month], { force: true, ...options }),
  }
}

/** The lines of an export, as they were written. */
async function exportMonth(ctx: Context): Promise<string[]> {
  const out = join(folder, `${++files}.jsonl`)
  await archiveCommand(ctx, ['export', month], { out })
  return (await readFile(out, 'utf8')).split('\n').slice(0, -1)
}

/** The same context, in which something happens before a statement like this one, the first time or a later one. */
function disturbed(ctx: Context, statement: RegExp, disturb: () => Promise<unknown>, time = 1): Context {
  let seen = 0
  const query: Database['query'] = async (text, values) => {
    if (statement.test(text) && ++seen === time) await disturb()
    return await ctx.db.query(text, values)
  }
  return { ...ctx, db: { ...ctx.db, query } }
}

/** Drops while another transaction has done this, and not committed it. */
async function dropBeside(
  { ctx, work, drop }: Awaited<ReturnType<typeof open>>,
  first: (tx: Transaction) => Promise<unknown>,
): Promise<string> {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const ahead = work.db.transaction(async (tx) => {
    await first(tx)
    begun.resolve()
    await go.promise
  })
  await Promise.race([begun.promise, ahead])
  const dropped = drop().catch((error: Error) => error.message)
  await until('the drop waits', async () => {
    const waiting = await ctx.db.query(
      "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    return waiting.length > 0
  })
  go.resolve()
  await ahead
  return await dropped
}

const refused = /No file has all of/

test('a month that more was moved to since its export is not dropped until it is exported again', async () => {
  const { farthing, ctx, shop, work, drop, isFound } = await open()
  await makeAged(farthing, shop, 'first')
  const late = await makeAged(farthing, shop, 'late')
  await ctx.db.query("update credits set disposition = 'late' where checkout_id = $1", [late.id])
  await archiveAll(work)
  await assert.rejects(drop(), refused, 'it was never exported')
  assert.equal((await exportMonth(ctx)).length, 1)
  await ctx.db.query('update credits set dismissed_at = included_at where checkout_id = $1', [late.id])
  await archiveAll(work)
  assert.deepEqual(await placesOf(farthing, late.id), ['archive'])
  assert.match(await archiveCommand(ctx, ['list'], {}), /not exported/)
  await assert.rejects(drop(), refused)
  assert(await isFound(late.id))

  const lines = await exportMonth(ctx)
  assert(lines.length === 2 && lines.some((line) => line.includes(late.id)))
  assert.match(await archiveCommand(ctx, ['list'], {}), /MB, exported/)
  assert.match(await drop(), /^Dropped/)
  assert.equal(await isFound(late.id), false)
})

test('what moves, or comes back and moves again, while a month is exported keeps it from being dropped', async () => {
  const { farthing, ctx, shop, work, drop, isFound } = await open()
  const early = await makeEnded(farthing, shop, 'EXPIRED')
  await ctx.db.query("update checkouts set status = 'OPEN' where id = $1", [early])
  const { id } = await makeAged(farthing, shop)
  await archiveAll(work)
  const page = /from archived_checkouts_\d/
  for (const disturb of [
    async () => {
      await ctx.db.query("update checkouts set status = 'EXPIRED' where id = $1", [early])
      await archiveAll(work)
      assert.deepEqual(await placesOf(farthing, early), ['archive'])
    },
    async () => {
      await bringBack(ctx.db, [id])
      await archiveAll(work)
    },
  ]) {
    // After the first page, which ends above the early one.
    await exportMonth(disturbed(ctx, page, disturb, 2))
    await assert.rejects(drop(), refused)
  }
  for (const each of [early, id]) assert(await isFound(each))
  // One that is brought back and stays is where it is written to, so nothing of it is dropped.
  await exportMonth(disturbed(ctx, page, () => bringBack(ctx.db, [id])))
  assert.match(await drop(), /^Dropped/)
  assert.deepEqual([await isFound(early), await isFound(id)], [false, true])
  assert.deepEqual(await placesOf(farthing, id), ['hot'])
})

test('what is being moved while the month is dropped is kept, and what is being brought back stays whole', async () => {
  const all = await open()
  const { farthing, ctx, shop, work, isFound } = all
  const [first, second] = [await makeAged(farthing, shop), await makeAged(farthing, shop)]
  await ctx.db.query('update credits set finalized_at = null where checkout_id = $1', [second.id])
  await archiveAll(work)
  await exportMonth(ctx)
  await ctx.db.query('update credits set finalized_at = included_at where checkout_id = $1', [second.id])
  await openMonth(work.db, second.id)
  const range = { from: second.id, before: 'ch~', days: 90, limit: 500 }
  assert.match(await dropBeside(all, (tx) => moveEnded(tx, range)), refused)
  for (const { id } of [first, second]) assert(await isFound(id))

  await exportMonth(ctx)
  assert.match(await dropBeside(all, (tx) => bringBack(tx, [second.id])), /^Dropped/)
  assert.deepEqual([await isFound(first.id), await isFound(second.id)], [false, true])
  assert.deepEqual(await placesOf(farthing, second.id), ['hot'])
})

test('a file that was not finished counts for nothing, and one of a month that was dropped not for what comes later', async () => {
  const { farthing, ctx, shop, work, drop, isFound } = await open()
  await makeAged(farthing, shop)
  await archiveAll(work)
  const broken = disturbed(ctx, /^insert into archived_months/, async () => {
    throw new Error('killed')
  })
  await assert.rejects(exportMonth(broken), /killed/)
  await assert.rejects(drop(), refused)
  await exportMonth(ctx)
  assert.match(await drop(), /^Dropped/)

  const { id } = await makeAged(farthing, shop)
  await archiveAll(work)
  await assert.rejects(drop(), refused)
  assert(await isFound(id))
  assert.match(await drop({ 'without-export': true }), /^Dropped/)
  assert.equal(await isFound(id), false)
})

test('what settlers sent is exported, keeps its month until it is, and can be dropped without checkouts', async () => {
  const { farthing, ctx, shop, work, drop } = await open()
  const { id } = await makeAged(farthing, shop)
  await archiveAll(work)
  await exportMonth(ctx)
  await ctx.db.query("insert into settlers (network, address, next_nonce) values ('eip155:8453', '0x5e', 2)")
  const send = (nonce: number) =>
    ctx.db.query(
      `with t as (
         insert into transactions (network, settler, nonce, created_at, mined_at, cost_wei)
         select 'eip155:8453', '0x5e', $1, old, old, 7 from (select clock() - interval '${agedDays} days' as old) at
         returning *
       )
       insert into broadcasts (hash, network, settler, nonce, bytes, created_at)
       select '0xb' || nonce, network, settler, nonce, 'x', created_at from t`,
      [nonce],
    )
  await send(0)
  await archiveAll(work)
  await assert.rejects(drop(), refused)
  const lines = (await exportMonth(ctx)).map((line) => JSON.parse(line))
  const sent = lines.find(({ transaction }) => transaction)
  assert.deepEqual(
    [sent.transaction.cost_wei, sent.broadcasts[0].hash, lines.find(({ checkout }) => checkout).checkout.id],
    [7, '0xb0', id],
  )
  assert.match(await drop(), /^Dropped/)

  await send(1)
  await archiveAll(work)
  assert.match(await archiveCommand(ctx, ['list'], {}), new RegExp(`^${month}  about 0 checkouts`))
  assert.equal((await exportMonth(ctx)).length, 1)
  assert.match(await drop(), /^Dropped/)
  assert.equal(await archiveCommand(ctx, ['list'], {}), 'The archive is empty.')
})
