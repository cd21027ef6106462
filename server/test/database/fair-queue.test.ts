import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFairQueue } from '../../src/database/fair-queue.ts'
import { Problem } from '../../src/problems.ts'
import { freshDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const { db } = await freshDatabase()

/** Transactions that go on until they are told to end, in the order in which they began. */
function openWork() {
  const begun: string[] = []
  const ends: (() => void)[] = []
  return {
    begun,
    work: (name: string) => async () => {
      begun.push(name)
      await new Promise<void>((resolve) => ends.push(resolve))
    },
    untilBegun: (...names: string[]) =>
      until(`${names} have begun`, async () => {
        assert(begun.length <= names.length, String(begun))
        return begun.length === names.length
      }).then(() => assert.deepEqual([...begun].sort(), [...names].sort())),
    end: () => ends.shift()?.(),
  }
}

test('of one name at most so many are under way; the others wait in their order, and another name does not wait', async () => {
  const { begun, work, untilBegun, end } = openWork()
  const queue = openFairQueue(2, 10)
  const all = ['a1', 'a2', 'a3', 'a4'].map((each) => queue.of(db, 'a').transaction(work(each)))
  await untilBegun('a1', 'a2')
  assert.deepEqual(queue.count('a'), { underWay: 2, waiting: 2 })
  all.push(queue.of(db, 'b').transaction(work('b1')))
  await untilBegun('a1', 'a2', 'b1')
  end()
  await untilBegun('a1', 'a2', 'b1', 'a3')
  end()
  await untilBegun('a1', 'a2', 'b1', 'a3', 'a4')
  assert.equal(begun.at(-1), 'a4')
  for (let i = 0; i < 3; i++) end()
  await Promise.all(all)
  assert.deepEqual(queue.count('a'), { underWay: 0, waiting: 0 })
})

test('beyond those that may wait one is refused, and one that fails gives its place to the next', async () => {
  const { work, untilBegun, end } = openWork()
  const queue = openFairQueue(1, 1)
  const mine = queue.of(db, 'a')
  let fail: (() => void) | null = null
  const broken = mine.transaction(
    () =>
      new Promise((_, reject) => {
        fail = () => reject(new Error('broken'))
      }),
  )
  const failed = assert.rejects(broken, /broken/)
  const next = mine.transaction(work('next'))
  await assert.rejects(
    mine.transaction(work('third')),
    (error) => error instanceof Problem && error.code === 'rate_limited',
  )
  await until('the first has begun', async () => fail !== null)
  assert.deepEqual(queue.count('a'), { underWay: 1, waiting: 1 })
  ;(fail as unknown as () => void)()
  await failed
  await untilBegun('next')
  end()
  await next
  assert.deepEqual(queue.count('a'), { underWay: 0, waiting: 0 })
})

test('a place is taken for as long as it must although its work is done: so many begin in a time, and whoever is first gets the answer at once', async () => {
  const placeMs = 60
  const queue = openFairQueue(2, 10, undefined, placeMs)
  const began = performance.now()
  const ended: number[] = []
  const work = async () => {}
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      await queue.take('a', work)
      ended.push(performance.now() - began)
    }),
  )
  // Timers may be a millisecond early.
  const beginsAfter = (place: number) => Math.floor(place / 2) * (placeMs - 2)
  for (const [place, ms] of ended.entries()) assert(ms >= beginsAfter(place), String(ended))
  assert((ended[1] ?? placeMs) < (ended[2] ?? 0), 'the first two do not wait for their places to be free')
  await until('the last places are free', async () => queue.count('a').underWay === 0)
})
