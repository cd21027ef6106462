import { Problem } from '../problems.ts'
import type { Database } from './db.ts'

/**
 * Lets few transactions of one store be under way at once. Those beyond wait here, before they take a connection: a store
 * that asks for a hundred changes at once would otherwise hold all connections while they wait for each other's locks, and
 * every other store would wait for the last of them. Each process counts for itself.
 */
export type Turns = {
  /** The same database, in which every transaction of `name` waits for its turn. What is urgent does not. */
  of(db: Database, name: string, isUrgent: boolean): Database
  /** What is under way, and what waits. */
  count(name: string): { readonly underWay: number; readonly waiting: number }
}

type Line = { underWay: number; readonly waiting: (() => void)[] }

export function openTurns(atOnce: number, waitingMax: number): Turns {
  const lines = new Map<string, Line>()

  async function take(name: string): Promise<void> {
    const line = lines.get(name) ?? { underWay: 0, waiting: [] }
    lines.set(name, line)
    if (line.underWay < atOnce) {
      line.underWay++
      return
    }
    if (line.waiting.length >= waitingMax)
      throw new Problem(
        'rate_limited',
        `${waitingMax} changes of this store are waiting already. This one was not made.`,
        { retryAfterSeconds: 1 },
      )
    // Whoever is done hands its turn over, so that nobody who comes later gets it.
    await new Promise<void>((resolve) => line.waiting.push(resolve))
  }

  function handOver(name: string): void {
    const line = lines.get(name)
    if (!line) return
    const next = line.waiting.shift()
    if (next) next()
    else if (--line.underWay === 0) lines.delete(name)
  }

  return {
    of(db, name, isUrgent) {
      if (isUrgent) return db
      const transaction: Database['transaction'] = async (work) => {
        await take(name)
        try {
          return await db.transaction(work)
        } finally {
          handOver(name)
        }
      }
      return { ...db, transaction }
    },
    count: (name) => {
      const line = lines.get(name)
      return { underWay: line?.underWay ?? 0, waiting: line?.waiting.length ?? 0 }
    },
  }
}
