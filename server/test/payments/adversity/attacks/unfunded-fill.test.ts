/**
 * Attack: a settler without ether holds a nonce for a payment that has expired. The lane signs the fill again every
 * 10 s for an eighth more, although no node accepted the previous one, and fills ignore the network's fee cap.
 * What should hold: the fee of such a fill stays below the cap, and a modest top-up frees the nonce.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTransaction } from 'viem'
import { stepLane } from '../../../../src/payments/evm/lane.ts'
import { openDriven } from '../driven.ts'

/** Ten minutes of replacements. */
const replacements = 60
const topUpWei = 2n * 10n ** 16n
const shop = await openDriven()
const { client, network } = shop.chain
const [lane = assert.fail()] = shop.engine.lanes
const { address } = lane.signer

/** Steps the lane as if the time had passed after which it replaces an unmined transaction. */
async function stepLater(): Promise<void> {
  await shop.ctx.db.query(
    `update broadcasts set created_at = created_at - interval '11 seconds',
       last_sent_at = last_sent_at - interval '11 seconds'`,
  )
  await stepLane(shop.ctx, lane)
}

async function readNewestFee(): Promise<bigint> {
  const [newest] = await shop.ctx.db.query<{ bytes: Buffer }>(
    'select bytes from broadcasts order by created_at desc limit 1',
  )
  assert(newest)
  return parseTransaction(`0x${newest.bytes.toString('hex')}`).maxFeePerGas ?? assert.fail()
}

test('a fill that no node accepted does not rise above the fee cap', async () => {
  const [payment = assert.fail()] = await shop.prepare(1, 2_000_000n, { validSeconds: 40 })
  await shop.present([payment])
  await client.setBalance({ address, value: 0n })
  await stepLane(shop.ctx, lane)
  assert.equal((await client.getTxpoolStatus()).pending, 0, 'the node rejects a send without ether')
  await shop.chain.setNextBlockTimestamp(BigInt(payment.signed.authorization.validBefore) + 1n)
  await shop.mine(6)
  await shop.bury()
  assert.equal((await shop.read(payment.checkoutId)).status, 'OPEN')

  for (let i = 0; i < replacements; i++) await stepLater()
  const fee = await readNewestFee()
  assert(fee <= network.maxFeePerGas, `the fee is ${fee} wei, the cap ${network.maxFeePerGas} wei`)
})

test('a settler that is topped up frees the nonce of an expired payment', async () => {
  const before = await client.getTransactionCount({ address })
  await client.setBalance({ address, value: topUpWei })
  for (let i = 0; i < 3; i++) {
    await stepLater()
    await shop.mine()
  }
  assert.equal(await client.getTransactionCount({ address }), before + 1, 'the nonce of the account')
})
