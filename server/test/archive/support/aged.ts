import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { archiveEnded, firstPass } from '../../../src/archive/move.ts'
import type { Context } from '../../../src/context.ts'
import { openDatabase } from '../../../src/database/db.ts'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import type { TestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { payFinally } from '../../support/by-hand.ts'
import { urlAs } from '../../support/database.ts'
import type { StoreClient } from '../../support/store.ts'

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
/** Longer than any checkout stays where it was made. */
export const agedDays = 200

/** A context with the rights of `work`. */
export function openWork({ ctx, databaseUrl }: TestApp, clockOffset = ''): Context {
  const db = openDatabase({
    url: urlAs('work', databaseUrl),
    connections: 4,
    name: 'test-archive',
    clockOffset,
  })
  atEnd(() => db.close())
  return { ...ctx, db }
}

/** Archives whatever can be archived now. */
export async function archiveAll(work: Context, now = new Date()): Promise<void> {
  const pass = firstPass()
  while (pass.notBefore <= now) await archiveEnded(work, pass, now)
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

/** In which places a checkout's rows are. */
export async function placesOf({ ctx }: TestApp, checkoutId: string): Promise<string[]> {
  const places = new Set<string>()
  for (const table of tables) {
    const column = table === 'checkouts' ? 'id' : 'checkout_id'
    for (const [place, name] of [
      ['hot', table],
      ['archive', `archived_${table}`],
    ] as const) {
      const found = await ctx.db.query(`select 1 as one from ${name} where ${column} = $1`, [checkoutId])
      if (found.length > 0) places.add(place)
    }
  }
  assert(places.size > 0, `there is no ${checkoutId}`)
  return [...places]
}

/** How many rows each of these tables has, and a hash of them all, in order. */
export async function rowsOf(
  { ctx }: Pick<TestApp, 'ctx'>,
  prefix = '',
  of: readonly string[] = tables,
): Promise<string[]> {
  const all: string[] = []
  for (const table of of) {
    const rows = await ctx.db.query<{ text: string }>(
      `select to_jsonb(t)::text as text from ${prefix}${table} t order by 1`,
    )
    const hash = createHash('sha256').update(rows.map(({ text }) => text).join('\n'))
    all.push(`${table} ${rows.length} ${hash.digest('hex')}`)
  }
  return all
}
