import assert from 'node:assert/strict'
import type {
  CheckoutPayment,
  CheckoutStatus,
  Disposition,
  EventType,
  Finality,
  StoreCheckout,
  Checkout as Wire,
} from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { CheckoutId, LinkId, StoreId } from '../ids.ts'
import { type Quote, rateText } from '../rates/quote.ts'

/**
 * What a payer owes a store. Everything but `status` and `version` is fixed at creation.
 *
 * A payment takes a checkout from OPEN through PROCESSING to COMPLETED. If the payment is proven not to have happened,
 * the checkout goes back to OPEN, or to EXPIRED once its time has passed. It leaves COMPLETED only if the chain drops
 * the payment.
 */
export type Checkout = {
  readonly id: CheckoutId
  readonly storeId: StoreId
  /** The link that it was made for; null if the store made it itself. */
  readonly linkId: LinkId | null
  readonly orderId: string
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly successRedirectUrl: string | null
  readonly cancelUrl: string | null
  /** What the buyer pays for, in the store's words. */
  readonly description: string | null
  /** The store's own values, which the buyer never sees. */
  readonly metadata: Readonly<Record<string, string>> | null
  /** How the price was converted; null if it needed no rate. */
  readonly rate: Quote | null
  /** Stored as JSON when the checkout is created, so a later change of wallet or rate changes no offer. */
  readonly options: readonly Option[]
  readonly finality: Finality
  readonly status: CheckoutStatus
  readonly version: number
  readonly createdAt: Date
  readonly expiresAt: Date
}

export const orderIdBytesMax = 255
/** Two or three sentences, because the payment page shows all of it. */
export const descriptionBytesMax = 500

type Named = {
  readonly orderId: string
  readonly linkId?: string | null
  readonly description?: string | null
}

/** Whether the order is a name of the store's. A link without an invoice number only numbers its checkouts. */
export function hasOwnOrder({ orderId, linkId = null }: Named): boolean {
  return linkId === null || !orderId.startsWith(linkId)
}

/** What people call a checkout: its order, or else what its link says it is for. */
export function nameOf(checkout: Named): string {
  return hasOwnOrder(checkout) ? checkout.orderId : (checkout.description ?? checkout.orderId)
}

/** One way to pay, fixed at creation: later changes to the wallet or the rate do not affect it. */
export type Option = {
  /** CAIP-2. */
  readonly network: string
  readonly asset: string
  /** In the asset's smallest unit. A string, because JSON numbers cannot hold such integers exactly. */
  readonly amount: string
  readonly payTo: string
}

/** Every allowed change of status, with the event it creates. */
export const arrows: { readonly [From in CheckoutStatus]: { readonly [To in CheckoutStatus]?: EventType } } =
  {
    OPEN: {
      PROCESSING: 'checkout.processing',
      COMPLETED: 'checkout.completed',
      EXPIRED: 'checkout.expired',
      CANCELED: 'checkout.canceled',
    },
    PROCESSING: {
      OPEN: 'checkout.reopened',
      COMPLETED: 'checkout.completed',
      EXPIRED: 'checkout.expired',
      CANCELED: 'checkout.canceled',
    },
    COMPLETED: { PROCESSING: 'checkout.processing' },
    EXPIRED: { COMPLETED: 'checkout.completed' },
    CANCELED: { COMPLETED: 'checkout.completed' },
  }

/** A change of status and its event. A change that is not in `arrows` is a bug. */
export function arrow<From extends CheckoutStatus, To extends CheckoutStatus>(from: From, to: To) {
  const event = arrows[from][to]
  assert(event, `a checkout cannot go from ${from} to ${to}`)
  return { from, to, event }
}

/** Money on the chain for a checkout. */
export type Credit = {
  readonly key: string
  readonly amount: bigint
  /** The amount due in that asset, at that address, by that way of paying; null if the checkout never asked for it. */
  readonly due: bigint | null
  /** Whether the store accepted it for the checkout, whatever its amount or time. */
  readonly isAccepted: boolean
  /** Whether it comes from an authorization that was claimed while the checkout was payable. */
  readonly isClaimed: boolean
  /** Time of the first block that included it. A reorganisation that includes it again does not change this time. */
  readonly firstBlockTime: Date
  readonly blockNumber: number
  readonly logIndex: number
  readonly disposition: Disposition
  readonly finality: Finality
  /** Whether a refund of it counts. Refunded money can't pay. */
  readonly isRefunded: boolean
  /** Whether it may complete the checkout: enough nodes reported it, or its amount is small. */
  readonly counts: boolean
}

export type Facts = {
  /** Live credits only: those whose block is part of the chain. */
  readonly credits: readonly Credit[]
  /**
   * Whether an authorization that we committed to send may still move money, or a payment dropped by the chain may
   * return.
   */
  readonly hasUnresolved: boolean
  /**
   * The time up to which we have read the chains on which an amount is reserved for plain transfers; null if none is
   * reserved. Transfers from before this time are known.
   */
  readonly readUntil: Date | null
  /** Whether the store canceled it before accepting a payment for it. */
  readonly wasCanceled?: boolean
}

