/**
 * Attack (or bad luck): the base fee rises above the network's fee cap. Payments are still claimed, then stay unsent
 * while their payers can do nothing.
 * What should hold: while the base fee is above the cap, a payment is refused before it is claimed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDriven } from '../driven.ts'
import { presentAny } from './support/present.ts'

const shop = await openDriven()
const { client, network } = shop.chain

test('no payment is claimed while the base fee is above the fee cap', async () => {
  const payments = await shop.prepare(1)
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: network.maxFeePerGas + 100_000_000_000n })
  await shop.idle()
  const claimed = await presentAny(shop, payments)
  await shop.send()
  assert.equal((await client.getTxpoolStatus()).pending, 0, 'nothing is sent above the cap')
  assert.equal(claimed.length, 0, 'claimed payments that cannot be sent')
})
