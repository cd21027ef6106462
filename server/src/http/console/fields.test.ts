import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currencyDecimals, isAmbiguous, toTyped, withPoint } from './fields.ts'

test('a comma is read as a point, and nothing else is changed', () => {
  for (const [typed, read] of [
    ['12,50', '12.50'],
    [' 12.50 ', '12.50'],
    ['1500', '1500'],
    ['1,500.00', '1,500.00'],
    ['1.500,00', '1.500,00'],
    ['1,2,3', '1,2,3'],
  ] as const)
    assert.equal(withPoint(typed), read)
})

test('three digits after the only comma or point could be thousands', () => {
  for (const typed of ['1,500', '1.500', ' 12.345', '999,999', '1500.000'])
    assert(isAmbiguous(typed, 2) && isAmbiguous(typed, 6), typed)
  for (const typed of ['12,50', '12.50', '1500', '1.5', '1.5000', '0.125', '0,125', '1.500,00', ''])
    assert(!isAmbiguous(typed, 2), typed)
})

test('a point before three digits is clear in a currency of three decimals, and a comma is not', () => {
  assert(!isAmbiguous('1.500', currencyDecimals('KWD')))
  assert(isAmbiguous('1,500', currencyDecimals('KWD')))
  assert(isAmbiguous('1.500', currencyDecimals('no currency')))
})

test('an amount that a form offers can be sent as it is', () => {
  for (const [units, typed] of [
    [12_500_000n, '12.50'],
    [1_234_000n, '1.2340'],
    [1_234_500n, '1.2345'],
    [125_000n, '0.125'],
  ] as const) {
    assert.equal(toTyped(units, 6), typed)
    assert(!isAmbiguous(typed, 6))
  }
})
