import type { Context } from '../context.ts'
import { groupCommit } from '../database/db.ts'
import { findChanged } from './rows.ts'

/** Everything works without wake-ups, only slower: this is how often those who wait look by themselves. */
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
  let isLooking = false
  let isAskedAgain = false

  async function look(): Promise<void> {
    if (waiters.size === 0) return
    if (isLooking) {
      isAskedAgain = true
      return
    }
    isLooking = true
    try {
      // Who begins to wait meanwhile was not asked for, and has its own look.
      const asked = [...waiters]
      for (const place of await findChanged(ctx.db, asked)) asked[place]?.done()
    } catch (error) {
      ctx.log.warn({ err: error }, 'outcomes could not be read and will be tried again')
    } finally {
      isLooking = false
      if (isAskedAgain) {
        isAskedAgain = false
        void look()
      }
    }
  }

  /** Who begins to wait asks for itself alone: a thousand who wait already need not be asked about again. */
  const hasChanged = groupCommit<Waiter, boolean>({
    write: async (asked) => {
      const changed = await findChanged(ctx.db, asked)
      return asked.map((_, place) => changed.has(place))
    },
    writeAgain: async (waiter) => (await findChanged(ctx.db, [waiter])).size > 0,
    batchRowsMax: newWaitersMax,
    batchesInFlightMax: 2,
  })

  let stop: (() => void) | null = null
  const timer = setInterval(() => void look(), lookEveryMs)
  timer.unref()

  return {
    waitForChange(checkoutId, version, timeoutMs) {
      stop ??= ctx.db.wakeUps.listen('outcomes', () => void look())
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
      clearInterval(timer)
      stop?.()
      for (const waiter of [...waiters]) waiter.done()
    },
  }
}
