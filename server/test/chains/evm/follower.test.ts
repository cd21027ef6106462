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

test('a node that is far behind when the chain is first read does not decide where reading starts', async () => {
  await forgetChain(shop.ctx.db, shop.chain.network.caip2)
  const question = { jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['0x5', false] }
  const asked = await fetch(shop.chain.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  })
  const { result: old } = (await asked.json()) as { result: unknown }
  shop.first.lie = ({ method, params: [number] }, result) =>
    method === 'eth_getBlockByNumber' && number === 'latest' ? old : result
  // The nodes take turns, one per block time.
  const { blockTimeMs } = shop.chain.network
  for (let turn = 0; turn < shop.nodes.length; turn++) {
    shop.clock.now = new Date(
      Math.ceil(Date.now() / (2 * blockTimeMs)) * 2 * blockTimeMs + turn * blockTimeMs,
    )
    await shop.follow()
  }
  const [read] = await shop.ctx.db.query<{ first: string; last: string }>(
    'select min(number) as first, max(number) as last from blocks',
  )
  const { number: finalized } = await shop.chain.client.getBlock({ blockTag: 'finalized' })
  assert.deepEqual(read, { first: `${finalized}`, last: `${await shop.chain.client.getBlockNumber()}` })
})
