import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { changeRefund } from './change.ts'
import { toWire } from './refund.ts'
import { lockRefund } from './rows.ts'

/**
 * Cancels a refund that is not signed. If its transfer was handed out to be signed, a signature may exist. Then the
 * refund is `isCanceling`: it counts until the signature can no longer move money, and is CANCELED after that.
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
    return toWire(await changeRefund(ctx, tx, found, { isCancelAsked: true }, { actor, now }))
  })
}
