import type { SigningLimits } from '../../config/settings.ts'
import type { Spending } from './spending.ts'

/**
 * What all signers have in common, whatever chain the key is for. A signer is asked for one transaction at a time. It
 * answers with a signature, or throws one of these two errors. Only a signed and committed transaction is sent, so
 * after either error the lane just waits.
 */

/** The policy does not allow it. The message says why, for the logs of both processes. */
export class SignRefusedError extends Error {
  override readonly name = 'SignRefusedError'
}

/** The process that signs cannot be reached, or did not answer in time. Whether it has signed makes no difference. */
export class SignerAwayError extends Error {
  override readonly name = 'SignerAwayError'
}

/** What a key may spend, and what it has spent today. */
export type Guard = {
  readonly limits: SigningLimits & { readonly solanaTokenAccountsPerDay: number }
  readonly spending: Spending
}

/** Allows any amount of every form that a settler may sign: for test networks and for `dev`. */
export const unlimited: Guard = {
  limits: {
    gasPerTransaction: 16_777_216n,
    etherPerTransaction: null,
    etherPerDay: null,
    solPerDay: null,
    solanaTokenAccountsPerDay: 10_000,
  },
  spending: { take: () => null },
}

/** Asks another process for the signature of this account, on the network with this CAIP-2 name. */
export type Ask = (address: string, network: string, sign: object) => Promise<string>
