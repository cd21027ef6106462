import { setTimeout as pause } from 'node:timers/promises'
import { Problem } from '../problems.ts'
import type { Database } from './db.ts'

/**
 * Limits how much work runs at once for one name (a store or a member). The rest waits here, before it takes a
 * connection. Otherwise a store that requests a hundred changes at once would hold all connections while the changes
 * wait for each other's locks, and every other store would have to wait for them. Each process counts separately.
 */
export type FairQueue = {
  /** Runs the work as soon as a place is free. The place is free again after the work, or when the work calls `end`. */
  take<Result>(name: string, work: (end: () => void) => Promise<Result>): Promise<Result>
  /** Wraps a database so that every transaction of `name` waits for a place. */
  of(db: Database, name: string): Database
  /** How many pieces of work run, and how many wait. */
  count(name: string): { readonly underWay: number; readonly waiting: number }
}

/** Called on changes, for metrics and the log. */
export type QueueWatch = {
  moved(state: 'underWay' | 'waiting', by: 1 | -1): void
  refused(name: string): void
}

type Line = { underWay: number; readonly waiting: (() => void)[] }

/**
 * A place stays taken for at least `placeMs`, even if its work is done sooner. So at most `atOnce` pieces of work start
 * per `placeMs`, which bounds one name's share of the processor. The caller gets the answer as soon as the work is
 * done.
 */
export function openFairQueue(
  atOnce: number,
  waitingMax: number,
  watch?: QueueWatch,
  placeMs = 0,
): FairQueue {
  const lines = new Map<string, Line>()

  async function begin(name: string): Promise<void> {
    const line = lines.get(name) ?? { underWay: 0, waiting: [] }
    lines.set(name, line)
    if (line.underWay < atOnce) {
      line.underWay++
      watch?.moved('underWay', 1)
      return
    }
    if (line.waiting.length >= waitingMax) {
      watch?.refused(name)
      throw new Problem(
        'rate_limited',
        `${waitingMax} requests of this store are waiting already. Nothing was done for this one.`,
        { retryAfterSeconds: 1 },
      )
    }
    watch?.moved('waiting', 1)
    // A free place is handed to the first in line, so that no later caller takes it.
    await new Promise<void>((resolve) => line.waiting.push(resolve))
    watch?.moved('waiting', -1)
  }

  function handOver(name: string): void {
    const line = lines.get(name)
    if (!line) return
    const next = line.waiting.shift()
    if (next) {
      next()
      return
    }
    watch?.moved('underWay', -1)
    if (--line.underWay === 0) lines.delete(name)
  }

  const take: FairQueue['take'] = async (name, work) => {
    await begin(name)
    const isLongEnough = placeMs < 1 ? null : pause(placeMs, undefined, { ref: false })
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      if (isLongEnough) void isLongEnough.then(() => handOver(name))
      else handOver(name)
    }
    try {
      return await work(end)
    } finally {
      end()
    }
  }

  return {
    take,
    of: (db, name) => ({ ...db, transaction: (work) => take(name, () => db.transaction(work)) }),
    count: (name) => {
      const line = lines.get(name)
      return { underWay: line?.underWay ?? 0, waiting: line?.waiting.length ?? 0 }
    },
  }
}
