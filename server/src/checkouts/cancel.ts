import type { Actor, StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { toStoreWire } from './checkout.ts'
import { lockCheckout, moveCheckouts } from './rows.ts'

/** Cancels an unpaid checkout. Idempotent. */
export async function cancelCheckout(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  checkoutId: string,
  now: Date,
): Promise<StoreCheckout> {
  if (!isId('ch', checkoutId)) throw new Problem('not_found', 'No such checkout.')
  return await ctx.db.transaction(async (tx) => {
    const found = await lockCheckout(tx, storeId, checkoutId)
    if (!found) throw new Problem('not_found', 'No such checkout.')
    const { checkout, isPastExpiry } = found
    if (checkout.status === 'PROCESSING') {
      throw new Problem(
        'payment_in_progress',
        'A payment is being settled. Its outcome decides whether the checkout can be canceled.',
        {
          retryAfterSeconds: 5,
        },
      )
    }
    if (checkout.status === 'COMPLETED')
      throw new Problem('not_cancelable', 'The checkout is already paid (COMPLETED).')
    if (checkout.status === 'EXPIRED' || (checkout.status === 'OPEN' && isPastExpiry)) {
      throw new Problem('not_cancelable', 'The checkout has expired (EXPIRED).')
    }
    if (checkout.status === 'CANCELED') return toStoreWire(ctx, checkout, null)
    const [canceled = checkout] = await moveCheckouts(ctx, tx, [checkout], { status: 'CANCELED', actor }, now)
    return toStoreWire(ctx, canceled, null)
  })
}
