import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { assignSequences, lockCounters, storesWithUnsequenced } from './rows.ts'

/**
 * Gives committed events their place in their store's log: 1, 2, 3 … without gaps.
 *
 * Writers insert events without a number, so that a busy store does not serialise its own writes. Here one process at a
 * time locks a store's counter row, and only then reads the events without a number. That must be a second statement: a
 * single one would use a snapshot taken before it had the lock. Numbers follow `position`, which was drawn under the
 * checkout's row lock, so a checkout's versions are always in order. A crash leaves events without a number; the next
 * run finds them.
 */
const storesPerRun = 200
/** Bounds how long one store's backlog keeps the others waiting. */
const eventsPerStore = 1_000

/** Where the last run stopped. The next one continues there, so that no store waits for all stores with lower ids. */
export type Turn = { after: string }

/** Numbers the waiting events and creates their deliveries. Returns how many events were numbered. */
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