const finalityRank: Readonly<Record<Finality, number>> = { included: 0, safe: 1, finalized: 2 }

/**
 * Computes a checkout's status and dispositions from the facts: a pure function that can run again after every fact. An
 * exact credit stays exact while it is live, even if it is refunded. If there is none, the earliest credit becomes
 * exact that is full and on time, or accepted by the store, and has no refund that counts. All other credits are late,
 * underpaid or overpaid.
 */
export function evaluate(
  checkout: Pick<Checkout, 'status' | 'expiresAt' | 'finality'>,
  { credits, hasUnresolved, readUntil, wasCanceled = false }: Facts,
  now: Date,
): { readonly status: CheckoutStatus; readonly dispositions: ReadonlyMap<string, Disposition> } {
  // A late credit stays late, even if another payment completes a canceled checkout afterwards.
  const isOnTime = (credit: Credit) =>
    checkout.status !== 'CANCELED' &&
    !wasCanceled &&
    credit.disposition !== 'late' &&
    (credit.isClaimed || credit.firstBlockTime <= checkout.expiresAt)
  const isFull = (credit: Credit) => credit.due !== null && credit.amount === credit.due
  const isTaken = (credit: Credit) =>
    !credit.isRefunded && (credit.isAccepted || (isFull(credit) && isOnTime(credit)))
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
  const status = statusFrom(checkout, exact, hasUnresolved, isOver)
  return { status: wasCanceled && isUnpaid(status) ? 'CANCELED' : status, dispositions }
}

/** Whether no payment has paid it and none is in flight. */
export function isUnpaid(status: CheckoutStatus): boolean {
  return status === 'OPEN' || status === 'EXPIRED'
}

/** By time, because block numbers of two chains cannot be compared; within a block, by position. */
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
  if (exact?.counts && finalityRank[exact.finality] >= finalityRank[checkout.finality]) return 'COMPLETED'
  // These two change only to COMPLETED: a payment that is not final enough yet does not reopen them.
  if (checkout.status === 'EXPIRED' || checkout.status === 'CANCELED') return checkout.status
  if (exact || hasUnresolved) return 'PROCESSING'
  if (checkout.status === 'COMPLETED') return 'PROCESSING'
  return isOver ? 'EXPIRED' : 'OPEN'
}

/** Whether a payment is as final as the checkout requires. */
export function isFinal({ finality }: Pick<Checkout, 'finality'>, payment: CheckoutPayment): boolean {
  return payment.finality !== 'reversed' && finalityRank[payment.finality] >= finalityRank[finality]
}

/** The public view, which anyone who knows the id may see. */
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
    ...(checkout.cancelUrl !== null && { cancelUrl: checkout.cancelUrl }),
  }
}

/** The store's view: the public view, the fields that only the store may see, and the payment. */
export function toStoreWire(
  ctx: Context,
  checkout: Checkout,
  payment: CheckoutPayment | null,
): StoreCheckout {
  return { ...toWire(ctx, checkout), ...storeFacts(checkout), payment }
}

/** The fields that only the store sees. Most checkouts have none. */
export function storeFacts({
  linkId,
  description,
  metadata,
  rate,
}: Pick<Checkout, 'linkId' | 'description' | 'metadata' | 'rate'>): Pick<
  StoreCheckout,
  'linkId' | 'description' | 'metadata' | 'rate'
> {
  return {
    ...(linkId !== null && { linkId }),
    ...(description !== null && { description }),
    ...(metadata !== null && { metadata }),
    ...(rate !== null && {
      rate: { rate: rateText(rate), source: rate.source, time: new Date(rate.asOf).toISOString() },
    }),
  }
}

/** Longer names and order ids are cut, so that the price and the time after them stay visible. */
const charactersMax = 60

/**
 * A checkout in one line of plain text, for a person or program that is about to pay it. The store chose its name and
 * the order's id, and a language model may read them or a terminal print them. So control characters, line breaks, and
 * characters that are invisible or reorder text are removed. The API returns the order's id exactly as it was sent.
 */
export function describeCheckout(checkout: Checkout, storeName: string): string {
  const { id, orderId, priceAmount, priceCurrency, expiresAt } = checkout
  const until = expiresAt.toISOString().replace(/\.\d{3}Z$/, 'Z')
  return `Checkout ${id} of ${toPlain(storeName)}: ${priceAmount} ${priceCurrency} for order ${toPlain(orderId)}, payable until ${until}`
}

/** One line of at most `charactersMax` visible characters. */
export function toPlain(text: string): string {
  const shown = text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const characters = [...shown]
  return characters.length > charactersMax ? `${characters.slice(0, charactersMax - 1).join('')}…` : shown
}
