import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { StoreId } from '../ids.ts'
import { openExports } from './exports.ts'

async function* endless() {
  for (;;) yield 'row\r\n'
}

const by = (member: string, store: string) => ({
  id: `mem_${member}`,
  storeId: `st_${store}` as StoreId,
})

test('a member or key has one export at a time, a store two, and a process sixteen; one that was left makes room', async () => {
  const { start } = openExports()
  const first = start(by('a', 'a'), endless()) ?? assert.fail()
  assert.equal(start(by('a', 'b'), endless()), null, 'the same member, in another store')
  assert(start(by('b', 'a'), endless()))
  assert.equal(start(by('c', 'a'), endless()), null, 'a third of the store')
  for (let i = 2; i < 16; i++) assert(start(by(`m${i}`, `s${i}`), endless()))
  assert.equal(start(by('f', 'f'), endless()), null, 'a seventeenth')
  first.destroy()
  await once(first, 'close')
  assert(start(by('f', 'f'), endless()))
})

test('seven stores whose readers all stand still leave places for others', () => {
  const { start } = openExports()
  for (let store = 0; store < 7; store++)
    for (const member of ['a', 'b', 'c']) start(by(`${member}${store}`, `s${store}`), endless())
  assert(start(by('x', 'x'), endless()))
  assert(start(by('y', 'x'), endless()))
})

test('an export that nobody reads ends after ten minutes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { start } = openExports()
  const stalled = start(by('a', 'a'), endless()) ?? assert.fail()
  t.mock.timers.tick(10 * 60_000 - 1)
  assert.equal(start(by('a', 'a'), endless()), null)
  t.mock.timers.tick(1)
  await once(stalled, 'close')
  assert(start(by('a', 'a'), endless()))
})
