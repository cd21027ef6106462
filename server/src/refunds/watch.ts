import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { refundOutcomes } from '../metrics.ts'
import { networks } from '../networks.ts'
import { changeRefund, isOutdated, listWatched } from './change.ts'
import { eventOf, type Refund, type RefundEvent } from './refund.ts'
import { lockRefund } from './rows.ts'

const watchedPerRun = 500

/**
 * Computes the status of refunds again from their facts, which lanes, followers and proofs of death write without knowing
 * of refunds. Being late is safe: a refund counts until this loop has written that it ended. `pass` says where the last
 * run stopped. Returns whether there is more to do.
 */
export async function watchRefunds(ctx: Context, pass: { after: string }): Promise<boolean> {
  const watched = await listWatched(ctx.db, pass.after, watchedPerRun)
  for (const { refund, findings } of watched) if (isOutdated(refund, findings)) await update(ctx, refund)
  const isMore = watched.length === watchedPerRun
  pass.after = isMore ? (watched.at(-1)?.refund.id ?? '') : ''
  return isMore
}

async function update(ctx: Context, { storeId, id }: Refund): Promise<void> {
  const changed = await ctx.db.transaction(async (tx) => {
    const before = await lockRefund(tx, storeId, id)
    // Since it was listed, another `work` may have written its last change, or `serve` may have canceled it.
    if (!before?.isWatched) return null
    const by = { actor: null, now: ctx.now(), mayComplete: true }
    const refund = await changeRefund(ctx, tx, before, {}, by)
    crashPoint(ctx, 'watch-before-commit')
    if (refund.status === before.status) return null
    return { refund, event: eventOf(before.status, refund.status) }
  })
  crashPoint(ctx, 'watch-after-commit')
  if (!changed) return
  ctx.db.wakeUps.send('outcomes')
  report(ctx, changed.refund, changed.event)
}

/** Logs and counts a change once it is committed. */
function report(ctx: Context, refund: Refund, event: RefundEvent | null): void {
  const { id, paymentId, status, transaction, failure } = refund
  const network = networks.find(({ caip2 }) => caip2 === refund.network)?.id ?? refund.network
  const fields = { refundId: id, paymentId, network, status, txHash: transaction }
  const outcome = refundOutcomes.find((each) => event === `refund.${each}`)
  if (outcome) ctx.metrics.refunds.inc({ network, outcome })
  if (outcome === 'failed')
    ctx.log.warn(
      { ...fields, reason: failure },
      'refund failed: it can never be paid; the store can make another',
    )
  else if (outcome === 'reorged')
    ctx.log.warn(fields, 'refund removed: a reorganisation took its block; the same bytes are sent again')
  else ctx.log.info(fields, outcome ? `refund ${outcome}` : 'refund changed')
}
