import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPace } from './pace.ts'

const question = (method: string) => [{ method, params: [] }]

test('once a provider refuses, a transaction goes before the chain, the chain before a verification, and that before the rest', async () => {
  const pace = openPace()
  await pace.enter(question('eth_call'), 100, 0)
  pace.slowDown(20)
  const order: string[] = []
  const methods = ['eth_getTransactionReceipt', 'eth_call', 'eth_getLogs', 'eth_sendRawTransaction']
  await Promise.all(
    methods.map(async (method) => {
      assert.equal(await pace.enter(question(method), 1, 60_000), true)
      order.push(method)
    }),
  )
  assert.deepEqual(order, methods.toReversed())
})

test('no request waits before the first refusal, and none waits longer than its limit', async () => {
  const pace = openPace()
  assert.equal(pace.perSecond, null)
  for (let i = 0; i < 100; i++) assert.equal(await pace.enter(question('eth_call'), 10, 0), true)
  pace.slowDown(5_000)
  assert.equal(await pace.enter(question('eth_sendRawTransaction'), 1, 10), false)
})

test('requests that are refused together count as one refusal', async () => {
  const pace = openPace()
  await pace.enter(question('eth_call'), 100, 0)
  for (let i = 0; i < 5; i++) pace.slowDown(10)
  assert.equal(pace.perSecond, 70)
})

test('near the rate that was refused last, the rate grows slowly', async () => {
  const pace = openPace()
  await pace.enter(question('eth_call'), 100, 0)
  pace.slowDown(10)
  assert.equal(await pace.enter(question('eth_call'), 60, 5_000), true)
  assert.equal(pace.perSecond, 85)
  assert.equal(await pace.enter(question('eth_call'), 50, 5_000), true)
  assert.equal(pace.perSecond, 86)
})

test('a call that nobody waits for any more leaves the queue, and takes nothing from the others', async () => {
  const pace = openPace()
  await pace.enter(question('eth_call'), 10, 0)
  pace.slowDown(50)
  const over = new AbortController()
  const abandoned = pace.enter(question('eth_getLogs'), 10_000, 60_000, over.signal)
  const other = pace.enter(question('eth_call'), 1, 5_000)
  over.abort()
  assert.equal(await abandoned, false)
  assert.equal(await other, true)
  assert.equal(await pace.enter(question('eth_call'), 1, 5_000, over.signal), false)
})

test('one refusal while little is asked does not keep the rate low', async () => {
  const pace = openPace()
  await pace.enter(question('eth_call'), 1, 0)
  pace.slowDown(10)
  assert.equal(pace.perSecond, 5)
  assert.equal(await pace.enter(question('eth_call'), 20, 5_000), true)
  assert.equal(pace.perSecond, 10)
})
