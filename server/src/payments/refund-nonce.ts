import { createHash } from 'node:crypto'

/** "fthr" in ASCII: the nonces of refunds begin with it. */
const prefix = '0x66746872'
const hashBytes = 28

/** Matches refunds' nonces in SQL. */
export const refundPattern = `${prefix}%`

/**
 * The nonce of one of a payment's refunds. A token takes each nonce of a wallet once, so whatever is signed for a slot
 * moves money at most once, also after the database was restored and the refund is asked for again.
 */
export function refundNonce(network: string, asset: string, identity: string, slot: number): `0x${string}` {
  const hash = createHash('sha256').update([network, asset, identity, slot].join('\n'), 'utf8').digest('hex')
  return `${prefix}${hash.slice(0, 2 * hashBytes)}`
}

/** One random nonce in four billion looks like a refund's. */
export function isRefundNonce(nonce: string): boolean {
  return nonce.startsWith(prefix)
}
