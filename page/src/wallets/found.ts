import type { Family } from '../terms.ts'

/** A wallet in this browser. */
export type Wallet = {
  readonly id: string
  /** Empty if the wallet did not announce one. */
  readonly name: string
  readonly icon: string
  readonly family: Family
  /** Returns a payment header, or throws. `checkIsMine` throws if the buyer has abandoned this request. */
  readonly sign: (checkIsMine: () => void) => Promise<string>
}

export const wallets: Wallet[] = []
