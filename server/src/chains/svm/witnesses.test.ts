import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findTogether, readAnswer, whole } from './witnesses.ts'

test('heights count together while they are at most 150 apart', () => {
  const together = (...heights: readonly number[]) => findTogether(heights, (height) => height, 2)
  assert.deepEqual(together(100, 250), [250, 100])
  assert.equal(together(100, 251), null)
  assert.equal(together(100), null)
  assert.deepEqual(together(100, 10_000, 101), [101, 100])
  assert.deepEqual(together(0, 10_000, 10_001), [10_001, 10_000])
  assert.equal(together(0, 1, 10_000, 10_001), null)
})

test('an answer in the wrong form counts as no answer', () => {
  const read = (result: unknown) => readAnswer({ result }, ({ slot }: { slot: number }) => whole(slot))
  assert.equal(read({ slot: 5 }), 5)
  for (const garbage of [null, undefined, {}, { slot: '5' }, { slot: -1 }, { slot: 1.5 }])
    assert.equal(read(garbage), null)
})
