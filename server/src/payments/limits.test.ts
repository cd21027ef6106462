import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../problems.ts'
import { openPlaces } from './limits.ts'

test('beyond the limit payments are refused with a time to come back, until a place is free again', () => {
  const places = openPlaces(2)
  const [free] = [places.take(), places.take()]
  const refusals = Array.from({ length: 12 }, () => {
    try {
      places.take()
    } catch (error) {
      assert(error instanceof Problem && error.code === 'settlement_unavailable')
      return error.extras.retryAfterSeconds ?? 0
    }
    return assert.fail('a third place was taken')
  })
  assert(refusals.every((seconds) => seconds >= 2))
  assert(new Set(refusals).size > 1, 'not everybody comes back at once')
  free()
  places.take()
  assert.throws(() => places.take())
})

test('a place that is freed twice is one place', () => {
  const places = openPlaces(1)
  const free = places.take()
  free()
  free()
  places.take()
  assert.throws(() => places.take())
})
