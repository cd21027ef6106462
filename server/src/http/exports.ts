import { Readable } from 'node:stream'
import type { StoreId } from '../ids.ts'

/**
 * Per process: an export reads one page after another, so each keeps a connection to the database busy. By default
 * transactions have eight; half of them are left to screens.
 */
const runningMax = 4
/** So that one store's members and keys do not take all of them. */
const runningPerStoreMax = 2
/** Far longer than the longest takes over a slow line. A client that does not read on would keep its place for ever. */
const minutesMax = 10

/** Who exports: a member or a key. */
type By = { readonly id: string; readonly storeId: StoreId }

/** Exports of a process, one of each member or key at a time. */
export type Exports = {
  /** Null if there are too many. A place is free once its stream is closed, for whatever reason. */
  start(by: By, text: AsyncIterable<string>): Readable | null
}

export function openExports(): Exports {
  const running = new Map<string, StoreId>()
  return {
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
