import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { firstIdAt, isId, newId } from './ids.ts'

const time = fc.date({ min: new Date(0), max: new Date(2 ** 48 - 1), noInvalidDate: true })

test('an id is its prefix, its cell and 26 characters', () => {
  assert.match(newId('ch', '00', new Date()), /^ch_00[0-9a-hjkmnp-tv-z]{26}$/)
})

test('ids of one cell sort by time', () => {
  fc.assert(
    fc.property(time, time, (a, b) => {
      fc.pre(a.getTime() < b.getTime())
      assert(newId('ch', '00', a) < newId('ch', '00', b))
    }),
  )
})

test('the first id of a time is no greater than any id of that time and greater than all earlier ones', () => {
  fc.assert(
    fc.property(time, (at) => {
      fc.pre(at.getTime() > 0)
      const first = firstIdAt('ch', '00', at)
      assert(first <= newId('ch', '00', at))
      assert(first > newId('ch', '00', new Date(at.getTime() - 1)))
    }),
  )
})

test('100,000 ids from one millisecond are all different', () => {
  const now = new Date()
  assert.equal(new Set(Array.from({ length: 100_000 }, () => newId('ch', '00', now))).size, 100_000)
})

test('isId accepts ids and nothing else', () => {
  assert(isId('ch', newId('ch', '00', new Date())))
  fc.assert(fc.property(fc.string(), (text) => !isId('ch', text)))
  const id = newId('ch', '00', new Date())
  for (const wrong of [
    id.toUpperCase(),
    `${id}0`,
    id.slice(0, -1),
    id.replace('ch', 'st'),
    `${id.slice(0, -1)}i`,
    ` ${id}`,
  ]) {
    assert(!isId('ch', wrong), wrong)
  }
})
