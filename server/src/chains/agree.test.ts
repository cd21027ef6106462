import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agree, enoughOf, reachedBy } from './agree.ts'

const told = (...facts: readonly string[]) => facts.map((fact, i) => ({ provider: `${i + 1}`, fact }))
const agreeOn = (witnessesMin: number, ...facts: readonly string[]) =>
  agree(told(...facts), String, witnessesMin)

test('a fact is believed if enough report it and no equally large group reports something else', () => {
  const nobody = { fact: null, odd: [], isDisputed: false }
  assert.deepEqual(agreeOn(2), nobody)
  assert.deepEqual(agreeOn(2, 'a'), nobody)
  assert.deepEqual(agreeOn(2, 'a', 'a'), { fact: 'a', odd: [], isDisputed: false })
  assert.deepEqual(agreeOn(2, 'b', 'a'), { fact: null, odd: ['1', '2'], isDisputed: true })
  assert.deepEqual(agreeOn(2, 'b', 'a', 'a'), { fact: 'a', odd: ['1'], isDisputed: false })
  assert.deepEqual(agreeOn(2, 'b', 'a', 'a', 'b'), {
    fact: null,
    odd: ['1', '2', '3', '4'],
    isDisputed: true,
  })
  assert.deepEqual(agreeOn(1, 'a'), { fact: 'a', odd: [], isDisputed: false })
})

test('who answers first does not decide while most providers have not answered', () => {
  const providers = (count: number) => Array.from({ length: count }, (_, i) => `${i}`)
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((count) => enoughOf(providers(count), 2)),
    [2, 2, 2, 3, 3],
  )
  assert.equal(enoughOf(providers(1), 1), 1)
})

test('a height counts once most of the answering providers have reached it: two of four are not enough', () => {
  assert.equal(reachedBy([9, 7], 2), 7)
  assert.equal(reachedBy([9, 7, 7], 2), 7)
  assert.equal(reachedBy([9, 9, 7, 7], 2), 7)
  assert.equal(reachedBy([9, 9, 9, 7], 2), 9)
  assert.equal(reachedBy([9], 2), null)
  assert.equal(reachedBy([9], 1), 9)
})

test('a single provider cannot move the reached height above or below what the honest ones report', () => {
  assert.equal(reachedBy([9_999, 100], 2), 100)
  assert.equal(reachedBy([9_999, 100, 101], 2), 101)
  assert.equal(reachedBy([0, 100, 101], 2), 100)
})

test('with fewer answers than needed, nothing is reached', () => {
  assert.equal(reachedBy([], 1), null)
  assert.equal(reachedBy([100], 2), null)
  assert.equal(reachedBy([100], 1), 100)
})
