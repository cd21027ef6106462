import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toSafeNumber } from './safe-number.ts'

test('a bigint becomes the same number, or nothing at all', () => {
  for (const exact of [0, 1, -1, 2 ** 31, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])
    assert.equal(toSafeNumber(BigInt(exact)), exact)
  for (const tooLarge of [2n ** 53n, -(2n ** 53n), 2n ** 256n - 1n])
    assert.throws(() => toSafeNumber(tooLarge), /too large to be a number/)
})
