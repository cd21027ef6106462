import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { registerWallet } from '../../support/store.ts'
import { deliverDue, later, openHookShop, openLocalApp } from './support/endpoints.ts'
import { openReceiver } from './support/receiver.ts'

const farthing = await openLocalApp()

/** An ordered endpoint whose handler refuses what is about an order that it does not know. */
async function openOrdered() {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver((received, response) => {
    const { data } = JSON.parse(received.body.toString()) as { data: { checkout?: { orderId?: string } } }
    response.writeHead(data.checkout?.orderId === 'no such order' ? 404 : 204).end()
  })
  await shop.register({ url: receiver.url, ordered: true })
  await deliverDue(farthing.ctx)
  receiver.received.splice(0)
  const types = () => receiver.received.map(({ body }) => (JSON.parse(body.toString()) as Event).type)
  return { shop, types, receiver }
}

test('at an ordered endpoint, a security event overtakes a delivery that fails, and the rest keeps its order', async () => {
  const { shop, types } = await openOrdered()
  await shop.create({ orderId: 'no such order' })
  await registerWallet(shop, newPayer().address)
  await shop.create({ orderId: 'behind' })
  await deliverDue(farthing.ctx)
  assert.deepEqual(types().toSorted(), ['checkout.created', 'wallet.registered'])
  for (const hours of [1, 6]) {
    const then = later(farthing, hours * 3_600)
    await deliverDue(then)
    await then.close()
  }
  assert.equal(types().filter((type) => type === 'wallet.registered').length, 1, 'once')
  assert(types().length > 2, 'the one that fails is tried again')
})

test('security events overtake in their own order, and a failing one holds up neither the others nor what is before it', async () => {
  const { shop, types, receiver } = await openOrdered()
  await shop.create({ orderId: 'no such order' })
  const addresses = [newPayer().address, newPayer().address, newPayer().address]
  for (const address of addresses) await registerWallet(shop, address)
  await deliverDue(farthing.ctx)
  const told = receiver.received.flatMap(({ body }) => {
    const { type, data } = JSON.parse(body.toString()) as {
      type: string
      data: { wallet?: { walletAddress: string } }
    }
    return type === 'wallet.registered' ? (data.wallet?.walletAddress ?? []) : []
  })
  assert.deepEqual(told, addresses)
  assert.equal(types().filter((type) => type === 'checkout.created').length, 1)
})
