import type { Context } from '../context.ts'
import { openWaiters } from '../database/waiters.ts'
import { findChanged } from './rows.ts'

const pollMs = 500

/** Waits for checkouts to change. */
export type Outcomes = {
  /** Resolves when the checkout's version differs from this one, or after the timeout. */
  waitForChange(checkoutId: string, version: number, timeoutMs: number): Promise<void>
  close(): void
}

export function openOutcomes(ctx: Context): Outcomes {
  const waiters = openWaiters<{ readonly checkoutId: string; readonly version: number }, true>(
    ctx.db.wakeUps,
    {
      channel: 'outcomes',
      everyMs: pollMs,
      now: ctx.now,
      async find(waiting) {
        const changed = await findChanged(ctx.db, waiting)
        return waiting.map((_, place) => changed.has(place) || null)
      },
      onError: (error) =>
        ctx.log.warn({ err: error }, 'could not read which checkouts changed; trying again within 500 ms'),
    },
  )
  return {
    async waitForChange(checkoutId, version, timeoutMs) {
      await waiters.wait({ checkoutId, version }, timeoutMs)
    },
    close: waiters.close,
  }
}
