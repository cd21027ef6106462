import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatUnits } from '@farthing/sdk'
import fc from 'fast-check'
import { parseUnits } from '../src/units.ts'

test('parseUnits reads back everything that formatUnits writes', () => {
  const any = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }), fc.integer({ min: 0, max: 18 }))
  fc.assert(
    fc.property(any, ([units, decimals]) => {
      assert.equal(parseUnits(formatUnits(units, decimals), decimals), units)
      assert.equal(formatUnits(String(units), decimals), formatUnits(units, decimals))
    }),
  )
  for (const [units, decimals, text] of [
    ['12500000', 6, '12.50'],
    ['1', 6, '0.000001'],
    ['0', 6, '0.00'],
    ['1234567', 6, '1.234567'],
    ['7', 0, '7'],
    ['15', 1, '1.5'],
  ] as const)
    assert.equal(formatUnits(units, decimals), text)
})

test('parseUnits returns null for text that is not an amount or has too many decimals', () => {
  for (const text of ['', '.5', '5.', '-1', '1e3', '1,5', '0x1', ' 1', '1.0000001', '1234567890123456'])
    assert.equal(parseUnits(text, 6), null, text)
})
