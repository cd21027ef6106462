import { Problem } from '../problems.ts'

const retrySecondsMin = 2
/** Refused payers come back over this many seconds, not all at once. */
const retrySpreadSeconds = 6

/**
 * Limits how many payments a process checks, claims and waits for at once. Without it a flood is claimed faster than it
 * can be settled: each further payment makes all others slower, until nobody is answered within the promised 25 seconds.
 * A request that repeats a claimed payment needs no slot, and a payment that is refused keeps its slot only while a node
 * is asked about it, so slots cannot be used up without money.
 */
export type Slots = {
  /** Takes a slot. Throws a Problem if none is free. Returns the function that frees it, which works once. */
  take(): () => void
}

export function openSlots(max: number): Slots {
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
