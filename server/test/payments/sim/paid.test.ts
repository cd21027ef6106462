/** The simulated network: a test store is paid without a node, a settler or gas. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { makeStore, openTestApp } from '../../support/app.ts'
import { openClient, startWork, untilReady } from '../../support/client.ts'
import { eventsOf, untilEvent } from '../../support/watch.ts'

const app = await openTestApp({ NETWORKS: 'BASE_SEPOLIA,SIMULATED' })
const { key, store } = await makeStore(app.ctx, { mode: 'test' })
const shop = { ...app, key, store, ...openClient(app, key) }
startWork(app)
await untilReady(app, 'farthing:simulated')

test('a test store is paid without a node, a settler or gas, by the code of every network', async () => {
  const id = await shop.create('12.50')
  const { accepts } = await shop.require(id)
  const accepted = accepts.at(-1)
  assert.equal(accepted?.network, 'farthing:simulated', 'the last of the ways to pay')
  const simulated = {
    payer: 'sim_payer_1',
    nonce: `0x${randomBytes(32).toString('hex')}`,
    case: 'payment.paid',
  }
  const payment = { x402Version: 2, accepted, payload: { simulated } }
  const header = Buffer.from(JSON.stringify(payment)).toString('base64')
  const answer = await shop.pay(id, header)
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().status, 'COMPLETED')
  const settlement = shop.settlementOf(answer)
  assert.equal(settlement.payer, 'sim_payer_1')
  await untilEvent(shop, id, 'payment.finalized')
  assert.deepEqual(
    (await eventsOf(shop, id)).map(({ type }) => type),
    ['checkout.created', 'checkout.processing', 'checkout.completed', 'payment.finalized'],
  )
  const paid = await shop.read(id)
  assert.deepEqual(paid.payment, {
    ...{ transaction: settlement.transaction, payer: 'sim_payer_1' },
    ...{ network: 'farthing:simulated', asset: 'sim_usdc' },
    ...{ amount: '12500000', finality: 'finalized' },
  })
})
