import type { Hex } from '../hex.ts'
import type { Follower } from '../rows.ts'

/**
 * When a chain is looked at: often while somebody may be paying, and rarely otherwise, because providers charge by the
 * call. These are times, not blocks, so a faster chain is not looked at more often.
 */
export const cadence = {
  /** While somebody may be paying. */
  awakeMs: 2_000,
  /** While nobody is. What arrives then was sent without a page open, and may be seen later. */
  idleMs: 30_000,
  /** A transaction rarely gets into a block, and our question to a node, sooner than this after it was signed. */
  landedMs: 200,
  /** While a transaction is not mined, the pause between looks grows with its age: from this to `awakeMs`. */
  sentMs: 150,
  /** Peeks put off the next search until this long after the last one. */
  peekMs: 3_000,
  /** The pause before asking again if a provider lacks a block or its logs. */
  againMs: 300,
  /** An idle look reads only up to blocks of this age, which every provider should have. */
  idleLagMs: 4_000,
  /** After a longer pause between looks, an old head does not mean that a provider is late: nobody looked. */
  pauseMs: 5_000,
  /** While blocks wait to become final. */
  finalityMs: 20_000,
  /** For reads that may be this old while nothing happens. */
  rarelyMs: 10 * 60_000,
} as const

export type Demand = {
  /** Whether something is claimed, or somebody has looked at a checkout that can be paid. */
  readonly isAwake: boolean
  /** The age of the youngest transaction that is not mined; null if there is none. */
  readonly sentAgoMs: number | null
  /** The hashes of transactions that are not mined, the youngest first. */
  readonly sent: readonly Hex[]
}

/** What a process remembers of its looks at a chain. */
export type Watch = {
  lookedAt: number | null
  /** The last look that searched the chain, and was not only a peek. */
  searchedAt: number | null
  /** The start of its present run of looks without a pause. */
  since: number
  /** Whether the last look left more to read. */
  isMore: boolean
  /** The last block of a range that could not be read yet, because a provider lacked part of it. */
  unmet: number | null
}

const watches = new WeakMap<object, Watch>()

/** What this process remembers of a chain. */
export function watchOf(chain: object): Watch {
  const watch = watches.get(chain) ?? openWatch()
  watches.set(chain, watch)
  return watch
}

export function openWatch(): Watch {
  return { lookedAt: null, searchedAt: null, since: 0, isMore: false, unmet: null }
}

/** How long until the next look is due, in milliseconds. 0 or less: now. */
export function untilDue(
  { lookedAt, isMore, unmet }: Watch,
  { headAgeSeconds }: Pick<Follower, 'headAgeSeconds'>,
  { isAwake, sentAgoMs }: Omit<Demand, 'sent'>,
  now: number,
): number {
  if (isMore) return 0
  // If the clock was set back, look at once.
  const restedMs = lookedAt === null || lookedAt > now ? Number.POSITIVE_INFINITY : now - lookedAt
  if (unmet !== null) return cadence.againMs - restedMs
  const awakeMs = cadence.awakeMs - restedMs
  if (sentAgoMs !== null) {
    const gapMs = Math.max(cadence.sentMs, sentAgoMs / 3)
    return Math.min(awakeMs, Math.max(cadence.landedMs - sentAgoMs, gapMs - restedMs))
  }
  if (isAwake || headAgeSeconds === null) return awakeMs
  return Math.max(awakeMs, cadence.idleMs - headAgeSeconds * 1_000)
}

type Begun = {
  readonly follower: Follower
  /** The block to read up to; null for the head. */
  readonly expected: number | null
  /**
   * Whether this look is a peek: it asks a single provider whether something that we sent is in a block, and searches
   * the chain only if so. Everything else waits for the next look that is no peek.
   */
  readonly isPeek: boolean
}

/**
 * Begins a look. The head's age counts only since this process began to look without a pause: before that, nobody
 * looked, and no provider was late.
 */
export function beginLook(watch: Watch, follower: Follower, { isAwake, sent }: Demand, now: number): Begun {
  const { lookedAt, searchedAt, unmet } = watch
  const isSearched = searchedAt !== null && searchedAt <= now && now - searchedAt < cadence.peekMs
  const isPaused = lookedAt === null || lookedAt > now || now - lookedAt > cadence.pauseMs
  if (isPaused) watch.since = now
  watch.lookedAt = now
  watch.isMore = false
  watch.unmet = null
  const { headAgeSeconds } = follower
  const watchedSeconds = (now - watch.since) / 1_000
  return {
    follower: {
      ...follower,
      headAgeSeconds: headAgeSeconds === null ? null : Math.min(headAgeSeconds, watchedSeconds),
    },
    expected: unmet ?? (isPaused && !isAwake ? expectEnd(follower, now) : null),
    isPeek: sent.length > 0 && isSearched && unmet === null && !isPaused,
  }
}

/**
 * Ends a look. The outcome is `true` if there may be more to read, the end of a range that could not be read, or
 * 'unmined' if a peek found nothing.
 */
export function endLook(
  watch: Watch,
  outcome: boolean | 'unmined' | { readonly unmet: number },
  expected: number | null,
): void {
  if (outcome === 'unmined') return
  watch.searchedAt = watch.lookedAt
  watch.isMore = outcome === true
  // Reads the same range again. With a newer head, the fastest provider would always be ahead of the others.
  if (typeof outcome === 'object' && expected === null) watch.unmet = outcome.unmet
}

/**
 * The block up to which an idle look reads, estimated without asking for the head: the last one plus as many as should
 * have come since. Null if the time between blocks is not known.
 */
function expectEnd({ headNumber, headTime, blockTimeMs }: Follower, now: number): number | null {
  if (!headTime || !blockTimeMs) return null
  const passedMs = now - headTime.getTime() - cadence.idleLagMs
  return passedMs < blockTimeMs ? null : headNumber + Math.floor(passedMs / blockTimeMs)
}
