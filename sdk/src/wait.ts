/** Delays between retries. */

const firstDelayMs = 250
const longestDelayMs = 8_000

/**
 * How long to wait before the next try: as long as the server asked for, otherwise twice as long each time. Jitter
 * spreads out clients that failed at the same moment.
 */
export function delayMs(
  triesSoFar: number,
  retryAfterSeconds: number | null,
  random = Math.random(),
): number {
  if (retryAfterSeconds !== null) return retryAfterSeconds * 1_000 + random * firstDelayMs
  return Math.min(firstDelayMs * 2 ** (triesSoFar - 1), longestDelayMs) * (0.5 + random / 2)
}

/** The seconds in a Retry-After header. Returns null if the header is missing or holds a date. */
export function readRetryAfter(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? ''
  return /^\d{1,6}$/.test(text) ? Number.parseInt(text, 10) : null
}

/** Resolves after `ms`, or earlier if the signal is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}
