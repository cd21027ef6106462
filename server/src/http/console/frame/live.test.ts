import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTurns } from './live.ts'

test('with 200 items of one store due, one of another is among the next eight', () => {
  const turns = openTurns<string, string, number>()
  for (let i = 0; i < 200; i++) turns.put('a', `a${i}`, 1)
  assert.deepEqual(
    turns.take(8).map(([item]) => item),
    Array.from({ length: 8 }, (_, i) => `a${i}`),
  )
  turns.put('b', 'b0', 1)
  assert.deepEqual(
    turns.take(8).map(([item]) => item),
    ['a8', 'b0', ...Array.from({ length: 6 }, (_, i) => `a${9 + i}`)],
  )
})

test('each item is taken once, in its place and with its last value, and one that was removed is not', () => {
  const turns = openTurns<string, string, number>()
  turns.put('a', 'a0', 1)
  turns.put('a', 'a1', 1)
  turns.put('b', 'b0', 1)
  turns.put('c', 'c0', 1)
  turns.put('a', 'a0', 2)
  turns.remove('c', 'c0')
  turns.remove('d', 'd0')
  assert.deepEqual(turns.take(8), [
    ['a0', 2],
    ['b0', 1],
    ['a1', 1],
  ])
  assert(turns.isEmpty())
  assert.deepEqual(turns.take(8), [])
})
