import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currencies } from './iso4217.ts'

const withdrawn = ['ANG', 'BGN', 'CUC', 'HRK', 'SLL', 'ZWL']

test('every currency that Node knows is in the list, except those that ISO has withdrawn', () => {
  const missing = Intl.supportedValuesOf('currency').filter((code) => !currencies.has(code))
  assert.deepEqual(missing, withdrawn)
})

test('codes are unique and sorted, and each has a name', () => {
  const codes = [...currencies.keys()]
  assert.deepEqual(codes, codes.toSorted())
  assert.equal(codes.length, 178)
  for (const [code, name] of currencies) {
    assert.match(code, /^[A-Z]{3}$/)
    assert.match(name, /^\p{Lu}.{3,}$/u)
  }
})

test('funds, metals, X-codes and the newest codes are in the list', () => {
  for (const code of [
    'BOV',
    'CHE',
    'CLF',
    'SLE',
    'USN',
    'UYW',
    'VED',
    'XAD',
    'XAU',
    'XCG',
    'XDR',
    'XTS',
    'XXX',
    'ZWG',
  ]) {
    assert(currencies.has(code), code)
  }
})
