import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'

/** |t| above this counts as a leak, the usual threshold in leakage tests: by chance it happens once in 150,000 runs. */
export const leakT = 4.5

/**
 * Welch's t between two kinds of work, each done about `times` times in random order. The slowest tenth of the samples is
 * dropped, because the machine was busy with something else.
 */
export async function compareTimes(
  times: number,
  work: (isFirst: boolean) => Promise<unknown>,
): Promise<number> {
  const samples: [number[], number[]] = [[], []]
  const order = randomBytes(times * 2)
  for (const byte of order) {
    const isFirst = byte % 2 === 0
    const before = process.hrtime.bigint()
    await work(isFirst)
    samples[isFirst ? 0 : 1].push(Number(process.hrtime.bigint() - before))
  }
  const all = samples.flat().toSorted((a, b) => a - b)
  const slow = all[Math.floor(all.length * 0.9)] ?? Infinity
  const [a, b] = samples.map((sample) => summarize(sample.filter((ns) => ns <= slow)))
  assert(a && b)
  return (a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count)
}

function summarize(sample: readonly number[]): { count: number; mean: number; variance: number } {
  const count = sample.length
  const mean = sample.reduce((sum, value) => sum + value, 0) / count
  return { count, mean, variance: sample.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1) }
}
