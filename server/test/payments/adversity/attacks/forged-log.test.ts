/**
 * Attack: the node that the service queries first adds a Transfer log that no other node has. The checkout completes
 * and counts as finalized with nothing in the store's wallet.
 * What should hold: on a live network, a payment that only one node reports completes nothing.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Hex, pad, toHex } from 'viem'
import { topics } from '../../../../src/chains/evm/eip3009.ts'
import { newNonce } from '../../../support/chain/evm-payment.ts'
import { payTo } from '../../../support/shop.ts'
import { ledTo, post, view } from '../../transfers/support/hand-transfers.ts'
import { openTwoNodes } from './support/two-nodes.ts'

const stranger: Hex = '0x1111111111111111111111111111111111111111'
/** More than a block needs to become final. */
const blocksToFinal = 14
const shop = await openTwoNodes()

/** Makes the first node add a transfer to a block's logs. */
function forgeTransfer(blockHash: Hex, units: bigint): void {
  const forged = {
    address: shop.chain.token,
    topics: [topics.transfer, pad(stranger), pad(payTo)],
    data: toHex(units, { size: 32 }),
    blockHash,
    blockNumber: '0x0',
    transactionHash: newNonce(),
    transactionIndex: '0x0',
    logIndex: '0x3e7',
    removed: false,
  }
  shop.first.lie = ({ method, params: [filter] }, result) =>
    method === 'eth_getLogs' && (filter as { blockHash?: Hex }).blockHash === blockHash
      ? [...(result as unknown[]), forged]
      : result
}

async function requireFinality(finality: string): Promise<void> {
  const patched = await shop.request({
    method: 'PATCH',
    url: `/api/v1/stores/${shop.store.id}`,
    headers: { 'x-api-key': shop.key },
    payload: { finalityPolicy: [{ minAmount: '0', finality }] },
  })
  assert.equal(patched.statusCode, 200, patched.body)
}

test('a transfer that only one node of two reports does not complete a checkout', async () => {
  await requireFinality('finalized')
  const id = await shop.create('5000.00')
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [expected = assert.fail()] = (await view(shop, id)).transfers

  await shop.chain.mine()
  const { hash } = await shop.chain.client.getBlock()
  forgeTransfer(hash, BigInt(expected.amount))
  await shop.follow()
  for (let i = 0; i < blocksToFinal; i++) await shop.mine()
  assert.equal(await shop.chain.balance(payTo), 0n)
  const { status, payment } = await shop.read(id)
  assert.deepEqual({ status, finality: payment?.finality ?? null }, { status: 'OPEN', finality: null })
})

/** Makes up a payment for a new checkout while the other node is silent. Returns how it stands then, and afterwards. */
async function forgeAlone(price: string) {
  const [, second = assert.fail()] = shop.nodes
  const id = await shop.create(price)
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
  const [expected = assert.fail()] = (await view(shop, id)).transfers
  second.fail('refused')
  await shop.chain.mine()
  const { hash } = await shop.chain.client.getBlock()
  forgeTransfer(hash, BigInt(expected.amount))
  await shop.follow()
  const { status } = await shop.read(id)
  shop.first.lie = (_, result) => result
  second.heal()
  await shop.mine()
  const after = await shop.read(id)
  return { status, after: after.status, payment: after.payment }
}

test('a small payment that one node made up while the other was silent is withdrawn when the other is back', async () => {
  await requireFinality('included')
  // The first was left out for a while when it was caught.
  shop.clock.now = new Date(Date.now() + 16_000)
  assert.deepEqual(await forgeAlone('60.00'), { status: 'COMPLETED', after: 'PROCESSING', payment: null })
})

test('made-up payments that were withdrawn still use up what one node alone may complete that day', async () => {
  shop.clock.now = new Date(Date.now() + 32_000)
  assert.notEqual((await forgeAlone('60.00')).status, 'COMPLETED')
  shop.clock.now = new Date(Date.now() + 48_000)
  assert.equal((await forgeAlone('20.00')).status, 'COMPLETED')
})
