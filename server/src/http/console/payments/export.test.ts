import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import type { MemberId, StoreId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { openExports } from './export.ts'

async function* endless() {
  for (;;) yield 'row\r\n'
}

const isRefused = (error: unknown) => error instanceof Refusal && error.reason === 'exports_max'
const by = (member: string, store: string) => ({
  memberId: `mem_${member}` as MemberId,
  storeId: `st_${store}` as StoreId,
})

test('a process runs one export of a member, two of a store and four in all; one that was left makes room', async () => {
  const start = openExports()
  const first = start(by('a', 'a'), endless())
  assert.throws(() => start(by('a', 'b'), endless()), isRefused, 'the same member, in another store')
  start(by('b', 'a'), endless())
  assert.throws(() => start(by('c', 'a'), endless()), isRefused, 'a third of the store')
  start(by('d', 'd'), endless())
  start(by('e', 'e'), endless())
  assert.throws(() => start(by('f', 'f'), endless()), isRefused, 'a fifth')
  first.destroy()
  await once(first, 'close')
  start(by('f', 'f'), endless())
})

test('an export that nobody reads ends after ten minutes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const start = openExports()
  const stalled = start(by('a', 'a'), endless())
  t.mock.timers.tick(10 * 60_000 - 1)
  assert.throws(() => start(by('a', 'a'), endless()), isRefused)
  t.mock.timers.tick(1)
  await once(stalled, 'close')
  start(by('a', 'a'), endless())
})
