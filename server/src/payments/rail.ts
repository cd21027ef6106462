import type { PaymentRequirements } from '@farthing/sdk'
import type { Signer } from '../chains/evm/signer.ts'
import type { Hex } from '../chains/hex.ts'
import type { SvmSigner } from '../chains/svm/signer.ts'
import type { Transaction } from '../database/db.ts'
import type { Channel } from '../database/wake.ts'
import type { Network } from '../networks.ts'
import type { Payment } from './payload.ts'

/**
 * The seam between payments and chains. A rail is one network, and holds everything that differs between families of
 * chains: what a payer signs, how that is verified, sent and found on the chain, and how a payment is proven dead.
 * Claims, credits, status, answers and events are the same code for every rail, and nothing above `payments/` knows
 * which chain it is on. `payments/evm` and `payments/svm` each implement this type once; `rails.ts` opens them.
 */
export type Rail = {
  readonly network: Network
  /** How many nodes are configured. With 0 the network is known, but nothing is verified or settled on it. */
  readonly endpoints: number
  readonly verifier: Verifier
  /** An offer as x402 payment requirements. Null if it cannot be paid now. */
  toTerms(checkoutId: string, offer: Offer): Promise<PaymentRequirements | null>
  /** Reserves what a plain transfer to this checkout is recognised by. False if nothing was free, or it has one. */
  reserve(wanted: Wanted, headAgeSecondsMax: number): Promise<boolean>
  /** The hash of a transaction, as a buyer typed it; null if it is not one. Absent where buyers need not name any. */
  parseTransactionHash?(text: string): Hex | null
  /** The most that one settlement costs at this base fee, in the smallest unit of the native currency. */
  settlementCost(baseFee: bigint): bigint
  /** Whether a settler's transactions are mined in order, so that one that is stuck holds up the ones behind it. */
  readonly isInOrder: boolean
  /** How many of the nodes answer now. */
  countAnswering(): Promise<number>
  /** What differs between the chain and networks.ts, in sentences. */
  findMistakes(): Promise<string[]>
  /** An account's transaction count, for chains that have one. */
  readNonce(account: string): Promise<number>
  /** Background work: sends what is claimed, finds it on the chain, and buries what is dead. */
  settle(work: Settling): readonly Loop[]
}

/** By CAIP-2 identifier. */
export type Rails = ReadonlyMap<string, Rail>

/** What `serve` asks of a chain. If no node answers it throws: an outage is never reported as a bad payment. */
export type Verifier = {
  /** Compares a payment with what was offered, without asking a node: why it does not fit, or null. */
  findMismatch(
    checkoutId: string,
    offers: readonly Offer[],
    payment: Payment,
    now: Date,
  ): Promise<string | null>
  /** Decides whether a payment would settle. */
  verify(
    checkoutId: string,
    offers: readonly Offer[],
    payment: Payment,
    inFlightUnits: bigint,
    now: Date,
  ): Promise<Verified>
  /** Builds what a payer has to sign, where that takes a node. */
  prepare?(terms: PaymentRequirements, payer: string): Promise<Prepared>
}

/** Unsigned, in base64; or the x402 reason why it would not be accepted. */
export type Prepared = { readonly transaction: string } | { readonly refusal: string }

/** A way to pay as it was offered. */
export type Offer = {
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** A plain transfer that a buyer wants to make. Addresses are in their stored spelling. */
export type Wanted = {
  readonly checkoutId: string
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** What the checkout asks for, in units. */
  readonly price: bigint
}

/** A payer's signed order to move money, as it is claimed and sent. Addresses are in their stored spelling. */
export type Transfer<Address extends string = string> = {
  readonly asset: string
  readonly authorization: {
    readonly from: Address
    readonly to: Address
    readonly value: bigint
    /** The window, by the chain's own clock: seconds or block heights. */
    readonly validAfter: bigint
    readonly validBefore: bigint
    /** Makes it unique: it is claimed once, for one checkout. */
    readonly nonce: Hex
  }
  readonly signature: Hex
  readonly isContract: boolean
  /** The only settler that can send it, where it names one. */
  readonly settler?: string | null
}

/** A payment that may be claimed, or the x402 reason why not. */
export type Verified =
  | { readonly isValid: true; readonly transfer: Transfer; readonly offer: Offer }
  | {
      readonly isValid: false
      readonly reason: string
      readonly payer: string
      /** Height of the node that refused it; null if no node was asked. */
      readonly blockNumber: number | null
    }

/** Re-evaluates checkouts whose facts changed, in the transaction that changed them. Handed in by `worker.ts`. */
export type UpdateStatus = (tx: Transaction, checkoutIds: readonly string[], now: Date) => Promise<void>

/** A settler's key, of either family. */
export type AnySigner = Signer | SvmSigner

export type Settling = {
  readonly signers: readonly AnySigner[]
  /** This process's name in leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
}

/** Work that runs again at once while there is more to do, and otherwise rests. */
export type Loop = {
  readonly name: string
  readonly restMs: number
  /** What cuts the rest short. */
  readonly wakeOn?: Channel
  /** Returns whether there may be more to do. Whatever turns up later may call `again`. */
  readonly run: (again: () => void) => Promise<boolean>
  /** Releases the lease, so that another process can take over at once. */
  readonly release?: () => Promise<void>
}
