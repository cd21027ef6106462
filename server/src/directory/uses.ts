import type { Claim } from './directory.ts'

/**
 * What this cell uses, as rooms above can tell: a wallet that is not retired or at which something may still happen, a
 * settler that is not retired or has something unmined. What is used has to be claimed; the rest may be given up.
 */
export type Uses = {
  /** All of it, a page at a time. */
  pages(): AsyncIterable<readonly Claim[]>
  /** Which of these are used. */
  find(claims: readonly Claim[]): Promise<readonly Claim[]>
  /** What was found to be another cell's, and so is not put to new use here. */
  listElsewhere(): Promise<readonly Claim[]>
  writeElsewhere(claims: readonly Claim[], isElsewhere: boolean): Promise<void>
  /** Notes what this cell gives up: what is paid there from then on is not for its stores to decide about. */
  writeReleased(claims: readonly Claim[]): Promise<void>
}

export function keyOf({ kind, scope, address }: Claim): string {
  return `${kind} ${scope} ${address}`
}

/** The claims of `all` that are not in `some`. */
export function without<One extends Claim>(all: readonly One[], some: readonly Claim[]): One[] {
  const known = new Set(some.map(keyOf))
  return all.filter((claim) => !known.has(keyOf(claim)))
}
