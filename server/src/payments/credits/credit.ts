import type { CheckoutPayment, Disposition, Finality, Payment, PaymentHint, PaymentNote } from '@farthing/sdk'
import { toShown } from '../../chains/families.ts'
import type { CheckoutId } from '../../ids.ts'

/** Money seen on the chain, as the database stores it and as it is reported to stores. */
export type CreditRow = {
  /** Network, block hash and log index: its exact place on the chain. */
  readonly key: string
  readonly paymentId: string
  readonly checkoutId: CheckoutId | null
  readonly network: string
  readonly asset: string
  readonly payer: string
  readonly payTo: string
  readonly amount: bigint
  readonly transaction: string
  readonly blockNumber: number
  readonly logIndex: number
  readonly disposition: Disposition
  readonly announced: string | null
  /** Paid by an authorization that this checkout claimed and that was not rejected. */
  readonly isClaimed: boolean
  /** Has the amount that is reserved for plain transfers to this checkout. */
  readonly isReserved: boolean
  readonly acceptedAt: Date | null
  readonly dismissedAt: Date | null
  readonly hints: readonly PaymentHint[]
  /** The reading store's note; null for other readers. */
  readonly note: PaymentNote | null
  readonly firstBlockTime: Date
  readonly includedAt: Date
  readonly safeAt: Date | null
  readonly finalizedAt: Date | null
  readonly isOrphaned: boolean
  readonly isReversed: boolean
  /**
   * Whether it may complete its checkout: it is witnessed, or within the limit of what one provider alone may complete.
   */
  readonly counts: boolean
  /** Orphaned here, but included in another block. */
  readonly isIncludedAgain: boolean
}

export type RawCredit = {
  network: string
  block_hash: string
  log_index: number
  payment_id: string
  checkout_id: CheckoutId
  asset: string
  payer: string
  pay_to: string
  amount: string
  transaction_hash: string
  block_number: string
  disposition: Disposition
  announced: string | null
  first_seen_block_time: Date
  included_at: Date
  safe_at: Date | null
  finalized_at: Date | null
  orphaned_at: Date | null
  reversed_at: Date | null
  counts: boolean
  is_included_again: boolean
  is_claimed: boolean
  is_reserved: boolean
  accepted_at: Date | null
  dismissed_at: Date | null
  hints?: PaymentHint[] | null
  note?: PaymentNote | null
}

export function toCreditRow(row: RawCredit): CreditRow {
  return {
    key: `${row.network} ${row.block_hash} ${row.log_index}`,
    paymentId: row.payment_id,
    checkoutId: row.checkout_id,
    network: row.network,
    asset: row.asset,
    payer: row.payer,
    payTo: row.pay_to,
    amount: BigInt(row.amount),
    transaction: row.transaction_hash,
    blockNumber: Number.parseInt(row.block_number, 10),
    logIndex: row.log_index,
    disposition: row.disposition,
    announced: row.announced,
    firstBlockTime: row.first_seen_block_time,
    includedAt: row.included_at,
    safeAt: row.safe_at,
    finalizedAt: row.finalized_at,
    isOrphaned: row.orphaned_at !== null,
    isReversed: row.reversed_at !== null,
    counts: row.counts,
    isIncludedAgain: row.is_included_again,
    isClaimed: row.is_claimed,
    isReserved: row.is_reserved,
    acceptedAt: row.accepted_at,
    dismissedAt: row.dismissed_at,
    hints: row.hints ?? [],
    note: row.note ? { ...row.note, notedAt: new Date(row.note.notedAt).toISOString() } : null,
  }
}

/**
 * SQL: a row of `credits` as JSON, for `creditFromJson`. Its amount is text, because JSON numbers are exact only up to
 * 2^53.
 */
export function creditJson(alias: string): string {
  return `to_jsonb(${alias}) || jsonb_build_object('amount', ${alias}.amount::text)`
}

/** In JSON, times are strings. */
export function creditFromJson(raw: RawCredit): CreditRow {
  const time = (value: Date | null) => (value === null ? null : new Date(value))
  return toCreditRow({
    ...raw,
    first_seen_block_time: new Date(raw.first_seen_block_time),
    included_at: new Date(raw.included_at),
    safe_at: time(raw.safe_at),
    finalized_at: time(raw.finalized_at),
    accepted_at: time(raw.accepted_at),
    dismissed_at: time(raw.dismissed_at),
  })
}

export function finalityOf(row: CreditRow): Finality {
  return row.finalizedAt ? 'finalized' : row.safeAt ? 'safe' : 'included'
}

export function toCheckoutPayment(row: CreditRow): CheckoutPayment {
  return {
    transaction: row.transaction,
    payer: toShown(row.network, row.payer),
    network: row.network,
    asset: toShown(row.network, row.asset),
    amount: row.amount.toString(),
    finality: row.isReversed ? 'reversed' : finalityOf(row),
  }
}

export function toPayment(row: CreditRow & { disposition: Disposition }): Payment {
  return {
    ...toCheckoutPayment(row),
    id: row.paymentId,
    checkoutId: row.checkoutId,
    payTo: toShown(row.network, row.payTo),
    disposition: row.disposition,
    includedAt: row.includedAt.toISOString(),
    safeAt: row.safeAt?.toISOString() ?? null,
    finalizedAt: row.finalizedAt?.toISOString() ?? null,
    acceptedAt: row.acceptedAt?.toISOString() ?? null,
    dismissedAt: row.dismissedAt?.toISOString() ?? null,
    hints: [...row.hints],
    ...(row.note && { note: row.note }),
  }
}
