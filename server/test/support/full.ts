import { randomInt } from 'node:crypto'

/** The seed for generated input: SEED, or a random one. */
const seed = Number.parseInt(process.env.SEED ?? `${randomInt(1, 2 ** 31)}`, 10)

/**
 * How often a property is tried: some times on every commit, all of them with FULL=1, or as often as fits into MINUTES.
 * The caller reports how much was done.
 */
export function runs(some: number, all: number) {
  if (process.env.FULL !== '1') return { seed, numRuns: some }
  const minutes = Number.parseInt(process.env.MINUTES ?? '600', 10)
  return {
    seed,
    numRuns: all,
    interruptAfterTimeLimit: minutes * 60_000,
    markInterruptAsFailure: false,
  }
}

/** Counts what was tried and reports it with its rate. */
export function openCount(what: string) {
  const startedAt = performance.now()
  const counts: Record<string, number> = { [what]: 0 }
  return {
    counts,
    add(kind: string = what, more = 1): void {
      counts[kind] = (counts[kind] ?? 0) + more
    },
    say(t: { diagnostic(text: string): void }): void {
      const seconds = Math.round(performance.now() - startedAt) / 1_000
      const perSecond = Math.round((counts[what] ?? 0) / seconds)
      t.diagnostic(JSON.stringify({ ...counts, seconds, perSecond, seed }))
    },
  }
}
