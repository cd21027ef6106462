import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocksPerLookMax } from '../../../src/chains/evm/search.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openReadiness } from '../../../src/payments/settlers/readiness.ts'
import { openProvider } from '../../chains/support/provider.ts'
import { openShop } from '../../support/shop.ts'
import { until } from '../../support/until.ts'

/** More than one look reads. */
const missed = blocksPerLookMax + 200
/** anvil takes its time. */
const minedAtOnce = 100

test('after downtime, payments get 503 until the blocks that were missed are read', async () => {
  const provider = await openProvider('')
  const startedAt = Math.floor(Date.now() / 1_000) - 2 * missed
  const shop = await openShop({
    ...{ worker: false, nodes: [provider] },
    extraArgs: ['--timestamp', `${startedAt}`],
  })
  const payer = await shop.fund()
  const readiness = openReadiness(shop.ctx, openRails(shop.ctx))
  const { caip2 } = shop.chain.network
  const head = async () => {
    const [row] = await shop.ctx.db.query<{ head: string }>('select head_number as head from followers')
    return Number.parseInt(row?.head ?? '0', 10)
  }
  const stop = shop.startWork()
  await until('payments are accepted', async () => (await readiness(caip2)) === null)
  await stop()

  const before = await head()
  for (let mined = 0; mined < missed; mined += minedAtOnce)
    await shop.chain.client.mine({ blocks: minedAtOnce, interval: 2 })
  provider.answerCall = ({ method, params }) => {
    const [filter] = params as readonly { toBlock?: string }[]
    const isAbove = Number.parseInt(filter?.toBlock ?? '0', 16) > before + blocksPerLookMax
    return method === 'eth_getLogs' && isAbove ? { code: -32603, message: 'internal error' } : null
  }
  shop.startWork()
  await until('the first of them are read', async () => (await head()) > before)
  assert.equal(await readiness(caip2), 'New blocks are still being read.')
  const id = await shop.create()
  const answer = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(answer.statusCode, 503, answer.body)
  assert.equal((await shop.read(id)).status, 'OPEN')

  provider.answerCall = () => null
  await until('payments are accepted again', async () => (await readiness(caip2)) === null)
  // A payer's answer may be half a second old.
  const header = await shop.sign(id, payer)
  await until('the payment is taken', async () => (await shop.pay(id, header)).statusCode === 200)
})
