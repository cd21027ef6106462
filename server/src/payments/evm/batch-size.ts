import { readBlockGas } from '../../chains/evm/accounts.ts'
import type { Chain } from '../../chains/evm/chain.ts'
import { countFitting } from './choose.ts'

/**
 * How many payments a lane puts into one transaction. A block must have room for all the gas that a transaction may use,
 * and a chain with fast blocks has small ones: a batch that needs much of a block waits for one that is emptier than
 * most. So a batch that waits halves the size of those after it, and each transaction that is mined lets them grow again.
 */
export type BatchSize = {
  /** The gas of an empty block, and when it was read. */
  block: { readonly gas: bigint | null; readonly at: number } | null
  /** How many payments the next batch may have. */
  max: number
  /** The nonces below this one were mined at the last step. */
  minedBelow: number
  /** The transaction that is mined next. `since` is the first block of which we know that it had a chance to be in it. */
  next: { readonly nonce: number; readonly seenAt: number; readonly since: number | null } | null
}

/** The gas of a block changes by less than a thousandth from one to the next. */
const blockReadMs = 600_000
/** At most this part of an empty block, because others send too. */
const blockShare = 2n
/** Even smaller ones would hardly get in sooner, and a provider that tells of small blocks gains little. */
const paymentsMin = 8
const growth = 8
/** A transaction that is in none of this many blocks waits. */
const lateBlocks = 5

export function openBatchSize(): BatchSize {
  return { block: null, max: countFitting(true), minedBelow: 0, next: null }
}

/** Learns from the lowest nonce in flight. The others wait for it, whatever their size. */
export function learnSize(
  size: BatchSize,
  lowest: { readonly nonce: number; readonly payments: number } | undefined,
  { minedBelow, headNumber }: { readonly minedBelow: number; readonly headNumber: number },
): void {
  if (minedBelow > size.minedBelow) size.max = Math.min(countFitting(true), size.max + growth)
  // A reorganisation can lower it.
  size.minedBelow = minedBelow
  const { next } = size
  if (!lowest || lowest.nonce !== next?.nonce) {
    size.next = lowest ? { nonce: lowest.nonce, seenAt: headNumber, since: null } : null
    return
  }
  // When it was sent, the head that we knew may have been seconds old.
  if (next.since === null && headNumber > next.seenAt) size.next = { ...next, since: headNumber }
  // A single payment could not be smaller, so it waits for another reason.
  if (next.since === null || headNumber - next.since < lateBlocks || lowest.payments <= 1) return
  size.max = Math.max(paymentsMin, Math.min(size.max, lowest.payments >> 1))
  size.next = { ...next, since: Number.POSITIVE_INFINITY }
}

/** How many payments the next batch may have. */
export async function sizeOfBatch(
  chain: Chain,
  size: BatchSize,
  hasBatcher: boolean,
  now: number,
): Promise<number> {
  if (!size.block || Math.abs(now - size.block.at) >= blockReadMs)
    size.block = { gas: await readBlockGas(chain), at: now }
  const { gas } = size.block
  const fitting = gas === null ? countFitting(hasBatcher) : countFitting(hasBatcher, gas / blockShare)
  return Math.min(Math.max(paymentsMin, fitting), size.max, countFitting(hasBatcher))
}
