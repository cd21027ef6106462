import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { sqlState } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { assignSequences, lockCounters, storesWithUnsequenced } from './rows.ts'

/**
 * Gives committed events their place in their store's log: 1, 2, 3 … without gaps.
 *
 * Writers insert events without a number, so that a busy store does not serialise its own writes. Here one process at a
 * time locks a store's counter row, and only then reads the events without a number. That must be a second statement: a
 * single one would use a snapshot taken before it had the lock. Numbers follow `position`, which was drawn under the
 * checkout's row lock, so a checkout's versions are always in order. A crash leaves events without a number; the next
 * run finds them.
 *
 * All waiting stores are numbered in one transaction. If PostgreSQL refuses it, each gets one of its own: whoever fails
 * there, because its counter is wrong, say, is held back and tried again later, alone, and delays nobody else.
 */
const storesPerRun = 200
/** Bounds how long one store's backlog keeps the others waiting. */
const eventsPerStore = 1_000
/**
 * How long stores are tried one by one before the next run goes on: if each of them waits for a lock that somebody else
 * holds for long, the others should not wait for all of them.
 */
const aloneMsMax = 5_000
/** A store that failed is tried again after this time, and after twice as long each time that it fails again. */
const heldMsMin = 1_000
const heldMsMax = 60_000
/** Enough to recognise who is concerned. */
const storesLogged = 10

class CounterBehindError extends Error {
  override readonly name = 'CounterBehindError'
  override readonly message = 'The counter is behind the numbers of events that were deleted.'
}

type Held = { readonly until: number; readonly restMs: number }

export type Turn = {
  /** Where the last run stopped. The next one continues there, so that no store waits for all stores with lower ids. */
  after: string
  /** Stores whose events could not be numbered. Each process finds this out for itself. */
  held?: Map<StoreId, Held>
}

/** Numbers the waiting events and creates their deliveries. Returns how many events were numbered. */
export async function assignWaitingSequences(ctx: Context, turn: Turn = { after: '' }): Promise<number> {
  turn.held ??= new Map()
  const { held } = turn
  const behind = await storesWithUnsequenced(ctx.db, turn.after, storesPerRun)
  const waiting =
    behind.length > 0 || turn.after === '' ? behind : await storesWithUnsequenced(ctx.db, '', storesPerRun)
  turn.after = (waiting.length === storesPerRun && waiting.at(-1)) || ''
  const now = ctx.now().getTime()
  const due = [...held].filter(([, { until }]) => until <= now).map(([storeId]) => storeId)
  const together = waiting.filter((storeId) => !held.has(storeId))
  const assigned = (await assignTogether(ctx, together, held)) + (await assignAlone(ctx, due, held))
  if (assigned > 0) {
    crashPoint(ctx, 'sequence-after-commit')
    ctx.db.wakeUps.send('events')
  }
  ctx.metrics.eventsSequenced.inc(assigned)
  ctx.metrics.eventLogsHeld.set(held.size)
  return assigned
}

async function assignTogether(
  ctx: Context,
  storeIds: readonly StoreId[],
  held: Map<StoreId, Held>,
): Promise<number> {
  if (storeIds.length === 0) return 0
  try {
    return await assign(ctx, storeIds)
  } catch (error) {
    if (!isRefusal(error)) throw error
    return await assignAlone(ctx, storeIds, held)
  }
}

/** Numbers the events of each store in a transaction of its own, and holds back the stores for which that fails. */
async function assignAlone(
  ctx: Context,
  storeIds: readonly StoreId[],
  held: Map<StoreId, Held>,
): Promise<number> {
  const end = ctx.now().getTime() + aloneMsMax
  const failed: { readonly storeId: StoreId; readonly error: unknown }[] = []
  let assigned = 0
  for (const storeId of storeIds) {
    if (ctx.now().getTime() > end) break
    try {
      assigned += await assign(ctx, [storeId])
      if (held.delete(storeId)) ctx.log.info({ storeId }, 'the events of a store are numbered again')
    } catch (error) {
      if (!isRefusal(error)) throw error
      failed.push({ storeId, error })
      const before = held.get(storeId)?.restMs ?? 0
      const restMs = Math.min(Math.max(2 * before, heldMsMin), heldMsMax)
      held.set(storeId, { until: ctx.now().getTime() + restMs, restMs })
    }
  }
  const [first] = failed
  if (first)
    ctx.log.error(
      {
        stores: failed.length,
        storeIds: failed.slice(0, storesLogged).map(({ storeId }) => storeId),
        err: first.error,
      },
      'the events of some stores cannot be numbered, so they get no events and no webhooks; all other stores go on: run doctor',
    )
  return assigned
}

/** Whether the transaction was refused, rather than lost together with its connection. */
function isRefusal(error: unknown): boolean {
  return sqlState(error) !== undefined || error instanceof CounterBehindError
}

async function assign(ctx: Context, storeIds: readonly StoreId[]): Promise<number> {
  return await ctx.db.transaction(async (tx) => {
    const locked = await lockCounters(tx, storeIds)
    if (locked.length === 0) return 0
    if (locked.some(({ isBehindDeleted }) => isBehindDeleted)) throw new CounterBehindError()
    const numbered = await assignSequences(
      tx,
      locked.map(({ storeId }) => storeId),
      eventsPerStore,
    )
    crashPoint(ctx, 'sequence-before-commit')
    return numbered
  })
}
