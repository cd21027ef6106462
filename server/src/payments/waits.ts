import type { Context } from '../context.ts'
import { openBatcher } from '../database/batch.ts'
import { openPoll } from '../database/poll.ts'
import { findChanged } from './rows.ts'

const lookEveryMs = 500
const newWaitersMax = 200

/**
 * Waits for checkouts to change. All waiters in a process share one listener and one query. The query runs on a wake-up
 * from the process that credited a payment, within milliseconds, or on a timer.
 */
export type Outcomes = {
  /** Resolves when the checkout's version differs from this one, or after the timeout. */
  waitForChange(checkoutId: string, version: number, timeoutMs: number): Promise<void>
  close(): void
}

type Waiter = { readonly checkoutId: string; readonly version: number; readonly done: () => void }

export function openOutcomes(ctx: Context): Outcomes {
  const waiters = new Set<Waiter>()
  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookEveryMs,
    now: ctx.now,
    isNeeded: () => waiters.size > 0,
    async poll() {
      // Waiters that join during this query are not part of it; each checks for itself when it joins.
      const asked = [...waiters]
      for (const place of await findChanged(ctx.db, asked)) asked[place]?.done()
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read which checkouts changed; trying again within 500 ms'),
  })

  /** New waiters check only their own checkouts, so that a thousand others need not be read again. */
  const hasChanged = openBatcher<Waiter, boolean>({
    run: async (asked) => {
      const changed = await findChanged(ctx.db, asked)
      return asked.map((_, place) => changed.has(place))
    },
    runAlone: async (waiter) => (await findChanged(ctx.db, [waiter])).size > 0,
    itemsMax: newWaitersMax,
    inFlightMax: 2,
  })

  return {
    waitForChange(checkoutId, version, timeoutMs) {
      shared.begin()
      return new Promise((resolve) => {
        const timeout = setTimeout(() => waiter.done(), timeoutMs)
        const waiter: Waiter = {
          checkoutId,
          version,
          done() {
            clearTimeout(timeout)
            waiters.delete(waiter)
            resolve()
          },
        }
        waiters.add(waiter)
        // The checkout may have changed before we began to wait. If this check fails, the next shared query finds the
        // change.
        hasChanged(waiter).then(
          (isChanged) => isChanged && waiter.done(),
          () => {},
        )
      })
    },
    close() {
      shared.close()
      for (const waiter of [...waiters]) waiter.done()
    },
  }
}
