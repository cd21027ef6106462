import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agree, findTogether, readAnswer, whole } from './witnesses.ts'

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

test('heights count together while they are at most 150 apart', () => {
  const together = (...heights: readonly number[]) => findTogether(heights, (height) => height, 2)
  assert.deepEqual(together(100, 250), [250, 100])
  assert.equal(together(100, 251), null)
  assert.equal(together(100), null)
  assert.deepEqual(together(100, 10_000, 101), [101, 100])
  assert.deepEqual(together(0, 10_000, 10_001), [10_001, 10_000])
  assert.equal(together(0, 1, 10_000, 10_001), null)
})

test('an answer in the wrong form counts as none', () => {
  const read = (result: unknown) => readAnswer({ result }, ({ slot }: { slot: number }) => whole(slot))
  assert.equal(read({ slot: 5 }), 5)
  for (const garbage of [null, undefined, {}, { slot: '5' }, { slot: -1 }, { slot: 1.5 }])
    assert.equal(read(garbage), null)
})
