import assert from 'node:assert/strict'
import { test } from 'node:test'
import { remember } from './remember.ts'

function open(entriesMax = 10) {
  const state = { ms: 0, reads: [] as string[], isBroken: false }
  const memory = remember(
    async (key: string) => {
      state.reads.push(key)
      if (state.isBroken) throw new Error('broken')
      return `${key} ${state.reads.length}`
    },
    { forMs: 1_000, entriesMax, now: () => new Date(state.ms) },
  )
  return { ...memory, state }
}

test('an answer is read once and cached until its time is up', async () => {
  const { get, state } = open()
  assert.deepEqual([await get('a'), await get('a')], ['a 1', 'a 1'])
  state.ms = 999
  assert.equal(await get('a'), 'a 1')
  state.ms = 1_000
  assert.equal(await get('a'), 'a 2')
})

test('a clock that is set back keeps no answer for longer', async () => {
  const { get, state } = open()
  state.ms = 3_600_000
  await get('a')
  state.ms = 0
  assert.equal(await get('a'), 'a 2')
})

test('concurrent callers share one read', async () => {
  const { get, state } = open()
  assert.deepEqual(await Promise.all([get('a'), get('a'), get('b')]), ['a 1', 'a 1', 'b 2'])
  assert.deepEqual(state.reads, ['a', 'b'])
})

test('a failed read is not cached, and an entry that replaced it stays', async () => {
  const { get, forget, state } = open()
  state.isBroken = true
  const failing = get('a')
  forget('a')
  state.isBroken = false
  const good = get('a')
  await assert.rejects(failing, /broken/)
  assert.equal(await good, 'a 2')
  assert.equal(await get('a'), 'a 2')
})

test('beyond the limit the oldest entry is dropped', async () => {
  const { get, state } = open(2)
  for (const key of ['a', 'b', 'c', 'c', 'b', 'a']) await get(key)
  assert.deepEqual(state.reads, ['a', 'b', 'c', 'a'])
})

test('a forgotten key is read again', async () => {
  const { get, forget, state } = open()
  await get('a')
  forget('a')
  await get('a')
  assert.deepEqual(state.reads, ['a', 'a'])
})
