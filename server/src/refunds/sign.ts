import type { Refund as Wire } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { isId, type StoreId } from '../ids.ts'
import { claimHandOut, readHandOut } from '../payments/hand-outs.ts'
import type { Presented, Rails, Transfer } from '../payments/rail.ts'
import { inFlightMax, readInFlight } from '../payments/rows.ts'
import { nextDay, readStoreGas } from '../payments/settlers/quota.ts'
import { invalid, Problem } from '../problems.ts'
import { changeRefund } from './change.ts'
import { orUnavailable, railOf, refuseUnpaid, refuseUnsignable } from './prepare.ts'
import { type Refund, toWire } from './refund.ts'
import { findRefund, lockRefund } from './rows.ts'

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
    detail: 'Nothing that could be signed is open. Prepare the refund, and sign what that returns.',
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
