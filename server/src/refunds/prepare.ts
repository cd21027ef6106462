import type { Refund as Wire } from '@farthing/sdk'
import { RpcAnswerError, RpcUnavailableError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { isId, type RefundId, type StoreId } from '../ids.ts'
import { readHandOut } from '../payments/hand-outs.ts'
import type { Rails, RefundOrder, RefundRail, ToSign } from '../payments/rail.ts'
import { Problem } from '../problems.ts'
import { changeRefund } from './change.ts'
import { noncesOf, type Refund, toWire } from './refund.ts'
import { findForgotten, findRefund, lockRefund, readRefundable } from './rows.ts'

export type PreparedRefund = { readonly refund: Wire } & ToSign

/**
 * Hands out the transfer for the store's wallet to sign. Later calls return the same nonce, amount and recipient, and
 * never a window that ends earlier. From the first call on, the refund counts until its nonce is dead, signed or not.
 */
export async function prepareRefund(
  ctx: Context,
  rails: Rails,
  storeId: StoreId,
  id: string,
): Promise<PreparedRefund> {
  const asked = isId('rf', id) ? await findRefund(ctx.db, storeId, id) : null
  if (!asked) throw new Problem('not_found', 'No such refund.')
  refuseUnsignable(asked)
  const rail = railOf(rails, asked)
  const first = await ctx.db.transaction((tx) => toOrder(tx, asked))
  const toSign = await orUnavailable(
    rail.prepare(ctx, first, async (write) => {
      await ctx.db.transaction(async (tx) => {
        const refund = await lockRefund(tx, storeId, id)
        if (!refund) throw new Problem('not_found', 'No such refund.')
        refuseUnsignable(refund)
        await refuseUnpaid(tx, refund)
        const order = await toOrder(tx, refund)
        const nonce = await write(tx, order)
        // On networks where nonces do not follow from the payment, all of its refunds share the first slot.
        const slot = Math.max(0, order.nonces.indexOf(nonce ?? ''))
        const handOut = nonce === null ? null : { slot, nonce }
        await changeRefund(ctx, tx, refund, { handOut }, { actor: null, now: ctx.now() })
        crashPoint(ctx, 'prepare-before-commit')
      })
      crashPoint(ctx, 'prepare-after-commit')
    }),
  )
  const refund = await findRefund(ctx.db, storeId, id)
  if (!refund) throw new Problem('not_found', 'No such refund.')
  return { refund: toWire(refund), ...toSign }
}

/** The part of a network that sends refunds. */
export function railOf(rails: Rails, { network }: Refund): RefundRail {
  const rail = rails.get(network)
  if (!rail || rail.providers === 0 || !rail.refunds)
    throw new Problem(
      'unavailable',
      `This deployment cannot send refunds on ${network}. Nothing was handed out.`,
    )
  return rail.refunds
}

/** Throws a Problem unless the refund waits for a signature. */
export function refuseUnsignable(refund: Refund): void {
  if (refund.status === 'CANCELED' || refund.cancelAskedAt !== null)
    throw new Problem('refund_canceled', 'The refund was canceled, so nothing is signed for it any more.')
  if (refund.status === 'FAILED')
    throw new Problem('refund_canceled', 'The refund has failed, so nothing is signed for it any more.')
  if (refund.way !== 'signed')
    throw new Problem('refund_in_progress', 'The store sends this refund by itself: name its transaction.')
  if (refund.status !== 'REQUESTED')
    throw new Problem('refund_in_progress', `The refund is ${refund.status}.`)
  if (refund.recipient === null)
    throw new Problem('refund_in_progress', 'Nobody has said yet who receives the refund.')
}

/** Throws a Problem unless the payment is final: the store must have the money that it gives back. */
export async function refuseUnpaid(tx: Transaction, { storeId, paymentId }: Refund): Promise<void> {
  const payment = await readRefundable(tx, storeId, paymentId)
  if (!payment) throw new Problem('payment_not_open', 'The chain took the payment back.')
  if (!payment.isFinal)
    throw new Problem('payment_not_final', 'The chain has moved the payment to another block.', {
      retryAfterSeconds: 60,
    })
}

async function toOrder(tx: Transaction, refund: Refund): Promise<RefundOrder> {
  const { network, asset, wallet, identity, amount, recipient, storeId, paymentId } = refund
  const nonces = noncesOf(network, asset, identity)
  // After a restore, the follower may find a forgotten refund only after this one was created.
  if ((await findForgotten(tx, { network, asset, wallet }, nonces)).length > 0)
    throw new Problem(
      'refund_exceeds_payment',
      'The chain shows a refund of this payment from before the database was restored. Cancel this one, and create it again for what is left.',
    )
  const key = { asset, wallet, refundId: refund.id }
  const before = refund.nonce === null ? null : await readHandOut(tx, network, key, refund.nonce)
  const ended = await tx.query<{ id: RefundId }>(
    'select id from refunds where payment_id = $1 and ended_at is not null order by id',
    [paymentId],
  )
  const isSpent = before === null || (before.state === 'dead' && before.reason !== 'authorization_expired')
  return {
    refundId: refund.id,
    storeId,
    asset,
    wallet,
    recipient: recipient ?? '',
    amount,
    nonces,
    taken: isSpent ? null : refund.nonce,
    endedIds: ended.map(({ id }) => id),
  }
}

/** Turns a failure of nodes into a Problem that can be retried: it says nothing about the refund. */
export async function orUnavailable<Answer>(asking: Promise<Answer>): Promise<Answer> {
  return await asking.catch((error) => {
    if (!(error instanceof RpcUnavailableError) && !(error instanceof RpcAnswerError)) throw error
    throw new Problem('unavailable', 'The network’s nodes do not answer. Nothing was sent.', {
      retryAfterSeconds: 5,
      cause: error,
    })
  })
}
