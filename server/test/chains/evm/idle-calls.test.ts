import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/** For each of two providers: the end of the range, the block before it and one search; and now and then a few more. */
const callsPerLookMax = 10
/** Of one chain with blocks of 200 ms. It is idle for half a minute. */
const blocksPerIdleLookMin = 100
const nodes = [await openFaultyNode(''), await openFaultyNode('')]
const opening = openShop({
  network: 'BASE_MAINNET',
  worker: false,
  settings: { BASE_MAINNET_RPC_URLS: nodes.map(({ url }, i) => `node${i}=${url}`).join(',') },
})
const shop = await opening
for (const node of nodes) node.target = shop.chain.url
const id = await shop.create()
const stop = shop.startWork()

const readHead = async () => {
  const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
  return Number.parseInt(row?.head ?? '0', 10)
}
const calls = () => nodes.flatMap(({ asked }) => [...asked.values()]).reduce((sum, count) => sum + count, 0)
const untilMoved = async (from: number): Promise<number> => {
  await until('a look', async () => (await readHead()) > from)
  return await readHead()
}

test('while nobody looks, half a minute of blocks costs at most ten calls to two providers together; a look at a checkout ends that', async (t) => {
  await untilMoved(0)
  // What a process asks once, it has asked by the first look after the start.
  const from = await untilMoved(await readHead())
  const before = calls()
  const to = await untilMoved(from)
  const made = calls() - before
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
