import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, type RefundId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { askCancel, endUnprepared } from './cancel-rows.ts'
import { toWire } from './refund.ts'
import { lockRefund, lockWatched } from './rows.ts'

/**
 * Cancels a refund that nobody has signed. If something was handed out to be signed, a signature may exist: then the
 * refund counts until that can no longer move money, and is canceled by itself after that (`isCanceling`).
 */
export async function cancelRefund(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  id: string,
  now: Date,
): Promise<Wire> {
  return await ctx.db.transaction(async (tx) => {
    const found = isId('rf', id) ? await lockRefund(tx, storeId, id) : null
    if (!found) throw new Problem('not_found', 'No such refund.')
    if (found.status === 'CANCELED' || found.cancelAskedAt !== null) return toWire(found)
    if (found.status !== 'REQUESTED')
      throw new Problem('refund_in_progress', `The refund is ${found.status}.`)
    const watched = await lockWatched(tx, found.id)
    const isOut = watched !== null && watched.facts.authorization !== null
    if (isOut && watched.facts.authorization !== 'dead') await askCancel(tx, found.id)
    else await endUnprepared(tx, found.id)
    const refund = await lockRefund(tx, storeId, found.id as RefundId)
    if (!refund) throw new Problem('not_found', 'No such refund.')
    if (refund.status === 'CANCELED')
      await appendEvent(tx, newEvent(ctx, storeId, actor, 'refund.canceled', { refund: toWire(refund) }, now))
    return toWire(refund)
  })
}
