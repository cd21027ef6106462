import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prefersPage, readPreferences } from './accept.ts'

test('preferences are ordered by their weight, and one without a weight counts as 1', () => {
  assert.deepEqual(readPreferences('a;q=0.5, b, c;q=0.999, d;q=0, e;q=1.000'), [
    { value: 'b', weight: 1_000 },
    { value: 'e', weight: 1_000 },
    { value: 'c', weight: 999 },
    { value: 'a', weight: 500 },
  ])
})

test('a weight above 1 is ignored, so it beats no other preference', () => {
  for (const quality of ['1.5', '1.001', '2', '10', '0.1234', '-1', 'x', ''])
    assert.deepEqual(readPreferences(`a;q=${quality}`), [{ value: 'a', weight: 1_000 }], quality)
  assert.equal(prefersPage('application/json;q=1.5, text/html'), true)
})
