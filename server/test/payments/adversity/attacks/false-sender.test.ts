/**
 * Attack: one provider names another sender of a plain transfer, whose account has long used that nonce. Once a
 * reorganisation removes the transfer, it is given up at once, and the buyer is asked to pay again, although the transfer
 * can still return.
 * What should hold: too few providers name no sender, so that the transfer is waited for.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { openChain } from '../../../../src/chains/evm/chain.ts'
import { readDeepBlock } from '../../../../src/chains/rows.ts'
import { updateStatus } from '../../../../src/checkouts/update-status.ts'
import { nodesOf } from '../../../../src/config/settings.ts'
import { reverseGone } from '../../../../src/payments/evm/look-up.ts'
import { tokenAbi } from '../../../support/chain/evm.ts'
import { payTo } from '../../../support/shop.ts'
import { buyers, ledTo, post, view } from '../../transfers/support/hand-transfers.ts'
import { openNodes } from './support/two-nodes.ts'

/** The chain's faucet, which has sent many transactions. */
const busy = '0xa0ee7a142d267c1f36714e4a8f75612f20a79720'

for (const [providers, liars] of [
  [2, [0]],
  [2, [1]],
  [3, [0]],
  [3, [1]],
  [4, [0, 3]],
] as const)
  test(`of ${providers} providers, ${liars.join(' and ')} cannot have a reorganised transfer given up, and it counts when it returns`, async () => {
    const shop = await openNodes(providers)
    await shop.chain.mint(buyers[0], 10n ** 9n)
    await shop.mine()
    const id = await shop.create('10.00')
    assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?way=send')
    const [wanted = assert.fail()] = (await view(shop, id)).transfers
    for (const liar of liars) {
      const node = shop.nodes[liar] ?? assert.fail()
      node.lie = ({ method }, result) =>
        method === 'eth_getTransactionByHash' && result
          ? { ...(result as object), from: busy, nonce: '0x0' }
          : result
    }
    const data = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'transfer',
      args: [payTo, BigInt(wanted.amount)],
    })
    const transfer = { to: shop.chain.token, data, from: buyers[0] }
    await shop.chain.send(transfer)
    await shop.mine()
    assert.equal((await shop.read(id)).status, 'COMPLETED')
    await shop.chain.reorg(1)
    for (const node of shop.nodes) node.lie = (_, result) => result
    // So that there is a block by which a sender can have used a nonce.
    await shop.chain.pass(shop.chain.network.negativeSeconds)
    await shop.mine()
    assert(await readDeepBlock(shop.ctx.db, shop.chain.network))
    const chain = openChain(shop.chain.network, nodesOf(shop.ctx.config, shop.chain.network.id), shop.ctx.now)
    await reverseGone(shop.ctx, chain, (tx, ids, now) => updateStatus(shop.ctx, tx, ids, now))
    assert.equal((await shop.read(id)).status, 'PROCESSING')
    assert.equal((await shop.pay(id)).statusCode, 409)
    await shop.chain.send(transfer)
    await shop.mine()
    assert.equal((await shop.read(id)).status, 'COMPLETED')
  })
