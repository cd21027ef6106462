import { openBatcher } from './batch.ts'
import { openPoll } from './poll.ts'
import type { Channel, WakeUps } from './wake.ts'

/**
 * Waits for rows to change. All who wait in a process share one query, which runs on a wake-up from the process that
 * changed something, within milliseconds, or on a timer. Those who have just begun to wait share another query: the rows
 * may have changed before they began, and a thousand others need not be read again for them.
 */
type Waiters<Sought, Found> = {
  /** Resolves to what was found; null after the timeout, if the caller disconnects, or if the process is to stop. */
  wait(sought: Sought, timeoutMs: number, gone?: AbortSignal): Promise<Found | null>
  /** Releases all who wait, now and from now on. */
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
    /** Returns what was found for each, in the same order; null for those that must go on waiting. */
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
      // Those who join during this query are not part of it.
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
