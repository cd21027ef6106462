import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turnMs } from '../../../src/chains/evm/follower.ts'
import { forgetChain } from '../../../src/chains/rows.ts'
import { openTwoNodes } from '../../payments/adversity/attacks/support/two-nodes.ts'
import type { Call } from '../../support/faulty-node.ts'

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

test('what takes blocks away or makes them final comes with the id of the chain it is from', async () => {
  const requests: (readonly Call[])[] = []
  for (const node of shop.nodes)
    node.choose = (calls) => {
      requests.push(calls)
      return null
    }
  // Within the seconds for which new blocks are read without asking again which chain a node is on.
  await shop.mine()
  await shop.mine()
  await shop.chain.reorg(2)
  await shop.mine()
  await shop.mine()
  for (const node of shop.nodes) node.heal()
  const isLatest = ({ method, params: [at] }: Call) => method === 'eth_getBlockByNumber' && at === 'latest'
  const isHeader = ({ method }: Call) => method === 'eth_getBlockByNumber'
  const decisive = requests.filter(
    (calls) => calls.filter(isHeader).length > 1 && !calls.some(({ method }) => method === 'eth_getLogs'),
  )
  assert(decisive.length > 0)
  for (const calls of decisive)
    assert(
      calls.some(({ method }) => method === 'eth_chainId'),
      JSON.stringify(calls),
    )
  assert(
    requests.some((calls) => calls.some(isLatest) && !calls.some(({ method }) => method === 'eth_chainId')),
    'new blocks are read without it',
  )
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
  for (let turn = 0; turn < shop.nodes.length; turn++) {
    shop.clock.now = new Date(Math.ceil(Date.now() / (2 * turnMs)) * 2 * turnMs + turn * turnMs)
    await shop.follow()
  }
  const [read] = await shop.ctx.db.query<{ first: string; last: string }>(
    'select min(number) as first, max(number) as last from blocks',
  )
  const { number: finalized } = await shop.chain.client.getBlock({ blockTag: 'finalized' })
  assert.deepEqual(read, { first: `${finalized}`, last: `${await shop.chain.client.getBlockNumber()}` })
})
