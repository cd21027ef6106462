import { Problem } from '../problems.ts'

/**
 * How many payments a process checks, claims and waits for at once. Beyond that, each further one would only make all
 * others slower: from about a thousand payments per block on, a process spends its time on claims instead of outcomes,
 * and nobody is answered within the promised 25 seconds.
 */
const slotsMax = 2_000
const retrySecondsMin = 2
/** Refused payers come back over this many seconds, not all at once. */
const retrySpreadSeconds = 6

/** Admits payments while there are free slots. */
export type Slots = {
  /** Takes a slot. Throws a Problem if none is free. Returns the function that frees it, which works once. */
  take(): () => void
}

export function openSlots(max = slotsMax): Slots {
  let taken = 0
  let refused = 0
  return {
    take() {
      if (taken >= max) {
        throw new Problem(
          'settlement_unavailable',
          'More payments are arriving than can be settled. Nothing was charged. Repeat the same request with the same payment.',
          { retryAfterSeconds: retrySecondsMin + (refused++ % retrySpreadSeconds) },
        )
      }
      taken++
      let isFree = false
      return () => {
        if (isFree) return
        isFree = true
        taken--
      }
    },
  }
}
