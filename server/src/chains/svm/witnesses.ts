import type { RpcOutcome } from '../rpc.ts'

/**
 * What is believed of Solana. Nothing in an answer proves it, so every question on which money depends goes to all
 * providers. An answer counts if `witnessesMin` give it and they are more than half of those that answered:
 *
 *   a confirmed transaction   the same slot, time, error, bytes and token balances
 *   how far the chain is      the highest height that enough have reached: no provider raises it alone
 *   a blockhash's life        by the highest height of any provider: no provider shortens it alone
 *   dead                      enough have finalized blocks past its last height and don't know it, and no other has it. A majority is
 *                             not enough: providers with a short history don't know an old transaction
 *
 * A provider that does not know a transaction lags until it is `lagMax` past it. Different answers about a confirmed
 * block may come from a fork; about a finalized block, one of them is a lie. If no majority decides, nothing is
 * decided.
 */

/**
 * A larger difference, in slots or in blocks, is no longer lag: blockhashes live for 150 blocks, and providers take a
 * node out of service long before it is that far behind.
 */
export const lagMax = 150

/** Those whose heights are close to each other, highest first, if they are enough and more than half; else null. */
export function findTogether<One>(
  told: readonly One[],
  heightOf: (one: One) => number,
  witnessesMin: number,
): readonly [One, ...One[]] | null {
  const sorted = told.toSorted((a, b) => heightOf(b) - heightOf(a))
  const groups = sorted.map((highest, i) =>
    sorted.slice(i).filter((one) => heightOf(highest) - heightOf(one) <= lagMax),
  )
  const [largest = []] = groups.toSorted((a, b) => b.length - a.length)
  const [highest, ...others] = largest
  if (!highest || largest.length < witnessesMin || largest.length * 2 <= told.length) return null
  return [highest, ...others]
}

/** Reads one answer. A node may answer anything, so one of another form counts as none. */
export function readAnswer<Raw, Fact>(
  outcome: RpcOutcome | undefined,
  read: (raw: Raw) => Fact | null,
): Fact | null {
  if (!outcome || 'error' in outcome) return null
  try {
    return read(outcome.result as Raw)
  } catch (error) {
    if (error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError) return null
    throw error
  }
}

/** A slot, height or time. Throws if it is none; `readAnswer` catches that. */
export function whole(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new TypeError('not a whole number')
  return value
}
