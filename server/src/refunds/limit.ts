import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { firstIdAt, type StoreId } from '../ids.ts'
import { parseDecimal } from '../money.ts'
import { decimalsOf } from './refund.ts'

/** The last 24 hours. With calendar days, a manager could refund twice the limit around midnight. */
const dayMs = 24 * 3_600_000
/** No token has more, so sums of different tokens are exact. */
const decimalsMax = 18

/**
 * Whether a member has refunded more than `limit` whole tokens within a day. The transaction that creates a refund asks
 * this after creating it, and rolls back if so.
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

/** Sums the refunds of these members since the id `since`, by asset, in its smallest unit. */
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
