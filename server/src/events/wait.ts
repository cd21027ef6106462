import type { Context } from '../context.ts'
import { openWaiters } from '../database/waiters.ts'
import type { StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { readLastSequences } from './rows.ts'

/**
 * Waits for a store's log to grow. A caller takes a place before it waits and keeps it to the end, so that it learns at
 * the start whether it can wait.
 */
export type EventWaits = {
  /** Takes a place. Throws a Problem if none is free. */
  enter(storeId: StoreId): Place
  /** Releases all waiters, now and from now on, because the process is about to stop. */
  close(): void
  readonly isClosed: boolean
}

type Place = {
  /** Resolves when the log grows beyond `after`, when the time is up, or when the caller disconnects. */
  until(after: bigint, timeoutMs: number, gone: AbortSignal): Promise<void>
  leave(): void
}

const pollMs = 500
/** A waiting request costs a socket and a few hundred bytes. */
const placesMax = 10_000
/** So that one store cannot take all the places. */
const placesPerStoreMax = 100
/** A long poll frees its place after at most 30 s, so one of a hundred places is free again within about this time. */
const retryAfterSeconds = 5

export function openEventWaits(ctx: Context): EventWaits {
  const taken = new Map<StoreId, number>()
  let places = 0
  let isClosed = false
  const waiters = openWaiters<{ readonly storeId: StoreId; readonly after: bigint }, true>(ctx.db.wakeUps, {
    channel: 'events',
    everyMs: pollMs,
    now: ctx.now,
    async find(waiting) {
      const ends = await readLastSequences(ctx.db, [...new Set(waiting.map(({ storeId }) => storeId))])
      return waiting.map(({ storeId, after }) => (ends.get(storeId) ?? 0n) > after || null)
    },
    // If the failure lasts, the callers notice it when they read the log themselves.
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not check event logs for new events; retrying within 500 ms'),
  })

  return {
    get isClosed() {
      return isClosed
    },
    enter(storeId) {
      const mine = taken.get(storeId) ?? 0
      if (places >= placesMax || mine >= placesPerStoreMax) {
        throw new Problem(
          'rate_limited',
          mine >= placesPerStoreMax
            ? `At most ${placesPerStoreMax} requests of a store can wait for events at once.`
            : 'Too many requests are waiting for events. Read the log without waiting instead.',
          { retryAfterSeconds },
        )
      }
      taken.set(storeId, mine + 1)
      places++
      let isLeft = false
      return {
        async until(after, timeoutMs, gone) {
          await waiters.wait({ storeId, after }, timeoutMs, gone)
        },
        leave() {
          if (isLeft) return
          isLeft = true
          places--
          const left = (taken.get(storeId) ?? 1) - 1
          if (left === 0) taken.delete(storeId)
          else taken.set(storeId, left)
        },
      }
    },
    close() {
      isClosed = true
      waiters.close()
    },
  }
}
