import type { Database, Transaction } from '../../database/db.ts'
import type { Hex } from '../hex.ts'
import type { Demand } from './cadence.ts'
import type { Block, ChainLog } from './chain.ts'
import type { Concerns } from './search.ts'

export type AccountNonce = { readonly address: string; readonly nonce: number; readonly isWitnessed: boolean }

type Reading = {
  /** Whether enough providers reported the block and its logs alike. */
  readonly isWitnessed: boolean
  /** Whether a provider has the block but none of these logs. */
  readonly isDoubted: boolean
  /** Whether the block was read before: then a witnessed reading replaces what is known of it. */
  readonly isAgain: boolean
}

/** The highest blocks that are safe and finalized. */
export type Reached = { readonly safe: number; readonly finalized: number }

export type Listener = {
  /** What to search the chain for, as it is now. */
  concerns(db: Database | Transaction): Promise<Concerns>
  /** The logs of our tokens in a block of the chain. */
  onBlock(
    tx: Transaction,
    block: Omit<Block, 'baseFee'>,
    logs: readonly ChainLog[],
    reading: Reading,
  ): Promise<void>
  /** Blocks that are no longer part of the chain, which now ends at `number`. */
  onOrphaned(tx: Transaction, hashes: readonly Hex[], number: number): Promise<void>
  /**
   * The accounts whose nonces are needed: those of every process, because any process may lead. Without `isComplete`,
   * only those that have something in flight.
   */
  accounts(isComplete: boolean): Promise<readonly string[]>
  /** The nonces of the accounts at the end of the chain that was read. */
  onNonces(tx: Transaction, accounts: readonly AccountNonce[]): Promise<void>
  /** Whether anybody may be paying. */
  readDemand(): Promise<Demand>
  /** Whether anything waits for a block to become safe or finalized. */
  awaitsFinality(): Promise<boolean>
  /** How much of the way from one finality to another can be gone in one transaction. */
  reach(from: Reached, to: Reached): Promise<Reached>
  /** Blocks have reached a finality, all of it if `isLast`. Returns whether that changed anything. */
  onFinality(tx: Transaction, from: Reached, to: Reached, isLast: boolean): Promise<boolean>
  /** Called after each commit that may have changed something. */
  onCommit(): void
}
