import type { CheckoutPayment, Payment } from '@farthing/sdk'
import { listPayments } from '../../../checkouts/payments/list.ts'
import { listSummaries, type Summary } from '../../../checkouts/payments/summary-rows.ts'
import { type Period, readTakings, type Takings } from '../../../checkouts/rollups/takings.ts'
import type { Context } from '../../../context.ts'
import { listTroubled, type Troubled } from '../../../events/webhooks/troubled-rows.ts'
import type { StoreId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import type { StorePayment } from '../../../payments/credits/store-rows.ts'
import { listUndecided } from '../../../payments/credits/undecided-rows.ts'
import { countForStore } from '../../../refunds/read.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { listChanges } from '../../../stores/change.ts'
import { listCurrent, readStore } from '../../../stores/rows.ts'

/** What the store took, what needs somebody, and what happened last. */
export type Home = {
  readonly takings: Takings
  readonly period: Period
  readonly reportCurrency: string
  readonly latest: readonly Latest[]
  readonly undecided: readonly StorePayment[]
  /** Refunds that wait for the store. */
  readonly refunds: number
  readonly troubled: readonly Troubled[]
  readonly hasWaitingWallet: boolean
  readonly hasWallet: boolean
  readonly now: Date
}

/** A payment with what it was for, or a checkout that is being paid and has none yet. */
export type Latest = {
  readonly state:
    | Exclude<Payment['disposition'], 'exact'>
    | 'paid'
    | 'settling'
    | 'reversed'
    | 'refunded'
    | 'partlyRefunded'
  readonly checkout: Summary | null
  readonly payment: CheckoutPayment | null
  readonly paymentId: string | null
  readonly at: Date
}

const latestMax = 6
/** Beyond this many, and among older payments than this many of a kind, the inbox says what there is. */
export const undecidedMax = 20

/**
 * All of it in one transaction, because naming the store again for each statement would cost more than the statements.
 * `sees`: whoever cannot repair an endpoint or refund is not asked to.
 */
export async function readHome(
  outer: Context,
  storeId: StoreId,
  period: Period,
  sees: { readonly endpoints: boolean; readonly refunds: boolean },
): Promise<Home> {
  return await outer.db.transaction(async (tx) => {
    const ctx: Context = { ...outer, db: { ...outer.db, query: (text, values) => tx.query(text, values) } }
    const now = ctx.now()
    const store = await readStore(ctx.db, storeId)
    if (!store) throw new Refusal('not_found')
    return {
      takings: await readTakings(ctx, store, period, now),
      period,
      reportCurrency: store.reportCurrency,
      latest: await readLatest(ctx, storeId),
      undecided: await listUndecided(ctx.db, storeId, undecidedMax + 1, undecidedMax),
      refunds: sees.refunds ? await countForStore(ctx.db, storeId) : 0,
      troubled: sees.endpoints ? await listTroubled(ctx.db, storeId) : [],
      hasWaitingWallet: (await listChanges(ctx.db, storeId)).some(({ madeAt }) => madeAt === null),
      hasWallet: (await listCurrent(ctx.db, storeId)).length > 0,
      now,
    }
  })
}

async function readLatest(ctx: Context, storeId: StoreId): Promise<Latest[]> {
  const { data } = await listPayments(ctx, storeId, { limit: latestMax })
  const ids = data.flatMap(({ checkoutId }) => checkoutId ?? [])
  const summaries = await listSummaries(ctx.db, storeId, ids, latestMax)
  const byId = new Map<string, Summary>(summaries.map((summary) => [summary.id, summary]))
  const paymentIds = data.map(({ id }) => id)
  const returned = await sumReturned(ctx.db, storeId, paymentIds)
  const paid = data.map((payment): Latest => {
    const checkout = byId.get(payment.checkoutId ?? '') ?? null
    const state = stateOf(payment, checkout, returned.get(payment.id) ?? 0n)
    return { state, checkout, payment, paymentId: payment.id, at: new Date(payment.includedAt) }
  })
  const settling = summaries
    .filter(({ id, status }) => status === 'PROCESSING' && !ids.includes(id))
    .map(
      (checkout): Latest => ({
        state: 'settling',
        checkout,
        payment: null,
        paymentId: null,
        at: checkout.createdAt,
      }),
    )
  return [...settling, ...paid].slice(0, latestMax)
}

function stateOf(payment: Payment, checkout: Summary | null, back: bigint): Latest['state'] {
  const { disposition, finality, amount } = payment
  if (finality === 'reversed') return 'reversed'
  if (back > 0n && back >= BigInt(amount)) return 'refunded'
  if (disposition !== 'exact') return disposition
  if (checkout?.status !== 'COMPLETED') return 'settling'
  return back > 0n ? 'partlyRefunded' : 'paid'
}
