import type { TestContext } from 'node:test'

/**
 * Numbers from 0: a few on every commit, all of them with FULL=1, or as many as fit into MINUTES. A full run prints how
 * many it did.
 */
export function* rounds(t: TestContext, what: string, some: number, all: number): Generator<number> {
  const isFull = process.env.FULL === '1'
  const minutes = Number.parseInt(process.env.MINUTES ?? '600', 10)
  const end = Date.now() + minutes * 60_000
  let done = 0
  while (done < some || (isFull && done < all && Date.now() < end)) yield done++
  if (isFull) t.diagnostic(`${what}: ${done}`)
}

/**
 * Opens one thing for some rounds, then a new one: rounds that mine or jump move their chain's clock ahead of ours, and
 * authorizations are good for five minutes of both.
 */
export function renewing<Thing extends { end(): Promise<void> }>(
  everyRounds: number,
  open: () => Promise<Thing>,
): (round: number) => Promise<Thing> {
  let current: Thing | null = null
  return async (round) => {
    if (current && round % everyRounds !== 0) return current
    await current?.end()
    current = await open()
    return current
  }
}
