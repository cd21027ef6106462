import assert from 'node:assert/strict'
import type { Actor, EventType, Finality, RefundStatus, RefundWay, Refund as Wire } from '@farthing/sdk'
import { toShown } from '../chains/families.ts'
import type { CheckoutId, RefundId, StoreId } from '../ids.ts'
import { refundNonce } from '../payments/nonces.ts'
import { type AddressRequest, addressRequestToWire } from './address-requests/address-request.ts'

/**
 * Money that goes back. The store's own wallet was paid, so only the store can pay back. Farthing prepares the transfer
 * that the wallet signs, sends it without gas, watches it and records the outcome.
 *
 * A refund starts as REQUESTED. If its way is `signed`, the wallet signs (SIGNED) and a settler sends it (SENT). If its way
 * is `self-sent`, the store names its own transaction (SENT). It is COMPLETED while its transfer is part of the chain, and
 * goes back to SENT if a reorganisation removes the transfer. It is DECLARED if the store says that it paid outside the
 * chains we can read.
 *
 * Once its transfer was handed out to be signed, a signature may exist that we have not seen. So the refund counts against
 * its payment until its nonce is dead: proven unused past its window, or spent on something else. Then a signed refund has
 * FAILED, a refund with a pending cancellation is CANCELED, and any other can be prepared again.
 */
export type Refund = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly checkoutId: CheckoutId | null
  readonly orderId: string | null
  readonly network: string
  readonly asset: string
  /** The payment's identity on the chain: see `identityOf`. */
  readonly identity: string
  /** The store's wallet that received the payment. */
  readonly wallet: string
  /** In the asset's smallest unit. */
  readonly amount: bigint
  readonly recipient: string | null
  readonly way: RefundWay
  readonly reason: string | null
  readonly status: RefundStatus
  readonly version: number
  readonly actor: Actor
  readonly createdAt: Date
  readonly slot: number | null
  readonly nonce: string | null
  readonly signedAt: Date | null
  readonly cancelAskedAt: Date | null
  readonly transaction: string | null
  /** The transfer's place in the transaction. Only for refunds that the store sent by itself, once proven. */
  readonly position: number | null
  readonly finality: Finality | null
  readonly declared: string | null
  readonly failure: string | null
  readonly completedAt: Date | null
  readonly endedAt: Date | null
  /** Whether lanes, followers or proofs of death may still change its status. */
  readonly isWatched: boolean
  /** The link with which the buyer names an address, if one was made. */
  readonly addressRequest: AddressRequest | null
}

/** Two or three sentences: the buyer reads them. */
export const reasonBytesMax = 500
/**
 * A payment is shown with all of its refunds, canceled ones too. The limit keeps that quick even if a program creates and
 * cancels refunds without end.
 */
export const refundsPerPaymentMax = 100
/** The most signed refunds that one payment can have. */
const slotsPerPayment = 5

export type RefundEvent = Extract<EventType, `refund.${string}`>

/** Whether its transfer can no longer leave the chain. */
export function isFinal({ status, finality }: Pick<Refund, 'status' | 'finality'>): boolean {
  return status === 'COMPLETED' && finality === 'finalized'
}

/** Every allowed change of status, with the event it creates, or null for none. */
export const arrows: {
  readonly [From in RefundStatus]: { readonly [To in RefundStatus]?: RefundEvent | null }
} = {
  REQUESTED: {
    SIGNED: null,
    SENT: null,
    COMPLETED: 'refund.completed',
    DECLARED: 'refund.declared',
    FAILED: 'refund.failed',
    CANCELED: 'refund.canceled',
  },
  SIGNED: {
    REQUESTED: null,
    SENT: null,
    COMPLETED: 'refund.completed',
    FAILED: 'refund.failed',
    CANCELED: 'refund.canceled',
  },
  // A refund with a pending cancellation can still land. If a reorganisation then removes it for good, it is CANCELED.
  SENT: {
    REQUESTED: null,
    SIGNED: null,
    COMPLETED: 'refund.completed',
    FAILED: 'refund.failed',
    CANCELED: 'refund.canceled',
  },
  COMPLETED: { SENT: 'refund.reorged', FAILED: 'refund.failed', CANCELED: 'refund.canceled' },
  DECLARED: {},
  FAILED: { COMPLETED: 'refund.completed' },
  CANCELED: { COMPLETED: 'refund.completed' },
}

