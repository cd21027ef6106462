import type { Refund as Wire } from '@farthing/sdk'
import { isNodeError } from '../chains/rpc.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { isId, type RefundId, type StoreId } from '../ids.ts'
import { claimHandOut, readHandOut } from '../payments/hand-outs.ts'
import type { Presented, Rails, RefundOrder, RefundRail, ToSign, Transfer } from '../payments/rail.ts'
import { inFlightMax, readInFlight } from '../payments/rows.ts'
import { nextDay, readStoreGas } from '../payments/settlers/readiness.ts'
import { invalid, Problem } from '../problems.ts'
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
function railOf(rails: Rails, { network }: Refund): RefundRail {
  const rail = rails.get(network)
  if (!rail || rail.providers === 0 || !rail.refunds)
    throw new Problem(
      'unavailable',
      `This deployment cannot send refunds on ${network}. Nothing was handed out.`,
    )
  return rail.refunds
}

/** Throws a Problem unless the refund waits for a signature. */
function refuseUnsignable(refund: Refund): void {
  if (refund.status === 'CANCELED' || refund.cancelAskedAt !== null)
    throw new Problem('refund_canceled', 'The refund was canceled, so it can no longer be signed.')
  if (refund.status === 'FAILED')
    throw new Problem('refund_canceled', 'The refund has failed, so it can no longer be signed.')
  if (refund.way !== 'signed')
    throw new Problem('refund_in_progress', 'The store sends this refund by itself: name its transaction.')
  if (refund.status !== 'REQUESTED')
    throw new Problem('refund_in_progress', `The refund is ${refund.status}.`)
  if (refund.recipient === null) throw new Problem('refund_in_progress', 'The refund has no recipient yet.')
}

/** Throws a Problem unless the payment is final: the store must have the money that it gives back. */
async function refuseUnpaid(tx: Transaction, { storeId, paymentId }: Refund): Promise<void> {
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

/** Turns a failure of nodes into a Problem that can be retried, because the failure says nothing about the refund. */
async function orUnavailable<Answer>(asking: Promise<Answer>): Promise<Answer> {
  return await asking.catch((error) => {
    if (!isNodeError(error)) throw error
    throw new Problem('unavailable', 'The network’s nodes do not answer. Nothing was sent.', {
      retryAfterSeconds: 5,
      cause: error,
    })
  })
}

/**
 * Takes the wallet's signature of the prepared transfer. Once it is committed, a lane sends it. Presenting it again, or
 * presenting another owner's signature, changes nothing. A signature that would not move the money now is refused with
 * the reason, and can be presented again.
 */
export async function signRefund(
  ctx: Context,
  rails: Rails,
  storeId: StoreId,
  id: string,
  presented: Presented,
): Promise<Wire> {
  for (;;) {
    const refund = isId('rf', id) ? await findRefund(ctx.db, storeId, id) : null
    if (!refund) throw new Problem('not_found', 'No such refund.')
    if (isTaken(refund)) return toWire(refund)
    refuseUnsignable(refund)
    const other = underWay.get(id)
    if (!other) {
      const taking = take(ctx, rails, refund, presented)
      underWay.set(id, taking)
      return await taking.finally(() => underWay.delete(id))
    }
    // The refund that is read next shows the outcome, whether that signature was taken or refused.
    await other.catch(() => {})
  }
}

/**
 * The refunds whose signature this process is taking. A second signature for the same refund waits here, without a
 * connection, because a thousand at once would use up all connections. One map serves all contexts: each request to the
 * console has its own.
 */
const underWay = new Map<string, Promise<Wire>>()

async function take(ctx: Context, rails: Rails, refund: Refund, presented: Presented): Promise<Wire> {
  const { id, storeId } = refund
  const transfer = await verify(ctx, rails, refund, presented)
  const signed = await ctx.db.transaction(async (tx) => {
    const current = await lockRefund(tx, storeId, id)
    if (!current) throw new Problem('not_found', 'No such refund.')
    if (isTaken(current)) return { refund: current, isNews: false }
    refuseUnsignable(current)
    await refuseUnpaid(tx, current)
    if (!(await claimHandOut(tx, current.network, current.id, transfer))) throw outdated()
    const by = { actor: null, now: ctx.now() }
    const after = await changeRefund(ctx, tx, current, { signedAt: 'now' }, by)
    crashPoint(ctx, 'sign-before-commit')
    return { refund: after, isNews: true }
  })
  if (signed.isNews) {
    crashPoint(ctx, 'sign-after-commit')
    ctx.db.wakeUps.send('claims')
    ctx.log.info({ refundId: id, paymentId: refund.paymentId }, 'refund signed: it is sent next')
  }
  return toWire(signed.refund)
}

/** Whether a signature was taken before, so that another changes nothing. */
function isTaken({ way, status }: Refund): boolean {
  return way === 'signed' && (status === 'SIGNED' || status === 'SENT' || status === 'COMPLETED')
}

async function verify(ctx: Context, rails: Rails, refund: Refund, presented: Presented): Promise<Transfer> {
  const { id, network, asset, wallet, nonce, storeId } = refund
  const handed =
    nonce === null ? null : await readHandOut<string>(ctx.db, network, { asset, wallet, refundId: id }, nonce)
  if (handed?.state !== 'prepared') throw outdated()
  await refuseOverQuota(ctx, rails, network, storeId)
  const inFlight = await readInFlight(ctx.db, network, asset, wallet)
  if (inFlight.payments > inFlightMax)
    throw new Problem(
      'rate_limited',
      `The wallet has more than ${inFlightMax} refunds on their way. Present the same signature again.`,
      { retryAfterSeconds: 2 },
    )
  const verified = await orUnavailable(railOf(rails, refund).verify(ctx, handed, presented, inFlight.units))
  if ('transfer' in verified) return verified.transfer
  const pointer = 'transaction' in presented ? '/transaction' : '/signature'
  throw invalid({ pointer, ...verified.refusal })
}

function outdated(): Problem {
  return invalid({
    pointer: '/signature',
    code: 'expired',
    detail: 'The refund has no transfer to sign now. Prepare it, and sign the transfer that this returns.',
  })
}

/** Limits the daily network fees of a store's payments and refunds together. */
async function refuseOverQuota(ctx: Context, rails: Rails, network: string, storeId: StoreId): Promise<void> {
  const perDay = rails.get(network)?.storeCostPerDay ?? null
  if (perDay === null) return
  const spent = (await readStoreGas(ctx.db, storeId)).get(network) ?? 0n
  if (spent < perDay) return
  const now = ctx.now()
  const resetAt = nextDay(now)
  throw new Problem(
    'settlement_unavailable',
    `This store has used up its allowance of network fees for today. It is renewed at ${resetAt.toISOString()}. Present the same signature then, or send the refund yourself.`,
    { retryAfterSeconds: Math.ceil((resetAt.getTime() - now.getTime()) / 1_000) },
  )
}
