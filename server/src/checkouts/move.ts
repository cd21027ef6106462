import assert from 'node:assert/strict'
import type { Actor, CheckoutPayment, CheckoutStatus } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { type CheckoutId, newId } from '../ids.ts'
import { arrow, type Checkout, toStoreWire } from './checkout.ts'
import { writeMoves } from './rows.ts'

/**
 * Changes the status of checkouts: status, version and event in one statement. The caller holds their row locks, so a
 * version mismatch is a bug.
 */
export async function moveCheckouts(
  ctx: Context,
  tx: Transaction,
  checkouts: readonly Checkout[],
  to: {
    status: CheckoutStatus
    payments?: ReadonlyMap<CheckoutId, CheckoutPayment | null>
    /** Who asked for the change; absent if time or the chain caused it. */
    actor?: Actor
  },
  now: Date,
): Promise<Checkout[]> {
  const moves = checkouts.map((before) => {
    const { event: type } = arrow(before.status, to.status)
    const checkout: Checkout = { ...before, status: to.status, version: before.version + 1 }
    const data = { checkout: toStoreWire(ctx, checkout, to.payments?.get(checkout.id) ?? null) }
    return { checkout, type, eventId: newId('evt', ctx.config.cell, now), actor: to.actor ?? null, data, now }
  })
  assert.equal(await writeMoves(tx, moves), moves.length)
  return moves.map(({ checkout }) => checkout)
}
