import assert from 'node:assert/strict'
import type { Actor, EventType, Finality, RefundStatus, RefundWay, Refund as Wire } from '@farthing/sdk'
import { toShown, toStored } from '../chains/families.ts'
import type { CheckoutId, RefundId, StoreId } from '../ids.ts'
import { networks } from '../networks.ts'
import { type Claim, claimToWire } from './claims/claim.ts'

/**
 * Money that goes back. The store's own wallet was paid, so only the store can pay back: Farthing prepares what the
 * wallet signs, sends it without gas, watches it and records what became of it.
 *
 * A refund is REQUESTED. If its way is `signed`, the wallet signs (SIGNED) and a settler sends it (SENT); if it is `sent`,
 * the store names its own transaction (SENT). It is COMPLETED while its own transfer is part of the chain, and goes back
 * to SENT if a reorganisation removes that. DECLARED is the store's word for a payment that cannot be proven.
 *
 * From the moment something was handed out to be signed, a signature may exist, whether or not we have seen it. So a
 * refund counts against its payment until its nonce is proven unused past its window, or spent on something else: then
 * one that was signed has FAILED, one that was to be canceled is CANCELED, and any other can be prepared again.
 */
export type Refund = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly checkoutId: CheckoutId | null
  readonly orderId: string | null
  readonly network: string
  readonly asset: string
  /** What the chain knows the payment by. */
  readonly identity: string
  /** The store's wallet that was paid. */
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
  /** The place in it of the transfer that proves a refund which the store sent by itself. */
  readonly position: number | null
  readonly finality: Finality | null
  readonly declared: string | null
  readonly failure: string | null
  readonly completedAt: Date | null
  readonly endedAt: Date | null
  /** Whether lanes, followers or proofs of death may still change its status. */
  readonly isWatched: boolean
  /** The link with which the buyer names an address, if one was made. */
  readonly claim: Claim | null
}

/** Two or three sentences: the buyer reads them. */
export const reasonBytesMax = 500
/**
 * A payment is shown with all of its refunds, also those that were canceled: nobody who returns money needs as many, and
 * whoever makes and cancels them without end does not make it slow to read.
 */
export const refundsPerPaymentMax = 100
/** As many signed refunds as one payment can have. */
export const slotsPerPayment = 5

/** Every allowed change of status, with the event it creates, or null for none. */
export const arrows: {
  readonly [From in RefundStatus]: { readonly [To in RefundStatus]?: EventType | null }
} = {
  REQUESTED: {
    SIGNED: null,
    SENT: null,
    COMPLETED: 'refund.completed',
    DECLARED: null,
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
  // One that was to be canceled, landed all the same, and was taken back by the chain for good, is canceled then.
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
export function eventOf(from: RefundStatus, to: RefundStatus): EventType | null {
  const event = arrows[from][to]
  assert(event !== undefined, `a refund cannot go from ${from} to ${to}`)
  return event
}

/** What the status is computed from. */
export type RefundFacts = {
  readonly status: RefundStatus
  readonly way: RefundWay
  readonly isSigned: boolean
  readonly isCancelAsked: boolean
  readonly isDeclared: boolean
  /** Whether the store has named a transaction that may still prove it. */
  readonly isNamed: boolean
  /** What was handed out to be signed; null if nothing was. */
  readonly authorization: 'prepared' | 'claimed' | 'sent' | 'rejected' | 'dead' | null
  /** Whether its own transfer is part of the chain, told by as many nodes as a payment's must be. */
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
  // One that the token refused before it was sent: its signature may still be used until its window ends.
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
    ...(refund.claim && { claim: claimToWire(network, refund.claim) }),
  }
}

/** Of a token that is not known any more, as many as most have. */
export function decimalsOf(network: string, asset: string): number {
  const assets = networks.find(({ caip2 }) => caip2 === network)?.assets ?? []
  return assets.find(({ address }) => toStored(network, address) === asset)?.decimals ?? 6
}
