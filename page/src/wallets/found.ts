import type { Family } from '../terms.ts'

/** A wallet in this browser. */
export type Wallet = {
  readonly id: string
  /** Empty if the wallet did not announce one. */
  readonly name: string
  readonly icon: string
  readonly family: Family
  /**
   * Returns a payment header or a signature, whichever was requested. `checkIsMine` throws if that request was
   * abandoned. `isAgain`: the previous signature came too late.
   */
  readonly sign: (checkIsMine: () => void, isAgain?: boolean) => Promise<string>
}

export const wallets: Wallet[] = []
