import type { PaymentRequirements } from '@farthing/sdk'
import type { Hex } from '../chains/chain.ts'
import type { Network } from '../chains/networks.ts'
import type { Signer } from '../chains/signer.ts'
import type { SvmSigner } from '../chains/svm/signer.ts'
import type { Transaction } from '../db.ts'
import type { Channel } from '../wake.ts'
import type { Payment } from './payload.ts'

/**
 * What differs from one family of chains to the next: how a signed payment is verified, how it is sent, how the chain
 * is looked at, and how it is proven that a payment is dead. Claims, credits, status, answers and events are one path
 * for all of them, and nothing above this room knows which chain it is on.
 */
export type Rail = {
  readonly network: Network
  readonly endpoints: number
  readonly door: Door
  /** How many of the nodes answer now. */
  countAnswering(): Promise<number>
  /** What of the chain is not as networks.ts says, in sentences. */
  findMistakes(): Promise<string[]>
  /** Where an account's own count of transactions stands, for chains that have one. */
  readNonce(account: string): Promise<number>
  /** Background work: sends what is claimed, looks what became of it, and buries what is dead. */
  settle(work: Settling): readonly Loop[]
}

/** What `serve` asks of a chain. A node that cannot be asked throws: an outage is never told as a bad payment. */
export type Door = {
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
  /** Makes what a payer has to sign, where that cannot be made without a node. */
  prepare?(terms: PaymentRequirements, payer: string): Promise<Prepared>
}

/** In base64, without signatures, or the reason, in the protocol's words, why it would not be taken. */
export type Prepared = { readonly transaction: string } | { readonly refusal: string }

/** A way to pay as it was offered. */
export type Offer = {
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** A payer's signed order to move money, as it is claimed and sent. Addresses are in their stored spelling. */
export type Transfer<Address extends string = string> = {
  readonly asset: string
  readonly authorization: {
    readonly from: Address
    readonly to: Address
    readonly value: bigint
    /** The window, by the chain's own clock: seconds on EVM chains, block heights on Solana. */
    readonly validAfter: bigint
    readonly validBefore: bigint
    /** What makes it one of its kind: it is claimed once, for one checkout. */
    readonly nonce: Hex
  }
  readonly signature: Hex
  readonly isContract: boolean
  /** The only settler that can send it, where it names one. */
  readonly settler?: string | null
}

/** A payment that may be claimed, or the reason, in the protocol's words, why not. */
export type Verified =
  | { readonly isValid: true; readonly transfer: Transfer; readonly offer: Offer }
  | {
      readonly isValid: false
      readonly reason: string
      readonly payer: string
      /** Height of the node that said so; null where nobody was asked. */
      readonly blockNumber: number | null
    }

/** Looks again at checkouts whose facts changed, in the transaction that changed them. Handed in from above. */
export type UpdateStatus = (tx: Transaction, checkoutIds: readonly string[], now: Date) => Promise<void>

/** A settler's key, of either family. */
export type AnySigner = Signer | SvmSigner

export type Settling = {
  readonly signers: readonly AnySigner[]
  /** This process's name in leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
}

/** Work that looks for something to do, does it, and looks again at once; when there was nothing, it rests. */
export type Loop = {
  readonly name: string
  readonly restMs: number
  /** What cuts the rest short. */
  readonly wakeOn?: Channel
  /** Whether there may be more. What comes up later may call `again`. */
  readonly run: (again: () => void) => Promise<boolean>
  /** Lets another process go on at once. */
  readonly release?: () => Promise<void>
}
