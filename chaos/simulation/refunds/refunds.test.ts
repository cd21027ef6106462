import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RefundMutation } from './database.ts'
import { runRefunds } from './history.ts'

/** Histories per commit; `npm run chaos:simulate -- --refunds` runs any number. */
const histories = 2_000
/** Each of these bugs must be found within this many histories. */
const historiesUntilFound = 20_000

const mutations: readonly [RefundMutation, RegExp][] = [
  ['total-not-raised', /^(total|more)/],
  ['lowered-before-death', /^more/],
  ['slot-shared', /^slot/],
  ['terms-changed', /^(slot|recipient)/],
  ['dead-too-early', /^(slot|more)/],
  ['window-forgotten', /^(slot|more|twice)/],
  ['used-slot-skipped', /^(more|twice)/],
  ['key-refunded-again', /^twice/],
  ['any-transfer-completes', /^unpaid/],
  ['orphans-stay', /^(unpaid|paid)/],
]

describe('simulated refunds', () => {
  test(`in ${histories} histories no more than the payment can go back, nor twice, nor to anyone else`, () => {
    for (let seed = 1; seed <= histories; seed++) assert.deepEqual(runRefunds(seed), [], `seed ${seed}`)
  })

  test('histories that once broke a rule no longer do', () => {
    for (const seed of [899, 10_718, 16_015, 73_321]) assert.deepEqual(runRefunds(seed), [], `seed ${seed}`)
  })

  for (const [mutation, broken] of mutations)
    test(`with the bug ${mutation} a history breaks ${broken.source}`, () => {
      for (let seed = 1; seed <= historiesUntilFound; seed++)
        if (runRefunds(seed, mutation).some((sentence) => broken.test(sentence))) return
      assert.fail(`not found in ${historiesUntilFound} histories`)
    })
})
