/**
 * Attack: the node that the service queries first serves different block hashes for a moment, all the way back. The
 * follower deletes every stored block, even finalized ones, reverses their payments, and never reads the gap again.
 * The paid nonce later counts as spent elsewhere, and the payer is asked to pay again.
 * What should hold: one node of two cannot reverse a finalized payment, and the payment is still known afterwards.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hex } from 'viem'
import { RpcAnswerError } from '../../../../src/chains/rpc.ts'
import { payTo } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { openTwoNodes } from './support/two-nodes.ts'

const validSeconds = 60
const blocksToFinal = 14
const price = 5_000_000n
const shop = await openTwoNodes()
const payer = await shop.fund()
await shop.follow()
const validBefore = BigInt(Math.floor(Date.now() / 1_000) + validSeconds)
const id = await shop.create('5.00')
const header = await shop.sign(id, payer, { validBefore })
const answer = shop.pay(id, header)
await until('claimed', async () => (await shop.read(id)).status === 'PROCESSING')
await shop.send()
await shop.mine()
assert.equal((await answer).statusCode, 200)
for (let i = 0; i < blocksToFinal; i++) await shop.mine()
assert.equal((await shop.read(id)).payment.finality, 'finalized')

/** Makes the first node serve other blocks from this height on. */
function serveOtherHistory(from = 0): void {
  const other = (hash: Hex): Hex => `0xdead${hash.slice(6)}`
  shop.first.lie = ({ method }, result) => {
    const block = result as { number: Hex; hash: Hex; parentHash: Hex } | null
    if (method !== 'eth_getBlockByNumber' || !block) return result
    const number = Number.parseInt(block.number, 16)
    if (number < from) return block
    return {
      ...block,
      hash: other(block.hash),
      parentHash: number > from ? other(block.parentHash) : block.parentHash,
    }
  }
}

test('a finalized payment is not reversed by one node of two', async () => {
  serveOtherHistory()
  await shop.chain.mine()
  // No node has logs of invented blocks. The worker catches this error and tries again later.
  await shop.follow().catch((error) => assert(error instanceof RpcAnswerError, error))
  const { status, payment } = await shop.read(id)
  assert.deepEqual({ status, finality: payment?.finality }, { status: 'COMPLETED', finality: 'finalized' })
})

test('a finalized payment is not reversed by one node while the other is silent', async () => {
  const [, second = assert.fail()] = shop.nodes
  // The first was left out for a while when it was caught.
  shop.clock.now = new Date(Date.now() + 16_000)
  second.fail('refused')
  const [{ number } = assert.fail()] = await shop.ctx.db.query<{ number: number }>(
    'select block_number::int as number from credits where checkout_id = $1',
    [id],
  )
  serveOtherHistory(number)
  await shop.follow().catch((error) => assert(error instanceof RpcAnswerError, error))
  const { status, payment } = await shop.read(id)
  assert.deepEqual({ status, finality: payment?.finality }, { status: 'COMPLETED', finality: 'finalized' })
  second.heal()
})

test('once the node is honest again, the payer is not asked to pay a second time', async () => {
  shop.first.lie = (_, result) => result
  const end = validBefore + 1n
  const time = await shop.chain.time()
  await shop.chain.setNextBlockTimestamp(time >= end ? time + 1n : end)
  for (let i = 0; i < blocksToFinal; i++) await shop.mine()
  await shop.bury()
  assert.equal(await shop.chain.balance(payTo), price)
  const again = await shop.pay(id, header)
  assert.equal(again.statusCode, 200, again.body)
})
