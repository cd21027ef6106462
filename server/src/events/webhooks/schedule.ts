/**
 * What happens after a try. A delivery has ten tries over about 75 hours. Only the receiver's status counts: any 2xx
 * means delivered, 410 means never send again, and everything else, redirects included, is a failure that is retried.
 */
const minute = 60
const hour = 60 * minute

/** Seconds before each try, counted from the end of the previous one. */
export const delaysSeconds: readonly number[] = [
  0,
  5,
  5 * minute,
  30 * minute,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
]

/** Up to a tenth is added to each delay, so that deliveries that failed together are not retried together. */
const jitterShare = 0.1
/** A receiver may ask us to wait, but not forever. */
const restSecondsMax = 24 * hour

export type Outcome = {
  readonly startedAt: Date
  readonly durationMs: number
  readonly status: number | null
  readonly error: string | null
  readonly answer: string | null
  readonly retryAfter: string | null
}

export type Verdict =
  | { readonly state: 'delivered' }
  | {
      readonly state: 'pending'
      readonly delaySeconds: number
      /** How long to leave the whole endpoint alone. */
      readonly restSeconds: number
    }
  | { readonly state: 'undeliverable'; readonly isGone: boolean }

/** `tries` includes this one; `random` is from 0 to 1. */
export function judge(outcome: Outcome, tries: number, now: Date, random: number): Verdict {
  const { status } = outcome
  if (status !== null && status >= 200 && status < 300) return { state: 'delivered' }
  if (status === 410) return { state: 'undeliverable', isGone: true }
  const delay = delaysSeconds[tries]
  if (delay === undefined) return { state: 'undeliverable', isGone: false }
  const restSeconds = status === 429 || status === 503 ? parseRetryAfter(outcome.retryAfter, now) : 0
  const jittered = delay * (1 + jitterShare * random)
  return { state: 'pending', delaySeconds: Math.max(jittered, restSeconds), restSeconds }
}

/** Accepts seconds or an HTTP date; anything else means no wait. */
function parseRetryAfter(text: string | null, now: Date): number {
  if (text === null) return 0
  const seconds = /^\d{1,9}$/.test(text)
    ? Number.parseInt(text, 10)
    : Math.ceil((Date.parse(text) - now.getTime()) / 1_000)
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), restSecondsMax)
}
