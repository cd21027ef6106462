import { setTimeout as wait } from 'node:timers/promises'
import { patienceMs } from './patience.ts'

/** Waits for a condition, checking every 20 ms, and fails if it is not met in time. */
export async function until(
  what: string,
  condition: () => Promise<boolean>,
  timeoutMs = patienceMs,
): Promise<void> {
  const end = Date.now() + timeoutMs
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${timeoutMs} ms`)
    await wait(20)
  }
}
