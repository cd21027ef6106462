import type { Actor, StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { firstIdAt, isId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { scheduleCancellation, takeCancellation } from '../stores/undo.ts'
import { toStoreWire } from './checkout.ts'
import { type CheckoutRow, lockCheckout, moveCheckouts, toCheckout } from './rows.ts'

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

/** Keeps a transaction short when a backlog has built up. */
const checkoutsPerRun = 200
/**
 * A checkout's id contains the clock of the process that created it, which may be behind the clock that dated the
 * change.
 */
const clocksDifferMs = 60_000
/**
 * The search is repeated, because a running create may commit after the undo, and a failed payment opens its checkout
 * again.
 */
const againSeconds = 30
const searchMinutes = 30

/**
 * Cancels open checkouts that would pay to a wallet whose use was undone, if its owner asked for that. Returns whether
 * there was an undone change to search for. Any number of processes may run it at once.
 */
export async function cancelUndone(ctx: Context, now: Date): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    const found = await takeCancellation(tx)
    if (!found) return false
    const { changeId, storeId, address, since, undoneBy } = found
    const from = firstIdAt('ch', ctx.config.cell, new Date(since.getTime() - clocksDifferMs))
    const open = await tx.query<CheckoutRow>(
      `select * from checkouts c where c.store_id = $1 and c.status = 'OPEN' and c.id >= $3 and c.expires_at > clock()
         and exists (select 1 from json_array_elements(c.options) o where o ->> 'payTo' = $2)
       order by c.id limit $4 for update of c skip locked`,
      [storeId, address, from, checkoutsPerRun],
    )
    if (open.length > 0)
      await moveCheckouts(ctx, tx, open.map(toCheckout), { status: 'CANCELED', actor: undoneBy }, now)
    if (open.length < checkoutsPerRun) await scheduleCancellation(tx, changeId, againSeconds, searchMinutes)
    return true
  })
}
