/** The simulated network: a test store is paid without a node, a settler or gas. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { findUnpaidSince } from '../../../src/audit/unpaid.ts'
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

test('the audit has nothing to say about what was simulated, not even about what the store accepted', async () => {
  const id = await shop.create('12.50')
  const acceptedId = await shop.create('9.00')
  const { accepts } = await shop.require(id)
  const payment = {
    x402Version: 2,
    accepted: accepts.at(-1),
    payload: {
      simulated: {
        payer: 'sim_payer_2',
        nonce: `0x${randomBytes(32).toString('hex')}`,
        case: 'payment.paid',
      },
    },
  }
  await shop.pay(id, Buffer.from(JSON.stringify(payment)).toString('base64'))
  await untilEvent(shop, id, 'payment.finalized')
  // Another checkout completed by less than its price, as an acceptance does.
  await app.ctx.db.query(`update credits set checkout_id = $1, amount = 1 where checkout_id = $2`, [
    acceptedId,
    id,
  ])
  await app.ctx.db.query(`update checkouts set status = 'COMPLETED' where id = $1`, [acceptedId])
  await app.ctx.db.query(`update checkouts set status = 'EXPIRED' where id = $1`, [id])
  assert.equal(await findUnpaidSince(app.ctx.db, app.ctx.config.cell, new Date()), 0)
  assert.deepEqual(
    await app.ctx.db.query("select 1 from audit_changes where network = 'farthing:simulated'"),
    [],
  )
})
