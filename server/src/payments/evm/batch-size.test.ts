import assert from 'node:assert/strict'
import { test } from 'node:test'
import { learnSize, openBatchSize } from './batch-size.ts'
import { countFitting } from './choose.ts'

const full = countFitting(true)

test('a batch that five blocks leave out halves the next ones, once, and those that are mined let them grow again', () => {
  const size = openBatchSize()
  const waiting = { nonce: 7, payments: full }
  const step = (headNumber: number, minedBelow = 7) =>
    learnSize(size, minedBelow === 7 ? waiting : undefined, { minedBelow, headNumber })
  step(100)
  // The head was seconds old: nobody knows whether one of these blocks came after it was sent.
  step(112)
  step(116)
  assert.equal(size.max, full)
  step(117)
  assert.equal(size.max, full / 2)
  for (const head of [118, 130, 200]) step(head)
  assert.equal(size.max, full / 2)
  step(201, 8)
  assert.equal(size.max, full / 2 + 8)
})

test('batches become no smaller than eight payments, and no larger than what one transaction can carry', () => {
  const size = openBatchSize()
  for (let nonce = 0; nonce < 10; nonce++)
    for (const headNumber of [100, 101, 106]) {
      const lowest = { nonce, payments: size.max }
      learnSize(size, lowest, { minedBelow: 0, headNumber: 100 * nonce + headNumber })
    }
  assert.equal(size.max, 8)
  for (let minedBelow = 1; minedBelow < 100; minedBelow++)
    learnSize(size, undefined, { minedBelow, headNumber: 10_000 + minedBelow })
  assert.equal(size.max, full)
})

test('a payment that waits alone, and transactions that are mined at once, make no batch smaller', () => {
  const size = openBatchSize()
  for (const headNumber of [100, 101, 110, 120])
    learnSize(size, { nonce: 1, payments: 1 }, { minedBelow: 0, headNumber })
  assert.equal(size.max, full)
  for (let nonce = 2; nonce < 50; nonce++)
    learnSize(size, { nonce, payments: full }, { minedBelow: nonce - 1, headNumber: 200 + 12 * nonce })
  assert.equal(size.max, full)
})
