import type { RpcOutcome } from '../rpc.ts'

/**
 * Blockhashes live for 150 blocks, and providers take a node out of service long before it is that far behind: beyond
 * this, in slots or in blocks, a difference is no longer lag.
 */
export const lagMax = 150

/** Those whose heights are close to each other, highest first, if they are enough and the majority; else null. */
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

/** Reads one answer. A node may answer anything: what does not have the form of an answer counts as none. */
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

/** A slot, height or time. Throws what `readAnswer` expects if it is none. */
export function whole(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new TypeError('not a whole number')
  return value
}
