import assert from 'node:assert/strict'
import type {
  CheckoutPayment,
  CheckoutStatus,
  Disposition,
  EventType,
  Finality,
  Checkout as Wire,
} from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { CheckoutId, StoreId } from '../ids.ts'

/**
 * What is owed. Everything but `status` and `version` is fixed at creation.
 *
 * OPEN → PROCESSING → COMPLETED is the way of a payment. A payment that is proven not to have happened leads back to
 * OPEN, or to EXPIRED once the time has passed. COMPLETED is left only if the chain takes the payment back.
 */
export type Checkout = {
  readonly id: CheckoutId
  readonly storeId: StoreId
  readonly orderId: string
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly successRedirectUrl: string | null
  readonly options: readonly Option[]
  readonly finality: Finality
  readonly status: CheckoutStatus
  readonly version: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

export const orderIdBytesMax = 255

/** One way to pay, as it was offered: a wallet or a rate that changes later does not move it. */
export type Option = {
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** Units of the asset. A string, because JSON has no such integers. */
  readonly amount: string
  readonly payTo: string
}

/** Every change of status there is, and the event it leaves. */
export const arrows: { readonly [From in CheckoutStatus]: { readonly [To in CheckoutStatus]?: EventType } } =
  {
    OPEN: {
      PROCESSING: 'checkout.processing',
      COMPLETED: 'checkout.completed',
      EXPIRED: 'checkout.expired',
      CANCELED: 'checkout.canceled',
    },
    PROCESSING: { OPEN: 'checkout.reopened', COMPLETED: 'checkout.completed', EXPIRED: 'checkout.expired' },
    COMPLETED: { PROCESSING: 'checkout.processing' },
    EXPIRED: { COMPLETED: 'checkout.completed' },
    CANCELED: { COMPLETED: 'checkout.completed' },
  }

/** A change of status and its event. Whatever is not an arrow is our bug. */
export function arrow<From extends CheckoutStatus, To extends CheckoutStatus>(from: From, to: To) {
  const event = arrows[from][to]
  assert(event, `no arrow from ${from} to ${to}`)
  return { from, to, event }
}

/** Money that stands on the chain for a checkout. */
export type Credit = {
  readonly key: string
  readonly amount: bigint
  /** What was asked for in that asset, at that address, by that way of paying; null if nothing was. */
  readonly due: bigint | null
  /** Whether the store has taken it for the checkout, whatever it is. */
  readonly isAccepted: boolean
  /** Whether it is an authorization that was claimed while the checkout could be paid. */
  readonly isClaimed: boolean
  /** Time of the first block that included it, kept when it is included again. */
  readonly firstBlockTime: Date
  readonly blockNumber: number
  readonly logIndex: number
  readonly disposition: Disposition
  readonly finality: Finality
}

export type Facts = {
  /** Live credits only: those whose block is part of the chain. */
  readonly credits: readonly Credit[]
  /** Whether an authorization that we committed may still move money, or what the chain took back may still return. */
  readonly hasUnresolved: boolean
  /**
   * Where an amount is reserved for plain transfers: the time up to which their chains were read. What was sent before
   * the checkout's end is seen only after it.
   */
  readonly readUntil: Date | null
}

const finalityRank: Readonly<Record<Finality, number>> = { included: 0, safe: 1, finalized: 2 }

/**
 * What a checkout's facts make of it: a pure function, asked again after every fact, as often as one likes. The exact
 * credit stays exact while it lives; without one, the earliest full payment that was on time, or that the store accepted,
 * becomes it; everything else that arrives is late, underpaid or overpaid.
 */
export function evaluate(
  checkout: Pick<Checkout, 'status' | 'expiresAt' | 'finality'>,
  { credits, hasUnresolved, readUntil }: Facts,
  now: Date,
): { readonly status: CheckoutStatus; readonly dispositions: ReadonlyMap<string, Disposition> } {
  // What came too late stays late, also when a canceled checkout is completed by another payment afterwards.
  const isOnTime = (credit: Credit) =>
    checkout.status !== 'CANCELED' &&
    credit.disposition !== 'late' &&
    (credit.isClaimed || credit.firstBlockTime <= checkout.expiresAt)
  const isFull = (credit: Credit) => credit.due !== null && credit.amount === credit.due
  const isTaken = (credit: Credit) => credit.isAccepted || (isFull(credit) && isOnTime(credit))
  const exact =
    credits.find(({ disposition }) => disposition === 'exact') ??
    credits.filter(isTaken).toSorted(compareAge)[0]
  const dispositions = new Map(
    credits.map((credit): [string, Disposition] => {
      if (credit === exact) return [credit.key, 'exact']
      if (!isOnTime(credit)) return [credit.key, 'late']
      return [credit.key, credit.due !== null && credit.amount < credit.due ? 'underpaid' : 'overpaid']
    }),
  )
  const isOver = now >= checkout.expiresAt && (readUntil === null || readUntil >= checkout.expiresAt)
  return { status: statusFrom(checkout, exact, hasUnresolved, isOver), dispositions }
}

/** By time, because blocks of two chains are not counted alike; within a block by place. */
function compareAge(a: Credit, b: Credit): number {
  const apartMs = a.firstBlockTime.getTime() - b.firstBlockTime.getTime()
  return apartMs || a.blockNumber - b.blockNumber || a.logIndex - b.logIndex
}

function statusFrom(
  checkout: Pick<Checkout, 'status' | 'finality'>,
  exact: Credit | undefined,
  hasUnresolved: boolean,
  isOver: boolean,
): CheckoutStatus {
  if (exact && finalityRank[exact.finality] >= finalityRank[checkout.finality]) return 'COMPLETED'
  // Left only for COMPLETED: what is still on its way to being final does not bring them back to life.
  if (checkout.status === 'EXPIRED' || checkout.status === 'CANCELED') return checkout.status
  if (exact || hasUnresolved) return 'PROCESSING'
  if (checkout.status === 'COMPLETED') return 'PROCESSING'
  return isOver ? 'EXPIRED' : 'OPEN'
}

/** What anyone who knows its id may see: the interface's Checkout, field for field. */
export function toWire(ctx: Context, checkout: Checkout): Wire {
  return {
    id: checkout.id,
    orderId: checkout.orderId,
    priceAmount: checkout.priceAmount,
    priceCurrency: checkout.priceCurrency,
    status: checkout.status,
    expiresAt: checkout.expiresAt.toISOString(),
    checkoutUrl: `${ctx.config.checkoutPageUrl}/${checkout.id}`,
    createdAt: checkout.createdAt.toISOString(),
    successRedirectUrl: checkout.successRedirectUrl,
  }
}

/** What its store sees: the same, and the payment. */
export function toStoreWire(ctx: Context, checkout: Checkout, payment: CheckoutPayment | null) {
  return { ...toWire(ctx, checkout), payment }
}
