import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openChain } from '../../../src/chains/evm/chain.ts'
import { claimAuthorizations } from '../../../src/checkouts/claim.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { until } from '../../support/until.ts'
import { claimOf } from './claims.ts'
import { openDriven } from './driven.ts'

const shop = await openDriven({ settlers: 2 })

/** A lane whose simulation ends when the test says so. */
async function openSlowLane(place: number) {
  const node = await openFaultyNode(shop.chain.url)
  const lane = shop.engine.lanes[place] ?? assert.fail()
  return { ...lane, chain: openChain(shop.chain.network, [parseNode(node.url)], shop.ctx.now), node }
}

/** Steps a lane up to the answer of its simulation. Returns a function that lets it go on and waits for it. */
async function stepUpToSend(lane: Awaited<ReturnType<typeof openSlowLane>>): Promise<() => Promise<unknown>> {
  const release = lane.node.hold('eth_call')
  const step = stepLane(shop.ctx, lane)
  await until('the lane has simulated', async () => lane.node.holding > 0)
  return () => {
    release()
    return step
  }
}

test('of two payments that one balance covers only once, two lanes do not each send one', async () => {
  const payer = newPayer()
  await shop.chain.mint(payer.address, 1_000_000n)
  await shop.follow()
  const [earlier, later] = [await shop.prepareOne(payer), await shop.prepareOne(payer)]
  const [one, other] = [await openSlowLane(0), await openSlowLane(1)]

  await claimAuthorizations(shop.ctx.db, [await claimOf(shop, later)], '')
  const sendLater = await stepUpToSend(one)
  // Claims commit out of order: this one began first.
  await claimAuthorizations(shop.ctx.db, [await claimOf(shop, earlier)], '')
  await shop.ctx.db.query(
    "update authorizations set claimed_at = claimed_at - interval '1 second' where checkout_id = $1",
    [earlier.checkoutId],
  )
  const sendEarlier = await stepUpToSend(other)
  await sendLater()
  await sendEarlier()
  assert.equal((await shop.chain.client.getTxpoolStatus()).pending, 1)

  await shop.mine()
  shop.clock.now = new Date(Date.now() + 10_000)
  await shop.send()
  const read = async ({ checkoutId }: { checkoutId: string }) => (await shop.read(checkoutId)).status
  assert.deepEqual([await read(earlier), await read(later)], ['OPEN', 'COMPLETED'])
})
