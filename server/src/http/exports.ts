import { Readable } from 'node:stream'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { openFairQueue } from '../database/fair-queue.ts'
import type { StoreId } from '../ids.ts'

/**
 * Files of a process. One whose reader is slow holds its place, up to a megabyte and no connection; 16 of them are a
 * tenth of what a process takes.
 */
const runningMax = 16
/** An eighth, so that neither one store's members and keys nor those of a few stores take all places. */
const runningPerStoreMax = 2
/**
 * Statements at once. Each keeps a connection to the database busy for some milliseconds, and others share it.
 * By default there are eight such connections; half of them are left to others.
 */
const readingMax = 4
/** Far longer than the longest takes over a slow line. A client that does not read on would keep its place for ever. */
const minutesMax = 10

/** Who exports: a member or a key. */
type By = { readonly id: string; readonly storeId: StoreId }

/** Exports of a process, one of each member or key at a time. */
export type Exports = {
  /** The same context, whose statements wait for those of other exports. */
  inTurn(ctx: Context): Context
  /** Null if there are too many. A place is free once its stream is closed, for whatever reason. */
  start(by: By, text: AsyncIterable<string>): Readable | null
}

export function openExports(): Exports {
  const running = new Map<string, StoreId>()
  const reads = openFairQueue(readingMax, Number.POSITIVE_INFINITY)
  return {
    inTurn(ctx) {
      const query: Database['query'] = (text, values) =>
        reads.take('exports', () => ctx.db.query(text, values))
      return { ...ctx, db: { ...ctx.db, query } }
    },
    start({ id, storeId }, text) {
      const ofStore = [...running.values()].filter((each) => each === storeId).length
      if (running.has(id) || running.size >= runningMax || ofStore >= runningPerStoreMax) return null
      const stream = Readable.from(text)
      const timer = setTimeout(() => stream.destroy(), minutesMax * 60_000).unref()
      running.set(id, storeId)
      return stream.once('close', () => {
        clearTimeout(timer)
        running.delete(id)
      })
    },
  }
}
