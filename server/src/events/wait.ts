import type { Context } from '../context.ts'
import { openPoll } from '../database/poll.ts'
import type { StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { lastSequences } from './rows.ts'

/**
 * Waits for a store's log to grow. All waiters in this process share one query: after a wake-up, and twice per second
 * in case one was lost, it reads the counters of all stores that have waiters. Whoever wants to wait takes a place
 * first and keeps it to the end, so that nobody finds out half-way that waiting is not possible.
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
/** A long poll frees its place after at most 30 s, so with a hundred of them one is free within about this time. */
const retryAfterSeconds = 5

type Waiter = { readonly after: bigint; readonly resolve: () => void }

export function openEventWaits(ctx: Context): EventWaits {
  const taken = new Map<StoreId, number>()
  const waiting = new Map<StoreId, Set<Waiter>>()
  let places = 0
  let isClosed = false

  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'events',
    everyMs: pollMs,
    now: ctx.now,
    isNeeded: () => waiting.size > 0,
    async poll() {
      for (const { storeId, last } of await lastSequences(ctx.db, [...waiting.keys()]))
        for (const waiter of waiting.get(storeId) ?? []) if (last > waiter.after) waiter.resolve()
    },
    // If the failure lasts, waiters notice it when they read the log themselves.
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not check event logs for new events; retrying within 500 ms'),
  })

  async function wait(storeId: StoreId, after: bigint, timeoutMs: number, gone: AbortSignal): Promise<void> {
    if (gone.aborted || isClosed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter = { after, resolve }
    const mine = waiting.get(storeId) ?? new Set()
    waiting.set(storeId, mine.add(waiter))
    shared.begin()
    const timeout = setTimeout(resolve, timeoutMs)
    const onGone = () => resolve()
    gone.addEventListener('abort', onGone, { once: true })
    // Events numbered since the caller's read have already sent their wake-up, so check once now.
    shared.ask()
    await promise
    clearTimeout(timeout)
    gone.removeEventListener('abort', onGone)
    mine.delete(waiter)
    if (mine.size === 0 && waiting.get(storeId) === mine) waiting.delete(storeId)
  }

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
        until: (after, timeoutMs, gone) => wait(storeId, after, timeoutMs, gone),
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
      shared.close()
      for (const mine of waiting.values()) for (const { resolve } of mine) resolve()
    },
  }
}
