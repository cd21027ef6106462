import { openChain } from '../../../../../src/chains/evm/chain.ts'
import { followOnce } from '../../../../../src/chains/evm/follower.ts'
import { updateStatus } from '../../../../../src/checkouts/update-status.ts'
import { nodesOf } from '../../../../../src/config/settings.ts'
import type { Transaction } from '../../../../../src/database/db.ts'
import { assignWaitingSequences } from '../../../../../src/events/assign-sequence.ts'
import { buryDead } from '../../../../../src/payments/evm/bury-dead.ts'
import { openListener } from '../../../../../src/payments/evm/credit-blocks.ts'
import { stepLane } from '../../../../../src/payments/evm/lane.ts'
import { openFaultyNode } from '../../../../support/faulty-node.ts'
import { openShop } from '../../../../support/shop.ts'

/** A shop with two nodes of two providers. */
export const openTwoNodes = () => openNodes(2)

/**
 * A shop on a live network, where the word of one node is not enough. It reaches the chain through as many nodes of as
 * many providers: `first`, which the service queries first and which a test can make lie, and others that are always
 * honest. No worker runs: the test mines blocks, follows the chain and steps the lanes.
 */
export async function openNodes(count: number) {
  const first = await openFaultyNode('')
  const nodes = [first]
  while (nodes.length < count) nodes.push(await openFaultyNode(''))
  const shop = await openShop({
    network: 'BASE_MAINNET',
    blockTimeSeconds: null,
    worker: false,
    settings: { BASE_MAINNET_RPC_URLS: nodes.map(({ url }, i) => `node${i}=${url}`).join(',') },
  })
  for (const node of nodes) node.target = shop.chain.url
  const { ctx } = shop
  const { network } = shop.chain
  const chain = openChain(network, nodesOf(ctx.config, network.id), ctx.now)
  const look = (tx: Transaction, ids: readonly string[], now: Date) => updateStatus(ctx, tx, ids, now)
  const listener = openListener(ctx, chain, look)
  const lanes = shop.signers.map((signer) => ({ chain, signer, holder: 'test', updateStatus: look }))

  const follow = async () => {
    while (await followOnce(ctx, chain, 'test', listener));
    await assignWaitingSequences(ctx)
  }
  const send = async () => {
    for (const lane of lanes) while (await stepLane(ctx, lane));
  }
  const mine = async (blocks = 1) => {
    await shop.chain.mine(blocks)
    await follow()
  }
  await mine()
  await send()
  return {
    ...shop,
    first,
    nodes,
    follow,
    send,
    mine,
    /** Lets enough time pass on the chain for what is in it now to be deep, and buries what is dead by then. */
    async bury(): Promise<void> {
      await shop.chain.pass(network.negativeSeconds)
      await follow()
      await buryNow()
    },
    buryNow,
  }

  async function buryNow(): Promise<void> {
    while ((await buryDead(ctx, chain, look)) > 0);
    await assignWaitingSequences(ctx)
  }
}
