import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { refundOutcomes } from '../metrics.ts'
import type { Network } from '../networks.ts'

/** A larger count takes long and tells operators nothing more. */
const waitingMax = 10_000

/** Measures how many signed refunds wait. Unsigned ones are not counted: they wait for their store, not for us. */
export function openRefundMeasure(ctx: Context, networks: readonly Network[]): () => Promise<void> {
  // The counter starts at zero: Prometheus does not see the first increase of a counter that appears with it.
  for (const { id } of networks)
    for (const outcome of refundOutcomes) ctx.metrics.refunds.inc({ network: id, outcome }, 0)
  return async () => {
    for (const { id, caip2 } of networks)
      for (const [status, count] of Object.entries(await countOnTheWay(ctx.db, caip2, waitingMax)))
        ctx.metrics.refundsWaiting.set({ network: id, status }, count)
  }
}

/** Counts a network's refunds that wait for a transaction (SIGNED) or for a block (SENT), up to `max`. */
async function countOnTheWay(
  db: Database,
  network: string,
  max: number,
): Promise<{ readonly SIGNED: number; readonly SENT: number }> {
  const [row] = await db.query<{ signed: number; sent: number }>(
    `select count(*) filter (where status = 'SIGNED')::integer as signed,
       count(*) filter (where status = 'SENT')::integer as sent
     from (select status from refunds where is_watched and network = $1 and status in ('SIGNED', 'SENT') limit $2) waiting`,
    [network, max],
  )
  return { SIGNED: row?.signed ?? 0, SENT: row?.sent ?? 0 }
}
