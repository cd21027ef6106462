import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { type Checkout, toStoreWire } from './checkout.ts'
import { claimIn, type NewClaim, noteClaimed, refuseBusy } from './claim.ts'

/** A checkout that exists only once somebody pays it. */
export type Draft = {
  readonly checkout: Checkout
  /** In whose transactions it is inserted. */
  readonly db: Database
  /** Inserts it, if it may still be made. Returns it as it was inserted, or null. */
  insert(tx: Transaction): Promise<Checkout | null>
}

/** `changed`: it may not be made any more, or not as it is. `taken`: the authorization belongs to another checkout. */
type Created = 'claimed' | 'changed' | 'taken'

/**
 * Inserts a checkout and claims the payment that was verified against it, in one transaction. So a request without a good
 * payment leaves nothing behind, and there is no checkout that its payer does not pay.
 */
export async function createClaimed(
  ctx: Context,
  { db, insert }: Draft,
  payment: Omit<NewClaim, 'eventId' | 'data'>,
): Promise<Created> {
  const rollback = new Error('the authorization is taken')
  const made = await db
    .transaction(async (tx) => {
      const checkout = await insert(tx)
      if (!checkout) return null
      const data = { checkout: toStoreWire(ctx, { ...checkout, status: 'PROCESSING' }, null) }
      const claim = { ...payment, data, eventId: newId('evt', ctx.config.cell, payment.now) }
      if (!(await claimIn(tx, claim))) throw rollback
      return claim
    })
    .catch((error) => (error === rollback ? ('taken' as const) : refuseBusy(error)))
  if (made === null) return 'changed'
  if (made === 'taken') return made
  noteClaimed(ctx, made)
  return 'claimed'
}
