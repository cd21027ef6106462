import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { one, parseDecimal, parsePrice, toUnits, unitsToText } from './money.ts'

test('prices are decimals above zero with up to 15 and 6 digits, and nothing else', () => {
  for (const good of ['1', '0.000001', '12.50', '999999999999999.999999', '10'])
    assert(parsePrice(good), good)
  const bad = [
    '',
    '0',
    '0.0',
    '0.000000',
    '-1',
    '+1',
    '01',
    '1.',
    '.5',
    '1.0000001',
    '1000000000000000',
    '1e3',
    '1,5',
    ' 1',
    '1 ',
    '1\n',
    '１',
    '0x10',
    'NaN',
  ]
  for (const text of bad) assert.equal(parsePrice(text), null, JSON.stringify(text))
})

test('a price in dollars keeps its digits in a token with 6 decimals', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1n, max: 10n ** 21n - 1n }), (units) => {
      const text = `${units / 1_000_000n}.${String(units % 1_000_000n).padStart(6, '0')}`
      const price = parsePrice(text)
      assert(price)
      assert.equal(toUnits(price, one, one, 6), units)
    }),
  )
})

test('a converted price is the smallest whole number of units that covers it', () => {
  const decimal = fc.record({
    coefficient: fc.bigInt({ min: 1n, max: 10n ** 20n }),
    scale: fc.nat({ max: 20 }),
  })
  fc.assert(
    fc.property(decimal, decimal, decimal, fc.nat({ max: 18 }), (price, worth, per, decimals) => {
      const units = toUnits(price, worth, per, decimals)
      // units ÷ 10^decimals ≥ price × worth ÷ per, and one unit less is not enough: compared without division.
      const left = (amount: bigint) => amount * per.coefficient * 10n ** BigInt(price.scale + worth.scale)
      const right = price.coefficient * worth.coefficient * 10n ** BigInt(decimals + per.scale)
      assert(left(units) >= right)
      assert(left(units - 1n) < right)
    }),
  )
})

test('units are written as an exact decimal, with cents', () => {
  assert.equal(unitsToText(12_500_000n, 6), '12.50')
  assert.equal(unitsToText(12_500_137n, 6), '12.500137')
  assert.equal(unitsToText(1n, 6), '0.000001')
  assert.equal(unitsToText(7n, 0), '7')
  fc.assert(
    // What is parsed again has at most 30 digits before the point.
    fc.property(fc.bigInt(0n, 10n ** 30n - 1n), fc.integer({ min: 0, max: 18 }), (units, decimals) => {
      const { coefficient, scale } = parseDecimal(unitsToText(units, decimals))
      assert.equal(coefficient * 10n ** BigInt(decimals), units * 10n ** BigInt(scale))
    }),
  )
})
