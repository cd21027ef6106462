import assert from 'node:assert/strict'
import { deleteOver, firstPass } from '../../../../src/checkouts/retention/delete.ts'
import { countRollups } from '../../../../src/checkouts/rollups/count.ts'
import type { Context } from '../../../../src/context.ts'
import { openDatabase } from '../../../../src/database/db.ts'
import { assignWaitingSequences } from '../../../../src/events/assign-sequence.ts'
import type { TestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'
import { payFinally } from '../../../support/by-hand.ts'
import { urlAs } from '../../../support/database.ts'
import type { StoreClient } from '../../../support/store.ts'
import { until } from '../../../support/until.ts'

export const tables = [
  'checkouts',
  'events',
  'credits',
  'authorizations',
  'reserved_amounts',
  'pasted_transactions',
  'payment_hints',
] as const

const dayMs = 86_400_000
/** Longer than the checkouts of these tests are kept. */
export const agedDays = 200

/** A context with the rights of `work`. */
export function openWork({ ctx, databaseUrl }: TestApp, clockOffset = ''): Context {
  const db = openDatabase({
    url: urlAs('work', databaseUrl),
    connections: 4,
    name: 'test-retention',
    clockOffset,
  })
  atEnd(() => db.close())
  return { ...ctx, db, config: { ...ctx.config, retentionDays: 90 } }
}

/** Deletes whatever can be deleted now. */
export async function deleteAll(work: Context, now = new Date()): Promise<void> {
  while (await countRollups(work));
  const pass = firstPass()
  for (let at: string | null = null; pass.notBefore <= now && at !== pass.after; ) {
    // Where a pass does not move, another process is at it, or a restore is going on.
    at = pass.after
    await deleteOver(work, pass, now)
  }
}

/** Creates a checkout that was paid long ago. Its payment is final and its events have their numbers. */
export async function makeAged(
  test: TestApp,
  shop: StoreClient,
  orderId = 'order-1',
): Promise<{ id: string; paymentId: string }> {
  const id = await makeEnded(test, shop, 'COMPLETED', orderId)
  const paymentId = await payFinally(test, id)
  const old = `- interval '${agedDays} days'`
  await test.ctx.db.query(
    `update credits set included_at = included_at ${old}, finalized_at = finalized_at ${old}, safe_at = safe_at ${old},
       witnessed_at = witnessed_at ${old}, block_time = block_time ${old},
       first_seen_block_time = first_seen_block_time ${old} where checkout_id = $1`,
    [id],
  )
  await test.ctx.db.query(`update authorizations set claimed_at = claimed_at ${old} where checkout_id = $1`, [
    id,
  ])
  return { id, paymentId }
}

/** Creates a checkout that ended long ago without a payment. */
export async function makeEnded(
  test: TestApp,
  shop: StoreClient,
  status: string,
  orderId = 'order-1',
  daysAgo = agedDays,
): Promise<string> {
  test.clock.now = new Date(Date.now() - daysAgo * dayMs)
  const { id } = await shop.create({ orderId })
  test.clock.now = null
  await test.ctx.db.query('update checkouts set status = $2 where id = $1', [id, status])
  await assignWaitingSequences(test.ctx)
  return id
}

/** Writes down that these checkouts' signatures were sent in one transaction, long ago. */
export async function sendAged({ ctx }: TestApp, checkoutIds: readonly string[]): Promise<void> {
  const old = `clock() - interval '${agedDays} days'`
  await ctx.db.query(
    `with s as (
       insert into settlers (network, address, next_nonce) select distinct network, '0x5e771e4', 1 from authorizations
       where checkout_id = any($1) and state in ('claimed', 'sent') returning *
     ), t as (
       insert into transactions (network, settler, nonce, created_at, mined_at, cost_wei)
       select network, address, 0, ${old}, ${old}, 7 from s
     ), c as (
       insert into transaction_calls (network, settler, settler_nonce, place, asset, payer, nonce)
       select s.network, s.address, 0, row_number() over (order by a.nonce), a.asset, a.payer, a.nonce
       from s join authorizations a on a.checkout_id = any($1) and a.state in ('claimed', 'sent')
     )
     insert into broadcasts (hash, network, settler, nonce, bytes, created_at, first_sent_at)
     select '0xba7c4', network, address, 0, decode('beef', 'hex'), ${old}, ${old} from s`,
    [checkoutIds],
  )
}

/** Whether anything of a checkout is left. */
export async function isThere({ ctx }: Pick<TestApp, 'ctx'>, checkoutId: string): Promise<boolean> {
  const found = await Promise.all(
    tables.map((table) =>
      ctx.db.query(
        `select 1 as one from ${table} where ${table === 'checkouts' ? 'id' : 'checkout_id'} = $1`,
        [checkoutId],
      ),
    ),
  )
  const [checkout = []] = found
  assert(checkout.length > 0 || found.every((rows) => rows.length === 0), `a part of ${checkoutId} is left`)
  return checkout.length > 0
}

/** Every row of these tables, as text. */
export async function rowsOf(
  { ctx }: Pick<TestApp, 'ctx'>,
  of: readonly string[] = tables,
): Promise<string[]> {
  const all: string[] = []
  for (const table of of)
    for (const { text } of await ctx.db.query<{ text: string }>(
      `select to_jsonb(t)::text as text from ${table} t order by 1`,
    ))
      all.push(`${table} ${text}`)
  return all
}

/** Makes checkouts that were just paid as old as all others here, and deletes them. */
export async function ageAndDelete(
  { ctx }: Pick<TestApp, 'ctx'>,
  checkoutIds: readonly string[],
): Promise<void> {
  const old = `interval '${agedDays} days'`
  const set = (table: string, columns: readonly string[], id = 'checkout_id') =>
    ctx.db.query(
      `update ${table} set ${columns.map((column) => `${column} = ${column} - ${old}`).join(', ')} where ${id} = any($1)`,
      [checkoutIds],
    )
  await set('checkouts', ['created_at', 'expires_at'], 'id')
  await set('events', ['created_at'])
  await ctx.db.query(
    `update credits set finalized_at = coalesce(finalized_at, clock()), safe_at = coalesce(safe_at, clock())
     where checkout_id = any($1)`,
    [checkoutIds],
  )
  await set('credits', ['included_at', 'finalized_at', 'safe_at', 'witnessed_at', 'first_seen_block_time'])
  await set('authorizations', ['claimed_at', 'resolved_at'])
  await ctx.db.query('update reserved_amounts set freed_at = clock() where checkout_id = any($1)', [
    checkoutIds,
  ])
  await set('reserved_amounts', ['freed_at'])
  await ctx.db.query(`update transactions set mined_at = clock() - ${old}`)
  await until('they are deleted', async () => {
    while (await countRollups(ctx));
    await ctx.db.query("select delete_over('', 'ch~', 90, 500)")
    const left = await ctx.db.query('select 1 as one from checkouts where id = any($1)', [checkoutIds])
    return left.length === 0
  })
}
