import { openBatcher } from './batch.ts'
import { openPoll } from './poll.ts'
import type { Channel, WakeUps } from './wake.ts'

/**
 * Waits for rows to change. All waiters in a process share one query, which runs on a timer and within milliseconds of
 * a wake-up from the process that changed something. New waiters share a first query of their own, because their rows
 * may have changed already. So a new waiter does not cause a thousand others to be read again.
 */
type Waiters<Sought, Found> = {
  /** Resolves to the result, or to null after the timeout, when the caller disconnects, or when the process stops. */
  wait(sought: Sought, timeoutMs: number, gone?: AbortSignal): Promise<Found | null>
  /** Releases all waiters, and from now on every new one at once. */
  close(): void
}

const newWaitersMax = 200
const newQueriesMax = 2

export function openWaiters<Sought, Found>(
  wakeUps: WakeUps,
  options: {
    readonly channel: Channel
    readonly everyMs: number
    readonly spacingMs?: number
    readonly now: () => Date
    /** Returns the result for each waiter, in the same order; null for those that keep waiting. */
    readonly find: (sought: readonly Sought[]) => Promise<readonly (Found | null)[]>
    /** Called if the shared query failed. It is repeated on the next wake-up or after `everyMs`. */
    readonly onError: (error: unknown) => void
  },
): Waiters<Sought, Found> {
  type Waiter = { readonly sought: Sought; readonly end: (found: Found | null) => void }
  const waiters = new Set<Waiter>()
  let isClosed = false

  const find = (asked: readonly Waiter[]) => options.find(asked.map(({ sought }) => sought))
  const poll = openPoll(wakeUps, {
    ...options,
    isNeeded: () => waiters.size > 0,
    async poll() {
      // Waiters that join during this query are not part of it.
      const asked = [...waiters]
      const found = await find(asked)
      for (const [place, waiter] of asked.entries()) endIfFound(waiter, found[place] ?? null)
    },
  })
  const findNew = openBatcher<Waiter, Found | null>({
    run: find,
    runAlone: async (waiter) => (await find([waiter]))[0] ?? null,
    itemsMax: newWaitersMax,
    inFlightMax: newQueriesMax,
  })

  function endIfFound(waiter: Waiter, found: Found | null): void {
    if (found !== null) waiter.end(found)
  }

  return {
    wait(sought, timeoutMs, gone) {
      if (isClosed || gone?.aborted) return Promise.resolve(null)
      poll.begin()
      return new Promise((resolve) => {
        const giveUp = () => waiter.end(null)
        const timeout = setTimeout(giveUp, timeoutMs)
        gone?.addEventListener('abort', giveUp, { once: true })
        const waiter: Waiter = {
          sought,
          end(found) {
            clearTimeout(timeout)
            gone?.removeEventListener('abort', giveUp)
            waiters.delete(waiter)
            resolve(found)
          },
        }
        waiters.add(waiter)
        // If this query fails, the next shared one finds the change.
        findNew(waiter).then(
          (found) => endIfFound(waiter, found),
          () => {},
        )
      })
    },
    close() {
      isClosed = true
      poll.close()
      for (const waiter of [...waiters]) waiter.end(null)
    },
  }
}
