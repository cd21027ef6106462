import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { checkText } from '../stores/check-text.ts'
import { changeRefund } from './change.ts'
import { lockSent } from './name-transaction.ts'
import { toWire } from './refund.ts'

/** A transfer's number at an exchange, and a sentence about it. */
const referenceBytesMax = 500

/**
 * Records the store's statement that it paid a refund outside of the chains we see, with its own reference. The refund
 * counts against the payment for good and never becomes COMPLETED. It cannot be undone, because we cannot check whether
 * the money went.
 */
export async function declareRefund(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  id: string,
  reference: string,
): Promise<Wire> {
  const mistakes = checkText('/reference', reference, referenceBytesMax)
  if (mistakes.length > 0) throw invalid(...mistakes)
  const refund = await ctx.db.transaction(async (tx) => {
    const found = await lockSent(tx, storeId, id)
    // The same request again.
    if (found.status === 'DECLARED' && found.declared === reference) return found
    if (found.status !== 'REQUESTED')
      throw new Problem('refund_in_progress', `The refund is ${found.status}.`)
    return await changeRefund(ctx, tx, found, { declared: reference }, { actor, now: ctx.now() })
  })
  ctx.log.info(
    { refundId: id, storeId, actor: actor.id },
    'refund declared as paid elsewhere; it cannot be undone',
  )
  return toWire(refund)
}
