import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forgetChain } from '../../../src/chains/rows.ts'
import { openTwoNodes } from '../../payments/adversity/attacks/support/two-nodes.ts'

const shop = await openTwoNodes()

test('a chain that is reorganised right after it was first read, below the head of then, is followed', async () => {
  await shop.chain.mine(20)
  await forgetChain(shop.ctx.db, shop.chain.network.caip2)
  await shop.follow()
  const first = await shop.chain.client.getBlockNumber()
  await shop.chain.reorg(3)
  await shop.mine()
  await shop.mine()
  const [follower] = await shop.ctx.db.query<{ head_number: string; dispute: string | null }>(
    'select head_number, dispute from followers',
  )
  const head = await shop.chain.client.getBlockNumber()
  assert(head > first)
  assert.deepEqual(follower, { head_number: `${head}`, dispute: null })
})
