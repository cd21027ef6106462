import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Call, openFaultyNode } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/** Of each of two providers: the end of the range, the block before it and one search; and of one, perhaps the head. */
const callsPerLookMax = 7
/** Of one chain with blocks of 200 ms. It is idle for half a minute. */
const blocksPerIdleLookMin = 100
/** What every look asks. What a process asks once, when it starts, and finality, may come at the same time. */
const asks = new Set(['eth_blockNumber', 'eth_getBlockByNumber', 'eth_getLogs', 'eth_getTransactionCount'])
const isOfLook = ({ method, params: [at] }: Call) => asks.has(method) && at !== 'safe' && at !== 'finalized'
const nodes = [await openFaultyNode(''), await openFaultyNode('')]
const opening = openShop({
  network: 'BASE_MAINNET',
  worker: false,
  settings: { BASE_MAINNET_RPC_URLS: nodes.map(({ url }, i) => `node${i}=${url}`).join(',') },
})
const shop = await opening
for (const node of nodes) node.target = shop.chain.url
const id = await shop.create()

const readHead = async () => {
  const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
  return Number.parseInt(row?.head ?? '0', 10)
}
let calls = 0
for (const node of nodes)
  node.choose = (some) => {
    calls += some.filter(isOfLook).length
    return null
  }
const stop = shop.startWork()
const untilMoved = async (from: number): Promise<number> => {
  await until('a look', async () => (await readHead()) > from)
  return await readHead()
}

test('while nobody looks, half a minute of blocks costs at most seven calls to two providers together; a look at a checkout ends that', async (t) => {
  await untilMoved(0)
  // The first look settles what it has read after that: the second one is like all others.
  const from = await untilMoved(await untilMoved(await readHead()))
  const before = calls
  const to = await untilMoved(from)
  const made = calls - before
  t.diagnostic(
    JSON.stringify({ blocks: to - from, made, methods: nodes.map(({ asked }) => Object.fromEntries(asked)) }),
  )
  assert(to - from >= blocksPerIdleLookMin, `looked again after ${to - from} blocks`)
  assert(made <= callsPerLookMax, `${made} calls`)

  const payable = Number(await shop.chain.client.getBlockNumber())
  await shop.require(id)
  const woken = await untilMoved(to)
  assert(woken >= payable, 'it is read up to the head of then')
  const [row] = await shop.ctx.db.query<{ is_awake: boolean }>(
    `select looked_at > clock() - interval '1 minute' as is_awake from network_looks where network = $1`,
    [shop.chain.network.caip2],
  )
  assert.equal(row?.is_awake, true)
  await stop()
})
