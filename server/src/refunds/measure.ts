import type { Context } from '../context.ts'
import { refundOutcomes } from '../metrics.ts'
import type { Network } from '../networks.ts'
import { countOnTheWay } from './rows.ts'

/** Counting more would say nothing else, and takes long. */
const waitingMax = 10_000

/** Tells operators how many refunds wait. Those that nobody has signed wait for their store, not for us. */
export function openRefundMeasure(ctx: Context, networks: readonly Network[]): () => Promise<void> {
  // A counter that appears with its first increase hides that increase from Prometheus.
  for (const { id } of networks)
    for (const outcome of refundOutcomes) ctx.metrics.refunds.inc({ network: id, outcome }, 0)
  return async () => {
    for (const { id, caip2 } of networks)
      for (const [status, count] of Object.entries(await countOnTheWay(ctx.db, caip2, waitingMax)))
        ctx.metrics.refundsWaiting.set({ network: id, status }, count)
  }
}
