import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import { openLook } from '../database/look.ts'
import type { StoreId } from '../ids.ts'
import { lastSequences } from './rows.ts'

/**
 * Waits for a store's log to grow. All waiters in this process share one query: after a wake-up, and twice per second
 * in case one was lost, it reads the counters of all stores that have waiters.
 */
export type EventWaits = {
  /** Resolves when the log grows beyond `after`, when the time is up, or when the caller disconnects. */
  until(storeId: StoreId, after: bigint, timeoutMs: number, gone: AbortSignal): Promise<void>
  /** Releases all waiters, now and from now on, because the process is about to stop. */
  close(): void
  readonly isClosed: boolean
}

const pollMs = 500
/**
 * A waiting request costs a socket and a few hundred bytes. Beyond this number requests are answered at once, which the
 * API always allows.
 */
const waitersMax = 10_000
/** So that one store cannot take all the places. */
const waitersPerStoreMax = 100

type Waiter = { readonly after: bigint; readonly resolve: () => void }

export function openEventWaits(ctx: Context): EventWaits {
  const waiting = new Map<StoreId, Set<Waiter>>()
  let waiters = 0
  let isClosed = false

  const shared = openLook(ctx.db.wakeUps, {
    channel: 'events',
    everyMs: pollMs,
    now: ctx.now,
    isNeeded: () => waiters > 0,
    async look() {
      for (const { storeId, last } of await lastSequences(ctx.db, [...waiting.keys()]))
        for (const waiter of waiting.get(storeId) ?? []) if (last > waiter.after) waiter.resolve()
    },
    // If the failure lasts, waiters notice it when they read the log themselves.
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not check event logs for new events; retrying within 500 ms'),
  })

  function enter(storeId: StoreId, waiter: Waiter): boolean {
    const mine = waiting.get(storeId) ?? new Set()
    if (isClosed || waiters >= waitersMax || mine.size >= waitersPerStoreMax) return false
    waiting.set(storeId, mine.add(waiter))
    waiters++
    shared.begin()
    return true
  }

  function leave(storeId: StoreId, waiter: Waiter): void {
    const mine = waiting.get(storeId)
    assert(mine)
    mine.delete(waiter)
    if (mine.size === 0) waiting.delete(storeId)
    waiters--
  }

  return {
    get isClosed() {
      return isClosed
    },
    async until(storeId, after, timeoutMs, gone) {
      if (gone.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const waiter = { after, resolve }
      if (!enter(storeId, waiter)) return
      const timeout = setTimeout(resolve, timeoutMs)
      gone.addEventListener('abort', () => resolve(), { once: true })
      // Events numbered since the caller's read have already sent their wake-up, so check once now.
      shared.ask()
      await promise
      clearTimeout(timeout)
      leave(storeId, waiter)
    },
    close() {
      isClosed = true
      shared.close()
      for (const mine of waiting.values()) for (const { resolve } of mine) resolve()
    },
  }
}
