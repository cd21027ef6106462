import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reachedBy } from './reached-by.ts'

test('no single provider moves what two have reached above or below the honest ones', () => {
  assert.equal(reachedBy([9_999, 100], 2), 100)
  assert.equal(reachedBy([9_999, 100, 101], 2), 101)
  assert.equal(reachedBy([0, 100, 101], 2), 100)
})

test('with fewer answers than needed, nothing is reached', () => {
  assert.equal(reachedBy([], 1), null)
  assert.equal(reachedBy([100], 2), null)
  assert.equal(reachedBy([100], 1), 100)
})
