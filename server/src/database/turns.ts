import { setTimeout as pause } from 'node:timers/promises'
import { Problem } from '../problems.ts'
import type { Database } from './db.ts'

/**
 * Limits how much work of one name (a store, a member) is under way at once. The rest waits here, before it takes a
 * connection. A store that asks for a hundred changes at once would otherwise hold all connections while they wait for
 * each other's locks, and every other store would wait for the last of them. Each process counts for itself.
 */
export type Turns = {
  /** Does the work when it is its turn, which ends with the work, or before if the work says so. */
  take<Result>(name: string, work: (end: () => void) => Promise<Result>): Promise<Result>
  /** The same database, in which every transaction of `name` waits for its turn. */
  of(db: Database, name: string): Database
  /** What is under way, and what waits. */
  count(name: string): { readonly underWay: number; readonly waiting: number }
}

/** Hears of what becomes of turns, for metrics and the log. */
export type TurnsWatch = {
  moved(state: 'underWay' | 'waiting', by: 1 | -1): void
  refused(name: string): void
}

type Line = { underWay: number; readonly waiting: (() => void)[] }

/**
 * A turn lasts for `turnMs` at least, even if its work is done before: so `atOnce` turns per `turnMs` begin at most,
 * however many wait, and what one name takes of the processor is bounded. The caller gets the answer as soon as the work
 * is done.
 */
export function openTurns(atOnce: number, waitingMax: number, watch?: TurnsWatch, turnMs = 0): Turns {
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
    // A finished turn is handed to the first in line, so that no later caller takes it.
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

  const take: Turns['take'] = async (name, work) => {
    await begin(name)
    const isLongEnough = turnMs < 1 ? null : pause(turnMs, undefined, { ref: false })
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
