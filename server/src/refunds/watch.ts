import type { EventType, RefundStatus } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import type { RefundId } from '../ids.ts'
import { refundOutcomes } from '../metrics.ts'
import { networks } from '../networks.ts'
import { evaluateRefund, eventOf, isCounted, type Refund, toWire } from './refund.ts'
import { listWatched, lockWatched, readRefund, type Watched, writeStatus } from './rows.ts'

const watchedPerRun = 500

/**
 * Computes the status of refunds again from their facts, which lanes, followers and proofs of death write without knowing
 * of refunds. A fact that is seen late changes nothing but the time: a refund counts until this loop has written that
 * it ended. `turn` is where the last look stopped. Returns whether there is more to look at.
 */
export async function watchRefunds(ctx: Context, turn: { after: string }): Promise<boolean> {
  const watched = await listWatched(ctx.db, turn.after, watchedPerRun)
  for (const refund of watched) if (isChanged(refund)) await update(ctx, refund.id)
  const isMore = watched.length === watchedPerRun
  turn.after = isMore ? (watched.at(-1)?.id ?? '') : ''
  return isMore
}

function isChanged(watched: Watched): boolean {
  return (
    evaluateRefund(watched.facts) !== watched.status ||
    (watched.transfer !== null && watched.transfer.finality !== watched.finality) ||
    (watched.status === 'SIGNED' && watched.authorizationReason !== watched.failure) ||
    isDone(watched)
  )
}

/** Whether no fact can change it any more: what is finalized stays, and so does what has ended or was declared. */
function isDone({ facts, transfer, finality }: Watched): boolean {
  const status = evaluateRefund(facts)
  if (status === 'COMPLETED') return (transfer?.finality ?? finality) === 'finalized'
  return !isCounted(status) || status === 'DECLARED'
}

/** Why it has failed or is not done yet: of no use to anybody once it is on its way or over. */
function failureOf({ authorizationReason, failure }: Watched, status: RefundStatus): string | null {
  if (status === 'FAILED' || status === 'SIGNED') return authorizationReason
  return status === 'REQUESTED' ? failure : null
}

async function update(ctx: Context, id: RefundId): Promise<void> {
  const changed = await ctx.db.transaction(async (tx) => {
    const watched = await lockWatched(tx, id)
    // Since it was listed, another `work` may have written its last change, or `serve` may have canceled it.
    if (!watched?.isWatched || !isChanged(watched)) return null
    const status = evaluateRefund(watched.facts)
    const event = status === watched.status ? null : eventOf(watched.status, status)
    await writeStatus(tx, watched, {
      status,
      transaction: watched.transfer?.transaction ?? (watched.way === 'sent' ? watched.transaction : null),
      finality: status === 'COMPLETED' ? (watched.transfer?.finality ?? watched.finality) : null,
      failure: failureOf(watched, status),
      isWatched: !isDone(watched),
      hasEnded: !isCounted(status) && isCounted(watched.status),
      hasCompleted: status === 'COMPLETED',
    })
    const refund = await readRefund(tx, watched.storeId, id)
    if (refund && event)
      await appendEvent(tx, newEvent(ctx, refund.storeId, null, event, { refund: toWire(refund) }, ctx.now()))
    crashPoint(ctx, 'watch-before-commit')
    return refund && status !== watched.status ? { refund, event } : null
  })
  crashPoint(ctx, 'watch-after-commit')
  if (!changed) return
  ctx.db.wakeUps.send('outcomes')
  report(ctx, changed.refund, changed.event)
}

/** Tells operators, once it is committed. */
function report(ctx: Context, refund: Refund, event: EventType | null): void {
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
