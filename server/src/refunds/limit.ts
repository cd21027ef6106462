import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { firstIdAt, type StoreId } from '../ids.ts'
import { parseDecimal } from '../money.ts'
import { decimalsOf } from './refund.ts'

/** Not the store's calendar day: whoever waits for midnight would refund twice as much. */
const dayMs = 24 * 3_600_000
/** No token has more, so sums of different tokens are exact. */
const decimalsMax = 18

/**
 * Whether somebody has refunded more than `limit` whole tokens within a day. Asked in the transaction that created a
 * refund, which is undone if it did.
 */
export async function isAboveLimit(
  ctx: Context,
  storeId: StoreId,
  actorId: string,
  limit: string,
  now: Date,
): Promise<boolean> {
  const since = firstIdAt('rf', ctx.config.cell, new Date(now.getTime() - dayMs))
  const sums = await sumSince(ctx.db, storeId, [actorId], since)
  const refunded = sums.reduce(
    (sum, { network, asset, units }) => sum + units * 10n ** BigInt(decimalsMax - decimalsOf(network, asset)),
    0n,
  )
  const { coefficient, scale } = parseDecimal(limit)
  return refunded > coefficient * 10n ** BigInt(decimalsMax - scale)
}

/** What was refunded by this store's managers since a time, by asset, in whole tokens. */
async function sumSince(
  db: Database,
  storeId: StoreId,
  actorIds: readonly string[],
  since: string,
): Promise<{ readonly network: string; readonly asset: string; readonly units: bigint }[]> {
  const rows = await db.query<{ network: string; asset: string; units: string }>(
    `select r.network, r.asset, sum(r.amount)::text as units from refunds r
     where r.store_id = $1 and r.id >= $3 and r.actor ->> 'id' = any($2) and r.status not in ('FAILED', 'CANCELED')
     group by r.network, r.asset`,
    [storeId, actorIds, since],
  )
  return rows.map(({ network, asset, units }) => ({ network, asset, units: BigInt(units) }))
}
