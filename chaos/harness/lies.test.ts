import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareTimes, type Phase } from './lies.ts'
import type { Stand } from './stand.ts'

const compare = (times: readonly (readonly [begunAt: number, endedAt: number])[], phases: readonly Phase[]) =>
  compareTimes({
    load: { paid: times.map(([begunAt, endedAt]) => ({ begunAt, endedAt })) },
    phases,
  } as unknown as Stand)
const phases = [
  { isQuiet: false, begunAt: 0, endedAt: 40_000 },
  { isQuiet: true, begunAt: 40_000, endedAt: 66_000 },
  { isQuiet: false, begunAt: 66_000, endedAt: 100_000 },
]

test('a payment counts where it began, however long it took', () => {
  const { lied, quiet } = compare(
    [
      [39_000, 55_000],
      [50_000, 80_000],
    ],
    phases,
  )
  assert.deepEqual(lied, { count: 1, p99Ms: 16_000 })
  assert.deepEqual(quiet, { count: 1, p99Ms: 30_000 })
})

test('a payment that begins right after the last lie, or shortly before the next, does not count', () => {
  const { lied, quiet } = compare(
    [
      [41_000, 42_000],
      [44_999, 46_000],
      [53_000, 54_000],
      [65_000, 66_000],
    ],
    phases,
  )
  assert.equal(lied.count + quiet.count, 0)
})
