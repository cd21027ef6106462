import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPoll } from './poll.ts'
import type { Channel, WakeUps } from './wake.ts'

/** A poll whose wake-ups and ends the test makes. */
function open(options: { spacingMs?: number; everyMs?: number } = {}) {
  const state = { ms: 0, isNeeded: true, errors: 0, listening: 0 }
  const polls: { end: (error?: Error) => void }[] = []
  const listeners = new Map<Channel, () => void>()
  const wakeUps: WakeUps = {
    send: (channel) => listeners.get(channel)?.(),
    listen(channel, wake) {
      state.listening++
      listeners.set(channel, wake)
      return () => {
        state.listening--
        listeners.delete(channel)
      }
    },
    close: async () => {},
  }
  const poll = openPoll(wakeUps, {
    channel: 'outcomes',
    everyMs: options.everyMs ?? 1_000_000,
    ...(options.spacingMs && { spacingMs: options.spacingMs }),
    now: () => new Date(state.ms),
    isNeeded: () => state.isNeeded,
    poll: () =>
      new Promise((resolve, reject) => {
        polls.push({ end: (error) => (error ? reject(error) : resolve()) })
      }),
    onError: () => state.errors++,
  })
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return { ...poll, polls, state, wake: () => wakeUps.send('outcomes'), settle }
}

test('a poll that is asked for while one runs follows it, once', async () => {
  const { ask, polls, settle } = open()
  ask()
  ask()
  ask()
  assert.equal(polls.length, 1)
  polls[0]?.end()
  await settle()
  assert.equal(polls.length, 2)
  polls[1]?.end()
  await settle()
  assert.equal(polls.length, 2)
})

test('wake-ups count from the moment it begins, which happens once, and until it is closed', async () => {
  const { begin, close, wake, polls, state, settle } = open()
  wake()
  assert.equal(polls.length, 0)
  begin()
  begin()
  assert.equal(state.listening, 1)
  wake()
  assert.equal(polls.length, 1)
  polls[0]?.end()
  await settle()
  close()
  assert.equal(state.listening, 0)
  wake()
  begin()
  assert.deepEqual([polls.length, state.listening], [1, 0])
})

test('without waiters, there is no poll', () => {
  const { ask, polls, state } = open()
  state.isNeeded = false
  ask()
  assert.equal(polls.length, 0)
})

test('a poll that fails is reported, and the next one runs', async () => {
  const { ask, polls, state, settle } = open()
  ask()
  ask()
  polls[0]?.end(new Error('the database is away'))
  await settle()
  assert.deepEqual([state.errors, polls.length], [1, 2])
})

test('two polls begin no closer than the spacing, and the clock asks for one without a wake-up', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { begin, ask, polls, state } = open({ spacingMs: 100, everyMs: 1_000 })
  const pass = async (ms: number) => {
    state.ms += ms
    t.mock.timers.tick(ms)
    await Promise.resolve()
  }
  const endAll = async () => {
    for (const { end } of polls) end()
    for (let i = 0; i < 5; i++) await Promise.resolve()
  }
  begin()
  ask()
  assert.equal(polls.length, 1)
  await endAll()
  ask()
  await pass(99)
  assert.equal(polls.length, 1)
  await pass(1)
  assert.equal(polls.length, 2)
  await endAll()
  await pass(900)
  assert.equal(polls.length, 3)
})
