import type { PaymentRequirements, SimulatedCase } from '@farthing/sdk'
import type { Signer } from '../chains/evm/signer.ts'
import type { Hex } from '../chains/hex.ts'
import type { Costs } from '../chains/plans.ts'
import type { Probed } from '../chains/probe.ts'
import type { NodeLimits } from '../chains/rpc.ts'
import type { SvmSigner } from '../chains/svm/signer.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { Channel } from '../database/wake.ts'
import type { Network } from '../networks.ts'
import type { Payment } from './payload.ts'

/**
 * The interface between payments and chains. A rail is one network and holds everything that differs between chain
 * families: what a payer signs, how it is verified, sent and found on the chain, and how a payment is proven dead.
 * Claims, credits, status, answers and events are shared by all rails, and nothing above `payments/` knows which chain
 * it is on. `payments/evm` and `payments/svm` each implement this type; `rails.ts` opens one for every network of the
 * table, enabled or not, because a checkout outlives the setting it was created under.
 */
export type Rail = {
  readonly network: Network
  /** Number of node providers. With 0, the network is known, but nothing is verified or settled on it. */
  readonly providers: number
  /**
   * Whether settlers send payments there. Without them nothing needs a key or a fee, and the chain is a part of the
   * database, so that a restore takes both back to the same moment.
   */
  readonly hasSettlers: boolean
  readonly verifier: Verifier
  /** The offer as x402 payment requirements. Null if it cannot be paid now. */
  toTerms(checkoutId: string, offer: Offer): Promise<PaymentRequirements | null>
  /**
   * Reserves an amount or reference that identifies a plain transfer to this checkout. False if none was free, or if
   * the checkout already has one.
   */
  reserve(wanted: Wanted, headAgeSecondsMax: number): Promise<boolean>
  /**
   * Parses a transaction hash that a buyer typed; null if it is not one. Absent on chains where buyers never need to.
   */
  parseTransactionHash?(text: string): Hex | null
  /** Refunds that stores paid by themselves. Absent where they cannot be proven. */
  readonly sent?: {
    /** Parses the name of a transaction; null if it is not one. */
    parse(text: string): string | null
    find(sent: SentTransfer): Promise<SentLookUp>
  }
  /** The most that one settlement can cost at this base fee, in the smallest unit of the native currency. */
  settlementCost(baseFee: bigint): bigint
  /**
   * The balance that a settler needs so that nodes accept a full batch from it, in addition to this many waiting
   * payments. Null while fees are so high that nothing is sent. `dataFee` is a full batch's cost beyond its gas.
   */
  reserveCost(baseFee: bigint, dataFee: bigint, waiting: number): bigint | null
  /**
   * The daily limit on the cost of one store's settlements, in the smallest unit of the native currency; null for no
   * limit.
   */
  readonly storeCostPerDay: bigint | null
  /** The same for a store that a stranger signed up for and that has not proven a wallet. */
  readonly unprovenCostPerDay: bigint | null
  /** Whether a settler's transactions are mined in order, so that a stuck one holds up those behind it. */
  readonly isInOrder: boolean
  /** How many providers answer right now. */
  countAnswering(): Promise<number>
  /** Differences between the chain and networks.ts. */
  findDifferences(): Promise<Difference[]>
  /** The abilities of each node, tried now. */
  probe(): Promise<Probed[]>
  /** What following such a network costs. */
  readonly nodeCosts: Costs
  /** The limits that the nodes have shown since this process began. */
  listLimits(): readonly NodeLimits[]
  /** Deploys the contract that settlements need, unless it is there. Absent if none is needed. */
  deploy?(signers: readonly AnySigner[]): Promise<Deployed>
  /** An account's transaction count, for chains that have one. */
  readNonce(account: string): Promise<number>
  /** Refunds that a store's wallet signs and a settler sends. Absent where that is not built. */
  readonly refunds?: RefundRail
  /** What it takes to make something happen there. Only on the network that test stores have for that. */
  simulate?(offer: Offer, what: SimulatedCase): Scenario
  /** Background work: sends claimed payments, finds them on the chain, and buries those that can no longer pay. */
  settle(work: Settling): readonly Loop[]
}

export type Scenario = {
  /** Presented as a payer would; null if nobody signs. */
  readonly payment: Payment | null
  /** Whether the checkout's time is over before anything is sent. */
  readonly isExpiring: boolean
  /** Sends plain transfers, once an amount is reserved; null if none is sent. */
  readonly send:
    | ((ctx: Context, to: { readonly checkoutId: string; readonly storeId: string }) => Promise<void>)
    | null
}

