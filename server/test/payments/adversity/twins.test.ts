import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openChain } from '../../../src/chains/evm/chain.ts'
import { followOnce } from '../../../src/chains/evm/follower.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { buildApp } from '../../../src/http/app.ts'
import { openListener } from '../../../src/payments/evm/credit-blocks.ts'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { atEnd } from '../../support/at-end.ts'
import { until } from '../../support/until.ts'
import { openDriven, type Prepared } from './driven.ts'
import { type Call, openGate } from './gate.ts'
import { checkInvariants } from './invariants.ts'
import { print, trials } from './size.ts'

const shop = await openDriven({ settlers: 2 })
const { db } = shop.ctx
const { look, lanes } = shop.engine
const perRace = trials(20, 500)

/** A second process's view of the chain: the same node, behind a gate that the test can close. */
let asked = ''
const gate = await openGate(shop.chain.url, async (call) => {
  if (!isSimulation(call)) asked += JSON.stringify(call.params).toLowerCase()
})
const gated = openChain(shop.engine.chain.network, [parseNode(gate.url)], shop.ctx.now)
const otherContext = { ...shop.ctx, config: { ...shop.ctx.config, nodes: { LOCAL: [parseNode(gate.url)] } } }
const otherApp = buildApp(otherContext, { isDraining: false })
atEnd(() => otherApp.close())
await otherApp.ready()

/** Whether the call reads what decides about a payment: its payer's balance, among others. */
function isSimulation({ method, params }: Call): boolean {
  return method === 'eth_call' && JSON.stringify(params).includes('70a08231')
}

async function statusOf({ checkoutId }: Prepared): Promise<string> {
  return (await shop.read(checkoutId)).status
}

test('a duplicate that simulates after its twin was mined gets the twin’s answer', async () => {
  for (let left = perRace, round = 0; left > 0; left -= 25, round++) {
    const payments = await shop.prepare(Math.min(25, left))
    const held = gate.hold(isSimulation)
    const duplicates = payments.map(({ checkoutId, header }) =>
      otherApp.inject({
        method: 'POST',
        url: `/api/v1/checkouts/${checkoutId}`,
        headers: { 'payment-signature': header },
      }),
    )
    const payers = payments.map(({ payer }) => payer.address.slice(2).toLowerCase())
    // They have read an open checkout and now ask the node whether the payment would succeed.
    await until('asked', async () => payers.every((payer) => asked.includes(payer)))
    await held.arrived
    const twins = await shop.present(payments)
    await shop.send()
    await shop.chain.mine()
    if (round % 2 === 1) await shop.follow()
    held.open()
    // In the other rounds the money has moved, but nobody has seen it yet.
    if (round % 2 === 0) {
      await until('simulated', async () => gate.pending() === 0)
      await shop.follow()
    }
    const answers = await Promise.all(duplicates)
    for (const [i, twin] of (await Promise.all(twins)).entries()) {
      const answer = answers[i]
      assert.equal(twin.statusCode, 200, twin.body)
      assert.equal(answer?.statusCode, 200, answer?.body)
      assert.equal(answer?.headers['payment-response'], twin.headers['payment-response'])
    }
  }
})

test('two concurrent followers read each block once', async () => {
  const listener = openListener(shop.ctx, gated, look)
  for (let trial = 0; trial < perRace; trial++) {
    const payments = await shop.prepare(1)
    const answers = await shop.present(payments)
    await shop.send()
    await shop.chain.mine()
    const held = gate.hold(({ method }) => method === 'eth_getLogs')
    await stealFollower()
    const slow = followOnce(shop.ctx, gated, 'slow', listener)
    await held.arrived
    await stealFollower()
    if (trial % 2 === 0) {
      // The other follower reads the block before the first one gets its logs.
      await shop.follow()
      held.open()
      await slow
    } else {
      held.open()
      await Promise.all([slow, shop.follow()])
    }
    await stealFollower()
    await shop.follow()
    for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
  }
})

test('a follower overtaken while re-reading a safe block does not restore payments orphaned since then', async () => {
  const listener = openListener(shop.ctx, gated, look)
  for (let trial = 0; trial < trials(3, 25); trial++) {
    const payments = await shop.prepare(2)
    const answers = await shop.present(payments)
    await shop.send()
    await shop.mine()
    for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
    const paid = await shop.chain.client.getBlock()
    await shop.mine(3)
    await shop.chain.mine()
    const held = gate.hold(
      ({ method, params }) =>
        method === 'eth_getLogs' && (params[0] as { blockHash: string }).blockHash === paid.hash,
      'out',
    )
    await stealFollower()
    const slow = followOnce(shop.ctx, gated, 'slow', listener)
    await held.arrived
    // Deeper than the blocks called safe.
    await shop.chain.reorg(5)
    await stealFollower()
    await shop.follow()
    for (const payment of payments) assert.equal(await statusOf(payment), 'PROCESSING')
    held.open()
    await slow
    for (const payment of payments) assert.equal(await statusOf(payment), 'PROCESSING')
    // The same bytes go out again, and the checkouts are paid after all.
    await stealFollower()
    await shop.mine()
    await until('sent again', async () => {
      await shop.send()
      await shop.mine()
      return (await Promise.all(payments.map(statusOf))).every((status) => status === 'COMPLETED')
    })
  }
})

test('a lane whose lease was stolen sends nothing more, and its settler’s nonces have no gap', async () => {
  const [lane] = lanes
  assert(lane)
  const slow = { ...lane, chain: gated, holder: 'slow' }
  for (let trial = 0; trial < perRace; trial++) {
    const payments = await shop.prepare(1)
    const answers = await shop.present(payments)
    await stealSettlers()
    // Overtaken before it took a nonce, or after it committed its bytes but before it sent them.
    const held = gate.hold(
      trial % 2 === 0 ? isSimulation : ({ method }) => method === 'eth_sendRawTransaction',
    )
    const step = stepLane(shop.ctx, slow)
    await held.arrived
    await stealSettlers()
    while (await stepLane(shop.ctx, lane));
    held.open()
    await step
    await shop.mine()
    for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
    assert.deepEqual(await readSends(payments), [1])
  }
  await stealSettlers()
})

test('two settlers never send the same authorization at the same time', async () => {
  const [lane, other] = lanes
  assert(lane && other)
  const slow = { ...lane, chain: gated }
  for (let trial = 0; trial < perRace; trial++) {
    const payments = await shop.prepare(2)
    const answers = await shop.present(payments)
    const held = gate.hold(isSimulation)
    const step = stepLane(shop.ctx, slow)
    await held.arrived
    while (await stepLane(shop.ctx, other));
    held.open()
    await step
    assert.deepEqual(await readSends(payments), [1, 1])
    await shop.mine()
    for (const answer of await Promise.all(answers)) assert.equal(answer.statusCode, 200, answer.body)
  }
})

test('the invariants hold after all races', async (t) => {
  await shop.idle()
  t.diagnostic(print(await checkInvariants({ db, chain: shop.chain })))
})

/** As if the holder had been paused past the end of its lease. */
async function stealFollower(): Promise<void> {
  await db.query('update followers set leased_until = null')
}

async function stealSettlers(): Promise<void> {
  await db.query('update settlers set leased_until = null')
}

/** How many settler nonces have carried each payment. */
async function readSends(payments: readonly Prepared[]): Promise<number[]> {
  const rows = await db.query<{ sends: number }>('select sends from authorizations where nonce = any($1)', [
    payments.map(({ signed }) => signed.authorization.nonce),
  ])
  return rows.map(({ sends }) => sends)
}
