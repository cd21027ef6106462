import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../problems.ts'
import { openSlots } from './slots.ts'

test('beyond the limit payments are refused with a time to come back, until a slot is free again', () => {
  const slots = openSlots(2)
  const [free] = [slots.take(), slots.take()]
  const refusals = Array.from({ length: 12 }, () => {
    try {
      slots.take()
    } catch (error) {
      assert(error instanceof Problem && error.code === 'settlement_unavailable')
      return error.extras.retryAfterSeconds ?? 0
    }
    return assert.fail('a third slot was taken')
  })
  assert(refusals.every((seconds) => seconds >= 2))
  assert(new Set(refusals).size > 1, 'not everybody comes back at once')
  free()
  slots.take()
  assert.throws(() => slots.take())
})

test('a slot that is freed twice is one slot', () => {
  const slots = openSlots(1)
  const free = slots.take()
  free()
  free()
  slots.take()
  assert.throws(() => slots.take())
})
