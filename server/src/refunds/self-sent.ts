import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { isId, type StoreId } from '../ids.ts'
import type { Rails } from '../payments/rail.ts'
import { invalid, Problem } from '../problems.ts'
import { checkText } from '../stores/check-text.ts'
import { changeRefund } from './change.ts'
import { type Refund, toWire } from './refund.ts'
import { lockRefund } from './rows.ts'

/**
 * Takes the transaction with which the store paid a refund by itself. The refund is SENT, and `work` looks for the
 * transfer (prove-sent.ts). The store can name another transaction until the transfer is proven.
 */
export async function nameTransaction(
  ctx: Context,
  rails: Rails,
  storeId: StoreId,
  id: string,
  named: { readonly transaction: string; readonly actor: Actor },
): Promise<Wire> {
  const refund = await ctx.db.transaction(async (tx) => {
    const found = await lockSent(tx, storeId, id)
    if (found.recipient === null)
      throw invalid({
        pointer: '/transaction',
        code: 'recipient',
        detail: 'The refund has no recipient yet, so no transfer can prove it.',
      })
    const sent = rails.get(found.network)?.sent
    if (!sent)
      throw invalid({
        pointer: '/transaction',
        code: 'network',
        detail: 'Transactions of this network cannot be looked up here. Declare the refund with a reference.',
      })
    const transaction = sent.parse(named.transaction)
    if (transaction === null)
      throw invalid({
        pointer: '/transaction',
        code: 'transaction',
        detail: 'Must be the hash of a transaction on the refund’s network.',
      })
    const isOpen = (found.status === 'REQUESTED' || found.status === 'SENT') && found.position === null
    if (!isOpen) throw new Problem('refund_in_progress', `The refund is ${found.status}.`)
    const by = { actor: named.actor, now: ctx.now() }
    return await changeRefund(ctx, tx, found, { named: transaction }, by)
  })
  ctx.db.wakeUps.send('decisions')
  return toWire(refund)
}

/** Locks a refund that the store pays by itself. Throws a Problem if it was canceled. */
async function lockSent(tx: Transaction, storeId: StoreId, id: string): Promise<Refund> {
  const found = isId('rf', id) ? await lockRefund(tx, storeId, id) : null
  if (!found) throw new Problem('not_found', 'No such refund.')
  if (found.way !== 'self-sent')
    throw invalid({
      pointer: '/transaction',
      code: 'way',
      detail: 'The refund’s way is "signed": it is sent for the store once the wallet has signed it.',
    })
  if (found.status === 'CANCELED' || found.cancelAskedAt !== null)
    throw new Problem('refund_canceled', 'The refund was canceled.')
  return found
}

/** Enough for a transfer's number at an exchange and a sentence about it. */
const referenceBytesMax = 500

/**
 * Records the store's statement that it paid a refund outside of the chains we see, with its own reference. The refund
 * counts against the payment for good and never becomes COMPLETED. It cannot be undone, because we cannot check whether
 * the money was sent.
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
