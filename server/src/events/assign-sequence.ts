import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { assignSequences, lockCounters, storesWithUnsequenced } from './rows.ts'

/**
 * Gives committed events their place in their store's log: 1, 2, 3 … without gaps.
 *
 * Writers insert events without a number, so a busy store does not serialise its own writes. Here, one process at a
 * time per store holds the store's counter row, and only then looks for events without a number: the look must be a
 * second statement, because a single one would number by a snapshot taken before it had the lock. Numbers follow
 * `position`, which was drawn under the checkout's row lock, so a checkout's versions are always in order. A crash
 * leaves events without a number; the next run finds them.
 */
const storesPerRun = 200
/** Bounds how long one store's backlog keeps the others waiting. */
const eventsPerStore = 1_000

/** Where the last run stopped. The next goes on from there, and so no store waits for all that have lower ids. */
export type Turn = { after: string }

/** Numbers what is waiting now, and makes the deliveries. Returns how many events were numbered. */
export async function assignWaitingSequences(ctx: Context, turn: Turn = { after: '' }): Promise<number> {
  const behind = await storesWithUnsequenced(ctx.db, turn.after, storesPerRun)
  const waiting =
    behind.length > 0 || turn.after === '' ? behind : await storesWithUnsequenced(ctx.db, '', storesPerRun)
  turn.after = (waiting.length === storesPerRun && waiting.at(-1)) || ''
  if (waiting.length === 0) return 0
  const assigned = await ctx.db.transaction(async (tx) => {
    const locked = await lockCounters(tx, waiting)
    if (locked.length === 0) return 0
    const numbered = await assignSequences(tx, locked, eventsPerStore)
    crashPoint(ctx, 'sequence-before-commit')
    return numbered
  })
  if (assigned > 0) {
    crashPoint(ctx, 'sequence-after-commit')
    ctx.db.wakeUps.send('events')
  }
  ctx.metrics.eventsSequenced.inc(assigned)
  return assigned
}
