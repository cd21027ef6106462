/**
 * Attack (or bad luck): a settler has just enough ether to count as ready. A node requires a transaction's maximum
 * cost up front, which is the gas limit of the whole batch at twice the base fee, so it rejects the batch and every
 * payment in it is stuck.
 * What should hold: the settler can pay for every payment that is claimed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDriven } from '../driven.ts'
import { presentAny } from './support/present.ts'

/** Readiness requires the price of this much gas: 200 settlements of 100,000 each. */
const readyGas = 20_000_000n
/** A batch of this size has a gas limit of 12 M, so a node requires 24 M times the base fee. */
const count = 100
const shop = await openDriven()
const [lane = assert.fail()] = shop.engine.lanes

test('a ready settler can pay up front for every claimed payment', async () => {
  const payments = await shop.prepare(count)
  const { baseFeePerGas } = await shop.chain.client.getBlock()
  await shop.chain.client.setBalance({
    address: lane.signer.address,
    value: readyGas * ((baseFeePerGas ?? assert.fail()) + 1n),
  })
  await shop.ctx.db.query('update settlers set balance_at = null')
  await shop.send()
  const claimed = await presentAny(shop, payments)
  await shop.send()
  await shop.mine()
  const read = await Promise.all(claimed.map(({ checkoutId }) => shop.read(checkoutId)))
  const completed = read.filter(({ status }) => status === 'COMPLETED').length
  assert.equal(completed, claimed.length, 'claimed payments that completed')
})
