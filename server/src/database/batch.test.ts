import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openBatcher } from './batch.ts'

/** A batcher whose batches end when the test says so. */
function open(limits: { itemsMax?: number; inFlightMax?: number; furtherItemsMin?: number } = {}) {
  const batches: { items: readonly number[]; end: (error?: Error) => void }[] = []
  const alone: number[] = []
  const call = openBatcher<number, string>({
    run: (items) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          end: (error) => (error ? reject(error) : resolve(items.map((item) => `batch ${item}`))),
        })
      }),
    runAlone: async (item) => {
      alone.push(item)
      if (item < 0) throw new Error(`bad ${item}`)
      return `alone ${item}`
    },
    itemsMax: limits.itemsMax ?? 100,
    inFlightMax: limits.inFlightMax ?? 1,
    ...(limits.furtherItemsMin && { furtherItemsMin: limits.furtherItemsMin }),
  })
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
  return { call, batches, alone, turn }
}

test('an item that arrives alone leaves at once; those that arrive meanwhile leave together', async () => {
  const { call, batches, turn } = open()
  const first = call(1)
  await turn()
  assert.deepEqual(
    batches.map(({ items }) => items),
    [[1]],
  )
  const others = [call(2), call(3)]
  await turn()
  assert.equal(batches.length, 1)
  batches[0]?.end()
  assert.equal(await first, 'batch 1')
  assert.deepEqual(batches[1]?.items, [2, 3])
  batches[1]?.end()
  assert.deepEqual(await Promise.all(others), ['batch 2', 'batch 3'])
})

test('when a batch fails each of its items runs alone, and gets its own result or error', async () => {
  const { call, batches, alone, turn } = open()
  const calls = [call(1), call(-2), call(3)]
  await turn()
  batches[0]?.end(new Error('one of them is bad'))
  const results = await Promise.allSettled(calls)
  assert.deepEqual(alone, [1, -2, 3])
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason))),
    ['alone 1', 'Error: bad -2', 'alone 3'],
  )
})

test('while a batch is in flight another leaves only with enough items', async () => {
  const { call, batches, turn } = open({ inFlightMax: 2, furtherItemsMin: 3 })
  void call(1)
  await turn()
  void call(2)
  void call(3)
  await turn()
  assert.equal(batches.length, 1)
  void call(4)
  await turn()
  assert.deepEqual(batches[1]?.items, [2, 3, 4])
})

test('every item is run once and answered with its own result, and no limit is exceeded', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 4 }),
      async (items, itemsMax, inFlightMax, furtherItemsMin) => {
        let inFlight = 0
        const ran: number[] = []
        const call = openBatcher<number, number>({
          run: async (batch) => {
            assert(batch.length <= itemsMax)
            assert(++inFlight <= inFlightMax)
            await new Promise((resolve) => setImmediate(resolve))
            ran.push(...batch)
            inFlight--
            return batch.map((item) => item * 2)
          },
          runAlone: async () => assert.fail('no batch failed'),
          itemsMax,
          inFlightMax,
          furtherItemsMin,
        })
        const results = await Promise.all(items.map(call))
        assert.deepEqual(
          results,
          items.map((item) => item * 2),
        )
        assert.deepEqual(ran.toSorted(), items.toSorted())
      },
    ),
  )
})
