/**
 * Attack: one provider, while the others are silent, makes up a block with a transfer, replaces that block with another one
 * that has the next transfer, and so on: each completes a checkout, and what it may complete alone is free again.
 * What should hold: what it has completed alone counts for a day, whatever becomes of its block.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { type Hex, pad, toHex } from 'viem'
import type { Lie } from '../../../../../chaos/harness/liar.ts'
import { topics } from '../../../../src/chains/evm/eip3009.ts'
import { newNonce } from '../../../support/chain/evm-payment.ts'
import { payTo } from '../../../support/shop.ts'
import { ledTo, post, view } from '../../transfers/support/hand-transfers.ts'
import { openNodes } from './support/two-nodes.ts'

const stranger: Hex = '0x1111111111111111111111111111111111111111'
type Nodes = Awaited<ReturnType<typeof openNodes>>

/** One block at the head that only this provider has, with a transfer that nobody made. */
function forge(shop: Nodes, number: number, units: bigint): Lie {
  const hash = toHex(randomBytes(32))
  const log = {
    address: shop.chain.token,
    topics: [topics.transfer, pad(stranger), pad(payTo)],
    data: toHex(units, { size: 32 }),
    blockHash: hash,
    blockNumber: toHex(number),
    transactionHash: newNonce(),
    transactionIndex: '0x0',
    logIndex: '0x0',
    removed: false,
  }
  return async ({ method, params }, ask) => {
    if (method === 'eth_getLogs' && (params[0] as { blockHash?: Hex }).blockHash === hash) return [log]
    const result = await ask<Record<string, unknown> | null>(method, ...params)
    const isIt = method === 'eth_getBlockByNumber' && Number.parseInt(String(result?.number), 16) === number
    return isIt ? { ...result, hash } : result
  }
}

for (const providers of [2, 3])
  test(`one of ${providers} providers alone completes no more than it may, however often it replaces its block`, async () => {
    const shop = await openNodes(providers)
    const checkouts: { id: string; units: bigint }[] = []
    for (let i = 0; i < 4; i++) {
      const id = await shop.create('90.00')
      assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
      const [expected = assert.fail()] = (await view(shop, id)).transfers
      checkouts.push({ id, units: BigInt(expected.amount) })
    }
    for (const node of shop.nodes.slice(1)) node.fail('refused')
    await shop.chain.mine()
    const number = Number.parseInt(`${await shop.chain.client.getBlockNumber()}`, 10)
    for (const { units } of checkouts) {
      shop.first.liar = forge(shop, number, units)
      await shop.follow()
    }
    const completed = await shop.ctx.db.query(
      "select distinct checkout_id from events where type = 'checkout.completed'",
    )
    assert.equal(completed.length, 1)
  })
