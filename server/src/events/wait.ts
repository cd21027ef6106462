import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import { openLook } from '../database/look.ts'
import type { StoreId } from '../ids.ts'
import { lastSequences } from './rows.ts'

/**
 * Waiting for a store's log to grow. All who wait in this process share one look: after a wake-up, and twice a second in
 * case one was lost, the counters of the stores that somebody waits for are read in one statement.
 */
export type EventWaits = {
  /** Resolves when the store's log reaches beyond `after`, when the time is up, or when the caller goes away. */
  until(storeId: StoreId, after: bigint, timeoutMs: number, gone: AbortSignal): Promise<void>
  /** Lets everyone go, now and from now on: the process is about to stop. */
  close(): void
  readonly isClosed: boolean
}

const pollMs = 500
/** A waiting request costs a socket and a few hundred bytes. Beyond this nobody waits, which is always allowed. */
const waitersMax = 10_000
/** So that one store cannot use up the places of all. */
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
    // A lasting failure reaches everyone who waits: they read the log themselves afterwards.
    onError: (error) =>
      ctx.log.warn(
        { err: error },
        'could not read whether event logs have grown; trying again within 500 ms',
      ),
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
      // What was numbered between the caller's read and this moment has sent its wake-up already.
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
