import type { Family } from '../terms.ts'

/** A wallet in this browser. */
export type Wallet = {
  readonly id: string
  /** Empty where the wallet did not say. */
  readonly name: string
  readonly icon: string
  readonly family: Family
  /** Gives a payment header, or stops. `checkIsMine` stops what the buyer has left. */
  readonly sign: (checkIsMine: () => void) => Promise<string>
}

export const wallets: Wallet[] = []