/** What is wrong, and what to do about it. */
export type Difference = { readonly says: string; readonly fix: string }

/** Whether the contract is on the chain now, and a sentence about it. */
export type Deployed = { readonly isDone: boolean; readonly says: string }

/** Keyed by CAIP-2 identifier. */
export type Rails = ReadonlyMap<string, Rail>

/** Our own records about a presented payment. */
export type KnownOfPayer = {
  /** The payer's payments in flight. */
  readonly inFlightUnits: bigint
  /** Whether the chain shows a transfer by this very authorization, so that it was used before it was presented. */
  readonly isUsed: boolean
  /** The last block we have followed; null if we follow none. A node below it has not seen everything that we have. */
  readonly headNumber: number | null
}

/** The part of a rail that `serve` uses. Throws if no node answers: an outage is never reported as a bad payment. */
export type Verifier = {
  /** Compares a payment with the offers, without querying a node. Returns why it does not match, or null. */
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
    known: KnownOfPayer,
    now: Date,
  ): Promise<Verified>
  /** Builds the transaction for a payer to sign, on chains where that requires a node. */
  prepare?(terms: PaymentRequirements, payer: string): Promise<Prepared>
}

/** An unsigned transaction in base64, or the x402 reason why the payment would not be accepted. */
export type Prepared = { readonly transaction: string } | { readonly refusal: string }

