import type { FastifyInstance } from 'fastify'
import type { Context } from '../../../context.ts'
import { openPoll } from '../../../database/poll.ts'
import { readLastSequences } from '../../../events/rows.ts'
import type { StoreId } from '../../../ids.ts'
import { Problem } from '../../../problems.ts'
import { openStreams, type Stream } from '../../streams.ts'
import { storeOf } from '../visitor.ts'

/**
 * Tells open screens of a store that its event log has grown. The screen's script then loads the screen again and shows
 * the differences. All screens of a process share one query of the stores' counters. Screens are told at a bounded pace:
 * each costs a request, so a store with many members and many payments would otherwise keep the process busy. Stores take
 * turns. A screen that waits for its turn is told once, however much happened. Only a number is sent here; what a member
 * may see is decided when the screen is loaded.
 */
type Screen = { readonly stream: Stream; told: bigint }

/**
 * Screens told per second and process: a handful are told at once, 500 are told once a minute. Reloading a screen costs
 * about 15 ms of processor time, so all of them together cost an eighth of a core.
 */
const tellsPerSecond = 8
const tellEveryMs = 1_000
const lookEveryMs = 500
/** Without wake-ups everything still works, only more slowly. */
const lookAnywayMs = 2_000
/** More than a large team with several tabs each, and few enough that one store cannot take all sockets. */
const screensPerStoreMax = 1_000
const retryMs = 3_000
const unreadBytesMax = 4_096

export function mountLive(scope: FastifyInstance, ctx: Context): void {
  const open = new Map<StoreId, Set<Screen>>()
  const newest = new Map<StoreId, bigint>()
  const due = openTurns<StoreId, Screen, bigint>()
  const streams = openStreams(ctx.now, unreadBytesMax, retryMs)
  let timer: NodeJS.Timeout | null = null

  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'events',
    everyMs: lookAnywayMs,
    spacingMs: lookEveryMs,
    now: ctx.now,
    isNeeded: () => open.size > 0,
    async poll() {
      for (const [storeId, last] of await readLastSequences(ctx.db, [...open.keys()])) note(storeId, last)
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read which stores have news for open screens; trying again'),
  })

  function note(storeId: StoreId, last: bigint): void {
    if (newest.get(storeId) === last) return
    newest.set(storeId, last)
    for (const screen of open.get(storeId) ?? []) if (screen.told !== last) due.put(storeId, screen, last)
    if (timer === null) tell()
  }

  function tell(): void {
    timer = null
    // Also after the last of them: the next ones wait until this second is over.
    if (!due.isEmpty()) timer = setTimeout(tell, tellEveryMs).unref()
    for (const [screen, last] of due.take((tellsPerSecond * tellEveryMs) / 1_000)) {
      screen.told = last
      screen.stream.write(`data: ${last}\n\n`)
    }
  }

  scope.addHook('preClose', async () => {
    shared.close()
    if (timer) clearTimeout(timer)
    streams.close()
  })

  const options = { config: { right: 'payments:read' }, exposeHeadRoute: false } as const
  scope.get('/stores/:storeId/live', options, (request, reply) => {
    const { storeId, sequence } = storeOf(request)
    const mine = open.get(storeId) ?? new Set()
    if (mine.size >= screensPerStoreMax)
      throw new Problem('rate_limited', 'Too many screens of this store are open.', { retryAfterSeconds: 60 })
    // Ended streams are opened again by the browser, if the session still counts.
    const stream = streams.open(reply, `data: ${sequence}\n\n`, () => {
      mine.delete(screen)
      due.remove(storeId, screen)
      if (mine.size === 0 && open.get(storeId) === mine) {
        open.delete(storeId)
        newest.delete(storeId)
      }
    })
    const screen: Screen = { stream, told: sequence }
    open.set(storeId, mine.add(screen))
    // This screen may have missed what the others were told.
    if ((newest.get(storeId) ?? sequence) !== sequence) newest.delete(storeId)
    shared.begin()
    shared.ask()
  })
}

/** What is due for several stores. They take turns, so that a store with much of it does not hold up the others. */
type Turns<Store, Item, Value> = {
  /** What is due already keeps its place, with the new value. */
  put(store: Store, item: Item, value: Value): void
  remove(store: Store, item: Item): void
  /** Takes the next ones, one of each store at a time and of each the oldest first. */
  take(count: number): [Item, Value][]
  isEmpty(): boolean
}

export function openTurns<Store, Item, Value>(): Turns<Store, Item, Value> {
  /** Both in the order in which they are taken. A store without anything due is not in it. */
  const due = new Map<Store, Map<Item, Value>>()

  function remove(store: Store, item: Item): void {
    const items = due.get(store)
    items?.delete(item)
    if (items?.size === 0) due.delete(store)
  }

  function takeNext(): [Item, Value] | null {
    for (const [store, items] of due)
      for (const next of items) {
        // To the end of the queue, if there is more of it.
        due.delete(store)
        due.set(store, items)
        remove(store, next[0])
        return next
      }
    return null
  }

  return {
    put(store, item, value) {
      const items = due.get(store) ?? new Map<Item, Value>()
      due.set(store, items.set(item, value))
    },
    remove,
    take(count) {
      const taken: [Item, Value][] = []
      for (let next = takeNext(); next !== null; next = takeNext()) {
        taken.push(next)
        if (taken.length >= count) break
      }
      return taken
    },
    isEmpty: () => due.size === 0,
  }
}
