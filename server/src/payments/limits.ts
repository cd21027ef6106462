import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'

const retrySecondsMin = 2

/** Refused payers come back over this many seconds, not all at once. */
const retrySpreadSeconds = 6

/**
 * Limits how many payments a process checks, claims and waits for at once. Without a limit, a flood would be claimed
 * faster than it can be settled, and each payment would slow down all others, until none is answered within the
 * promised 25 seconds. A repeated request for a claimed payment needs no place. A refused payment keeps its place only
 * while a node is asked about it, so nobody can use up places without money.
 */
export type Places = {
  /** Takes a place. Throws a Problem if none is free. Returns the function that frees it, which works once. */
  take(): () => void
}

export function openPlaces(max: number): Places {
  let taken = 0
  let refused = 0
  return {
    take() {
      if (taken >= max) {
        throw new Problem(
          'settlement_unavailable',
          'More payments are arriving than can be settled. Nothing was charged. Repeat the same request with the same payment.',
          { retryAfterSeconds: retrySecondsMin + (refused++ % retrySpreadSeconds) },
        )
      }
      taken++
      let isFree = false
      return () => {
        if (isFree) return
        isFree = true
        taken--
      }
    },
  }
}

/**
 * Slows down senders of bad payments. Every refused payment costs us a simulation. If it is refused after its claim, it
 * has also kept its checkout busy. The first few are free, because anyone can make a mistake; after that, each failure
 * doubles the wait before the next payment, per payer and per IP address. Nobody is locked out: a store's buyers may
 * share both.
 */
export type Budgets = {
  noteFailure(payer: string, address: string): void
  /** Returns whether there was anything to wait for. */
  slowDown(payer: string, address: string): Promise<boolean>
}

const freePayerFailures = 3

/** Many people may share one IP address. */
const freeAddressFailures = 20

const waitMsMin = 250

const waitMsMax = 5_000

/** One failure is forgotten per this interval. */
const forgetMs = 60_000

const entriesMax = 100_000

export function openBudgets(ctx: Context): Budgets {
  const failures = new Map<string, { count: number; at: number }>()

  function countOf(key: string, now: number): number {
    const entry = failures.get(key)
    return entry ? Math.max(0, entry.count - (now - entry.at) / forgetMs) : 0
  }

  function add(key: string, now: number): void {
    const count = countOf(key, now) + 1
    failures.delete(key)
    failures.set(key, { count, at: now })
    if (failures.size > entriesMax) failures.delete(failures.keys().next().value as string)
  }

  function waitMs(key: string, free: number, now: number): number {
    const beyond = countOf(key, now) - free
    return beyond < 0 ? 0 : Math.min(waitMsMax, waitMsMin * 2 ** beyond)
  }

  return {
    noteFailure(payer, address) {
      const now = ctx.now().getTime()
      add(`payer ${payer}`, now)
      add(`address ${address}`, now)
    },
    async slowDown(payer, address) {
      const now = ctx.now().getTime()
      const ms = Math.max(
        waitMs(`payer ${payer}`, freePayerFailures, now),
        waitMs(`address ${address}`, freeAddressFailures, now),
      )
      if (ms > 0) await wait(ms)
      return ms > 0
    },
  }
}
