import type { Follower } from '../rows.ts'

/**
 * When a chain is looked at: often while somebody may be paying, and rarely otherwise, because providers charge by the
 * call. All of it is time: how fast blocks come decides nothing, except where an idle look ends.
 */
export const cadence = {
  /** While somebody may be paying. */
  awakeMs: 2_000,
  /** While nobody is. What arrives then was sent without a page open, and may be seen later. */
  idleMs: 30_000,
  /** A transaction is hardly in a block, and its block with the nodes, sooner after it was signed. */
  landedMs: 350,
  /** While a transaction is not mined, the rest between looks grows with its age, from this to that of `awakeMs`. */
  sentMs: 250,
  /** A provider that lacks a block, or its logs, is asked again after so long. */
  againMs: 300,
  /** An idle look ends at a block of this age, which no provider should lack. */
  idleLagMs: 4_000,
  /** Beyond this, nobody was watching: how long the head has not moved says nothing about the providers. */
  pauseMs: 5_000,
  /** While something is to become final. */
  finalityMs: 20_000,
  /** For what may be old while nothing happens. */
  rarelyMs: 10 * 60_000,
} as const

export type Demand = {
  /** Whether something is claimed, or somebody has looked at what can be paid. */
  readonly isAwake: boolean
  /** How long ago the youngest transaction was signed that is not mined; null if there is none. */
  readonly sentAgoMs: number | null
}

/** What a process remembers of its looks at a chain. */
export type Watch = {
  lookedAt: number | null
  /** Since when it has looked without a pause. */
  since: number
  /** Whether the last look left more to read. */
  isMore: boolean
  /** The end of a range that could not be taken yet, because a provider lacked something of it. */
  unmet: number | null
}

const watches = new WeakMap<object, Watch>()

/** That of this process at a chain. */
export function watchOf(chain: object): Watch {
  const watch = watches.get(chain) ?? openWatch()
  watches.set(chain, watch)
  return watch
}

export function openWatch(): Watch {
  return { lookedAt: null, since: 0, isMore: false, unmet: null }
}

/** How long until the next look is due, in milliseconds. 0 or less: now. */
export function untilDue(
  { lookedAt, isMore, unmet }: Watch,
  { headAgeSeconds }: Pick<Follower, 'headAgeSeconds'>,
  { isAwake, sentAgoMs }: Demand,
  now: number,
): number {
  if (isMore) return 0
  // A clock that was set back must not make it wait any longer.
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
  /** Up to where it reads, or up to the head if that is null. */
  readonly expected: number | null
}

/**
 * Begins a look. It takes the head to be no older than the process has watched: after a pause the head is old because
 * nobody looked, and no provider is late.
 */
export function beginLook(watch: Watch, follower: Follower, { isAwake }: Demand, now: number): Begun {
  const { lookedAt, unmet } = watch
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
  }
}

/** Ends a look: `true` if there may be more to read, or the end of a range that could not be taken. */
export function endLook(
  watch: Watch,
  outcome: boolean | { readonly unmet: number },
  expected: number | null,
): void {
  watch.isMore = outcome === true
  // The same range once more: asked for the head again, the fastest provider is always ahead of the others.
  if (typeof outcome === 'object' && expected === null) watch.unmet = outcome.unmet
}

/**
 * Up to where an idle look reads, without asking for the head first: as many blocks on as the time allows for. Null if it
 * is not known how fast they come.
 */
function expectEnd({ headNumber, headTime, blockTimeMs }: Follower, now: number): number | null {
  if (!headTime || !blockTimeMs) return null
  const passedMs = now - headTime.getTime() - cadence.idleLagMs
  return passedMs < blockTimeMs ? null : headNumber + Math.floor(passedMs / blockTimeMs)
}
