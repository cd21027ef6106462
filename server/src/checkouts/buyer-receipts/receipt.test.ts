import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { numberText, parseNumber } from './receipt.ts'

const numbers = fc.record(
  {
    series: fc.oneof(
      fc.constant(''),
      fc.date({ min: new Date('2020-01-01'), max: new Date('2099-01-01'), noInvalidDate: true }).map((time) =>
        Math.floor(time.getTime() / 1_000)
          .toString(36)
          .toUpperCase(),
      ),
    ),
    year: fc.integer({ min: 2_020, max: 2_099 }),
    number: fc.integer({ min: 1, max: 999_999_999 }),
  },
  { noNullPrototype: true },
)

test('a receipt’s number is read back as it was written, in upper and lower case, and no two are the same text', () => {
  fc.assert(
    fc.property(numbers, numbers, (one, other) => {
      assert.deepEqual(parseNumber(numberText(one)), one)
      assert.deepEqual(parseNumber(numberText(one).toLowerCase()), one)
      const isSame = numberText(one) === numberText(other)
      assert.equal(isSame, JSON.stringify(one) === JSON.stringify(other))
    }),
  )
})

test('what has another form is no number of a receipt', () => {
  for (const text of [
    '',
    '2026',
    '2026-1',
    '2026-11-19',
    '1999-000001',
    '2026-000001-',
    '2026--000001',
    ' 2026-000001',
  ])
    assert.equal(parseNumber(text), null, text)
})
