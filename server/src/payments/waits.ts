import type { Context } from '../context.ts'
import { openBatcher } from '../database/batch.ts'
import { openLook } from '../database/look.ts'
import { findChanged } from './rows.ts'

const lookEveryMs = 500
const newWaitersMax = 200

/**
 * Waits for checkouts to change. All who wait in a process share one listener and one query; a look is asked for by a
 * wake-up from the process that credited, within milliseconds, or by the clock.
 */
export type Outcomes = {
  /** Resolves when the checkout has another version than this, or after the time. */
  waitForChange(checkoutId: string, version: number, timeoutMs: number): Promise<void>
  close(): void
}

type Waiter = { readonly checkoutId: string; readonly version: number; readonly done: () => void }

export function openOutcomes(ctx: Context): Outcomes {
  const waiters = new Set<Waiter>()
  const shared = openLook(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookEveryMs,
    now: ctx.now,
    isNeeded: () => waiters.size > 0,
    async look() {
      // Whoever starts waiting meanwhile is not part of this query, and checks for itself.
      const asked = [...waiters]
      for (const place of await findChanged(ctx.db, asked)) asked[place]?.done()
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read which checkouts changed; trying again within 500 ms'),
  })

  /** Whoever starts waiting checks for itself alone, so that a thousand others need not be read again. */
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
        // It may have changed before we began to wait. If that cannot be read, the next look finds it.
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