/** One way to pay, as it was offered. */
export type Offer = {
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** A plain transfer that a buyer wants to make. Addresses are in stored form. */
export type Wanted = {
  readonly checkoutId: string
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** The checkout's price, in token units. */
  readonly price: bigint
}

/** A payer's signed order to move money, as it is claimed and sent. Addresses are in stored form. */
export type Transfer<Address extends string = string> = {
  readonly asset: string
  readonly authorization: {
    readonly from: Address
    readonly to: Address
    readonly value: bigint
    /** The validity window by the chain's own clock: seconds or block heights. */
    readonly validAfter: bigint
    readonly validBefore: bigint
    /** Makes the order unique, so that it can be claimed once, for one checkout. */
    readonly nonce: Hex
  }
  readonly signature: Hex
  readonly isContract: boolean
  /** The only settler that can send it, if the order names one. */
  readonly settler?: string | null
}

/** The transfer with which a store says that it paid a refund itself. Addresses are in stored form. */
export type SentTransfer = {
  readonly transaction: string
  readonly asset: string
  readonly recipient: string
  readonly amount: bigint
  /** The wallets that the store has proven. One of them must have sent the money. */
  readonly wallets: readonly string[]
  /** A transfer before this time was for something else. */
  readonly notBefore: Date
}

/**
 * The chain's answer about it. `waiting`: it is not yet in a final block that enough nodes report. `unknown`: enough
 * nodes answer that they do not have the transaction. `found` lists the transfers that fit, because a transaction can
 * have several. If such a transfer is also a payment, its credit has the log index `creditedAs`, or its
 * own place if that is null.
 */
export type SentLookUp =
  | { readonly outcome: 'waiting' | 'unknown' }
  | { readonly outcome: 'refused'; readonly why: SentRefusal }
  | {
      readonly outcome: 'found'
      readonly block: string
      /** The place of each in the block or transaction, and the wallet that sent it. */
      readonly transfers: readonly { readonly place: number; readonly from: string }[]
      readonly at: Date
      readonly creditedAs: number | null
    }

export type SentRefusal =
  | 'no_transfer'
  | 'authorized'
  | 'credited'
  | 'other_recipient'
  | 'other_amount'
  | 'other_wallet'
  | 'too_old'

/** A refund for the receiving wallet to sign. Addresses are in stored form. */
export type RefundOrder = {
  readonly refundId: string
  readonly storeId: string
  readonly asset: string
  readonly wallet: string
  readonly recipient: string
  /** In the asset's smallest unit. */
  readonly amount: bigint
  /** The nonces that the payment's refunds may be signed with, in the order in which they are tried. */
  readonly nonces: readonly string[]
  /** The nonce that was handed out before and may still move money. Until it can't, no other is handed out. */
  readonly taken: string | null
  /** Ended refunds of the same payment. Nonces that they did not use may be used again. */
  readonly endedIds: readonly string[]
}

/** The typed data, or the transaction in base64, that the wallet signs, and when it expires. */
export type ToSign =
  | { readonly typedData: object; readonly expiresAt: Date }
  | { readonly transaction: string; readonly expiresAt: Date }

/** The signer's answer. */
export type Presented = { readonly signature: string } | { readonly transaction: string }

/**
 * Its functions read with the caller’s rights: the console sees only one store’s rows, and only if it names the store.
 */
export type RefundRail = {
  /** Whether the token itself accepts a nonce only once. */
  readonly isPaidOnce: boolean
  /**
   * Prepares what the wallet signs. `commit` runs a write in a transaction that holds the refund's lock, and records
   * the nonce that the write returns as the refund's. The write must use the order that `commit` passes to it, not this
   * one. Nothing is handed out before it is committed. Throws a Problem if nothing can be handed out now.
   */
  prepare(ctx: Context, order: RefundOrder, commit: CommitHandOut): Promise<ToSign>
  /**
   * Checks the wallet's signature, and whether the token would accept the transfer now. Returns the transfer to send,
   * or the problem for the store to read. `inFlightUnits` is the sum of the wallet's other signed refunds that are not
   * paid yet.
   */
  verify(
    ctx: Context,
    handedOut: Handed,
    presented: Presented,
    inFlightUnits: bigint,
  ): Promise<{ readonly transfer: Transfer } | { readonly refusal: SignatureRefusal }>
}

export type CommitHandOut = (
  write: (tx: Transaction, order: RefundOrder) => Promise<string | null>,
) => Promise<void>

/** The authorization that was handed out, as it was written. */
export type Handed = { readonly transfer: Transfer; readonly refundId: string | null }

/** Why a signature is refused: a code for programs, a sentence for people. */
export type SignatureRefusal = { readonly code: string; readonly detail: string }

/** A payment that may be claimed, or the x402 reason why not. */
export type Verified =
  | { readonly isValid: true; readonly transfer: Transfer; readonly offer: Offer }
  | {
      readonly isValid: false
      readonly reason: string
      /** A sentence for the payer's developer, if the reason alone does not say what to do. */
      readonly message?: string | undefined
      readonly payer: string
      /** Block height of the node that refused it; null if no node was queried. */
      readonly blockNumber: number | null
    }

/** Re-evaluates checkouts whose facts changed, in the transaction that changed them. Passed in by `worker.ts`. */
export type UpdateStatus = (tx: Transaction, checkoutIds: readonly string[], now: Date) => Promise<void>

/** A settler's key for either chain family. */
export type AnySigner = Signer | SvmSigner

export type Settling = {
  readonly signers: readonly AnySigner[]
  /** The name under which this process holds leases. */
  readonly holder: string
  readonly updateStatus: UpdateStatus
}

/** Background work that runs again at once while there is more to do, and pauses otherwise. */
export type Loop = {
  readonly name: string
  readonly restMs: number
  /** A wake-up on this channel ends the pause early. */
  readonly wakeOn?: Channel
  /** Returns whether there may be more to do. `again` ends the pause early if work turns up later. */
  readonly run: (again: () => void) => Promise<boolean>
  /** Releases the lease, so that another process can take over at once. */
  readonly release?: () => Promise<void>
}

/**
 * How long a signed payment may stay valid from now. During that time anyone who has it can use it, and the checkout
 * stays busy.
 */
export const maxTimeoutSeconds = 300

/** The offers as x402 payment requirements, without those that cannot be paid now. */
export async function toTerms(
  rails: Rails,
  checkoutId: string,
  offers: readonly Offer[],
): Promise<PaymentRequirements[]> {
  const terms = await Promise.all(
    offers.map((offer) => rails.get(offer.network)?.toTerms(checkoutId, offer) ?? null),
  )
  return terms.filter((one) => one !== null)
}

/** Checks a chain once per process, before anything on it is followed or sent. Throws until the check passes. */
export function openCheck(
  ctx: Context,
  network: string,
  findDifferences: () => Promise<Difference[]>,
): () => Promise<boolean> {
  let isGood = false
  return async () => {
    if (isGood) return true
    const differences = await findDifferences()
    if (differences.length > 0)
      throw new Error(differences.map(({ says, fix }) => `${says} ${fix}`).join(' '))
    isGood = true
    ctx.log.info({ network }, 'chain verified: its id, tokens and contracts are as configured')
    return true
  }
}
