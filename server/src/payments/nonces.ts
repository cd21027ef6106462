import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Hex } from '../chains/hex.ts'

/**
 * An EIP-3009 signature does not cover the purpose of a payment, so a stolen authorization would pay for any checkout
 * of the same price. A bound nonce names its checkout inside the signed data: "fthg" in ASCII, 12 random bytes (so that
 * a checkout can be signed for again), and the first 16 bytes of SHA-256(checkout id, those 12 bytes).
 */
const boundPrefix = '0x66746867'
const randomBytes = 12
const proofBytes = 16

/** Matches bound nonces in SQL. */
export const boundPattern = `${boundPrefix}%`

/** A nonce that only this checkout may claim. `random12` must be fresh, because a used nonce can never pay again. */
export function makeBoundNonce(checkoutId: string, random12: Uint8Array): Hex {
  assert.equal(random12.length, randomBytes)
  return `${boundPrefix}${Buffer.from(random12).toString('hex')}${prove(checkoutId, random12)}`
}

/** Whether the nonce is bound to some checkout. One random nonce in four billion looks bound by chance. */
export function isBound(nonce: Hex): boolean {
  return nonce.startsWith(boundPrefix)
}

/** Whether the nonce was made for this checkout; false if it is not bound. */
export function isBoundTo(nonce: Hex, checkoutId: string): boolean {
  if (!isBound(nonce) || !/^0x[0-9a-f]{64}$/i.test(nonce)) return false
  const random12 = Buffer.from(nonce.slice(boundPrefix.length, boundPrefix.length + 2 * randomBytes), 'hex')
  return nonce.slice(boundPrefix.length + 2 * randomBytes).toLowerCase() === prove(checkoutId, random12)
}

function prove(checkoutId: string, random12: Uint8Array): string {
  const hash = createHash('sha256').update(checkoutId, 'utf8').update(random12).digest()
  return hash.toString('hex', 0, proofBytes)
}

/** "fthr" in ASCII: the nonces of refunds begin with it. */
const refundPrefix = '0x66746872'
const hashBytes = 28

/** Matches refunds' nonces in SQL. */
export const refundPattern = `${refundPrefix}%`

/**
 * The nonce of one of a payment's refunds. A token accepts each nonce of a wallet once. So signatures for a slot move
 * money at most once, even if the database was restored and the refund is requested again.
 */
export function refundNonce(network: string, asset: string, identity: string, slot: number): `0x${string}` {
  const hash = createHash('sha256').update([network, asset, identity, slot].join('\n'), 'utf8').digest('hex')
  return `${refundPrefix}${hash.slice(0, 2 * hashBytes)}`
}

/** One random nonce in four billion looks like a refund's. */
export function isRefundNonce(nonce: string): boolean {
  return nonce.startsWith(refundPrefix)
}
