import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Mutation } from './database.ts'
import { runHistory } from './history.ts'

/** Histories per commit; `npm run chaos:simulate` runs any number. */
const histories = 3_000
/** Each of these bugs must be found within this many histories. */
const historiesUntilFound = 20_000

/** The invariants that each bug breaks. */
const mutations: readonly [Mutation, RegExp][] = [
  ['sent-rejected', /^I9|^I4/],
  ['two-unresolved', /^I4/],
  ['send-before-commit', /^I6/],
  ['spent-is-paid', /^I1/],
  ['orphans-stay', /^I1|^I3/],
  ['dead-too-early', /^I7|^I4|^I9/],
  ['terms-on-time-out', /^I9/],
  ['taken-back-forgotten', /^I9|^I14/],
]

describe('the simulated payment state machine', () => {
  test(`${histories} histories with crashes at every await break no invariant`, () => {
    for (let seed = 1; seed <= histories; seed++) assert.deepEqual(runHistory(seed), [], `seed ${seed}`)
  })

  test('histories that once broke an invariant no longer do', () => {
    for (const seed of [1_038_834, 1_046_732]) assert.deepEqual(runHistory(seed), [], `seed ${seed}`)
  })

  test('the same seed yields the same history', () => {
    for (let seed = 1; seed <= 50; seed++)
      assert.deepEqual(runHistory(seed, 'terms-on-time-out'), runHistory(seed, 'terms-on-time-out'))
  })

  for (const [mutation, broken] of mutations)
    test(`with the bug ${mutation} a history breaks ${broken.source}`, () => {
      for (let seed = 1; seed <= historiesUntilFound; seed++)
        if (runHistory(seed, mutation).some((sentence) => broken.test(sentence))) return
      assert.fail(`not found in ${historiesUntilFound} histories`)
    })
})
