import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../context.ts'

/**
 * Slows down senders of bad payments. Every refused payment costs us a simulation, and one that is refused after its
 * claim has also kept its checkout busy. The first few are free, because anyone can make a mistake; after that, each
 * failure doubles the wait before the next payment, per payer and per IP address. Nobody is locked out: a store's
 * buyers may share both.
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
/** Failures are forgotten at a rate of one per this interval. */
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