/** The event that a change of status creates. A change that is not in `arrows` is a bug. */
export function eventOf(from: RefundStatus, to: RefundStatus): RefundEvent | null {
  const event = arrows[from][to]
  assert(event !== undefined, `a refund cannot go from ${from} to ${to}`)
  return event
}

/** The facts that decide a refund's status. */
export type RefundFacts = {
  readonly status: RefundStatus
  readonly way: RefundWay
  readonly isSigned: boolean
  readonly isCancelAsked: boolean
  readonly isDeclared: boolean
  /** Whether the store has named a transaction that may still prove the refund. */
  readonly isNamed: boolean
  /** The state of the authorization that was handed out to be signed; null if none was. */
  readonly authorization: 'prepared' | 'claimed' | 'sent' | 'rejected' | 'dead' | null
  /** Whether the refund's own transfer is part of the chain, as enough nodes report. */
  readonly isTransferred: boolean
}

/** Computes a refund's status from the facts: a pure function that can run again after every fact. */
export function evaluateRefund(facts: RefundFacts): RefundStatus {
  const { status, authorization } = facts
  if (facts.isTransferred) return 'COMPLETED'
  if (facts.isDeclared) return 'DECLARED'
  if (status === 'FAILED' || status === 'CANCELED') return status
  const isOut = authorization !== null && authorization !== 'dead'
  if (!isOut && facts.isCancelAsked) return 'CANCELED'
  if (authorization === 'dead' && facts.isSigned) return 'FAILED'
  if (status === 'COMPLETED') return 'SENT'
  if (authorization === 'sent' || facts.isNamed) return 'SENT'
  // The token may refuse a refund before it is sent. The signature can still be used until its window ends.
  if (authorization === 'claimed' || (facts.isSigned && isOut)) return 'SIGNED'
  return 'REQUESTED'
}

/** Whether a refund counts against its payment. */
export function isCounted(status: RefundStatus): boolean {
  return status !== 'FAILED' && status !== 'CANCELED'
}

export function toWire(refund: Refund): Wire {
  const { network } = refund
  return {
    id: refund.id,
    paymentId: refund.paymentId,
    checkoutId: refund.checkoutId,
    orderId: refund.orderId,
    status: refund.status,
    way: refund.way,
    network,
    asset: toShown(network, refund.asset),
    amount: refund.amount.toString(),
    from: toShown(network, refund.wallet),
    recipient: refund.recipient === null ? null : toShown(network, refund.recipient),
    reason: refund.reason,
    transaction: refund.transaction,
    finality: refund.finality,
    failure: refund.failure,
    isCanceling: refund.cancelAskedAt !== null && isCounted(refund.status) && refund.status !== 'COMPLETED',
    ...(refund.declared !== null && { declared: refund.declared }),
    createdAt: refund.createdAt.toISOString(),
    completedAt: refund.completedAt?.toISOString() ?? null,
    ...(refund.addressRequest && { addressRequest: addressRequestToWire(network, refund.addressRequest) }),
  }
}

/** The facts that identify a payment on the chain. Addresses and hashes are in stored form. */
type OnChain = {
  readonly payer: string
  /** Null for a plain transfer. */
  readonly nonce: string | null
  readonly transaction: string
  readonly payTo: string
  readonly amount: bigint
  readonly position: number
}

/**
 * The identity of a payment: payer and nonce of an authorization, which can pay once, or the transaction of a plain
 * transfer and the transfer's place in it. It does not depend on our ids, so it survives inclusion in another block and
 * a restored database.
 */
export function identityOf({ payer, nonce, transaction, payTo, amount, position }: OnChain): string {
  return nonce === null ? `${transaction} ${payer} ${payTo} ${amount} ${position}` : `${payer} ${nonce}`
}

/** The nonces of all of a payment's slots, in order. */
export function noncesOf(network: string, asset: string, identity: string): string[] {
  return Array.from({ length: slotsPerPayment }, (_, slot) => refundNonce(network, asset, identity, slot))
}
