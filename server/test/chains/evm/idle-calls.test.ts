import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

const blocks = 8
const callsPerBlockMax = 10
const nodes = [await openFaultyNode(''), await openFaultyNode('')]
const opening = openShop({
  network: 'BASE_MAINNET',
  blockTimeSeconds: 2,
  worker: false,
  settings: { BASE_MAINNET_RPC_URLS: nodes.map(({ url }, i) => `node${i}=${url}`).join(',') },
})
const shop = await opening
for (const node of nodes) node.target = shop.chain.url
const stop = shop.startWork()

test('while nothing happens, a block costs at most ten calls to two providers together', async (t) => {
  const head = async () => {
    const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
    return Number.parseInt(row?.head ?? '0', 10)
  }
  const calls = () => nodes.flatMap(({ asked }) => [...asked.values()]).reduce((sum, count) => sum + count, 0)
  await until('the chain is followed', async () => (await head()) > 0)
  const started = await head()
  await until('a new block', async () => (await head()) > started)
  const [from, before] = [await head(), calls()]
  await until('more blocks', async () => (await head()) >= from + blocks)
  const perBlock = (calls() - before) / ((await head()) - from)
  t.diagnostic(JSON.stringify({ perBlock, methods: nodes.map(({ asked }) => Object.fromEntries(asked)) }))
  await stop()
  assert(perBlock <= callsPerBlockMax, `${perBlock} calls per block`)
})
