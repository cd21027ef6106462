import { refundNonce } from '../payments/refund-nonce.ts'
import { slotsPerPayment } from './refund.ts'

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
