/** Events about wallets, keys and endpoints reach every endpoint: a stolen key cannot keep them from anyone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { verifyWebhook } from '@farthing/sdk/webhooks'
import { openDeliverer } from '../../../src/events/webhooks/deliver.ts'
import { tidyDeliveries } from '../../../src/events/webhooks/deliveries.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { type Answer, registerWallet } from '../../support/store.ts'
import { deliverDue, type HookShop, later, openHookShop, openLocalApp } from './support/endpoints.ts'
import { answer, openReceiver, type Received } from './support/receiver.ts'

const farthing = await openLocalApp()
const { ctx } = farthing
const daySeconds = 86_400

const eventOf = ({ body }: Received) => JSON.parse(body.toString()) as Event
/** Requests to an endpoint that is not ordered are sent at once and arrive in any order. */
const inLogOrder = (received: readonly Received[]) =>
  received.toSorted((a, b) => eventOf(a).sequence - eventOf(b).sequence)
const typesOf = (received: readonly Received[]) => inLogOrder(received).map((one) => eventOf(one).type)
const at = (id: string, rest = '') => `/api/v1/webhook-endpoints/${id}${rest}`

async function change(shop: HookShop, id: string, body: object): Promise<void> {
  const changed = await shop.call('PATCH', at(id), body)
  assert.equal(changed.statusCode, 200, changed.body)
}

const steal = (shop: HookShop) => registerWallet(shop, newPayer().address)

test('a disabled endpoint receives events about wallets and its own disabling, and no others', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id } = await shop.register({ url: receiver.url })
  await change(shop, id, { status: 'disabled' })
  await steal(shop)
  await shop.create()
  await deliverDue(ctx)
  assert.deepEqual(typesOf(receiver.received), ['webhook_endpoint.updated', 'wallet.registered'])
})

test('deliveries that an endpoint was still owed when it was disabled are given up, and keep nobody busy', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver(answer(503))
  const { id } = await shop.register({ url: receiver.url, ordered: true })
  await shop.create()
  await shop.create()
  await deliverDue(ctx)
  await change(shop, id, { status: 'disabled' })
  await steal(shop)
  receiver.behave = answer(204)
  await deliverDue(ctx)
  assert.deepEqual(typesOf(receiver.received).slice(1), ['webhook_endpoint.updated', 'wallet.registered'])
  assert.equal(await openDeliverer(ctx).step(() => {}), false, 'nothing is due')
  await tidyDeliveries(ctx, ctx.now())
  const states = (await shop.deliveries(id)).map(({ eventType, state }) => `${eventType} ${state}`)
  assert.deepEqual(states, [
    'wallet.registered delivered',
    'webhook_endpoint.updated delivered',
    'checkout.created undeliverable',
    'checkout.created undeliverable',
  ])
})

test('an event about a wallet goes to endpoints that subscribe to other types', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  await shop.register({ url: receiver.url, types: ['checkout.completed'] })
  await steal(shop)
  await shop.create()
  await deliverDue(ctx)
  assert.deepEqual(typesOf(receiver.received), ['wallet.registered'])
})

test('the URL before a change still receives them for a day, signed as before', async () => {
  const shop = await openHookShop(farthing)
  const [before, after] = [await openReceiver(), await openReceiver()]
  const { id, secret } = await shop.register({ url: before.url })
  await shop.log()
  await change(shop, id, { url: after.url })
  await steal(shop)
  await shop.create()
  await deliverDue(ctx)
  const alarms = ['webhook_endpoint.updated', 'wallet.registered']
  assert.deepEqual(typesOf(before.received), alarms)
  assert.deepEqual(typesOf(after.received), [...alarms, 'checkout.created'])
  for (const received of before.received) await verifyWebhook({ ...received, secrets: secret })
  assert.equal((await shop.call('GET', '/api/v1/webhook-endpoints')).json().data.length, 1)

  const tomorrow = later(farthing, daySeconds + 60)
  await steal(shop)
  await deliverDue(tomorrow)
  assert.equal(before.received.length, 2)
  assert.equal(after.received.length, 4)
})

test('a deleted endpoint receives them for a day, and its secret is deleted afterwards', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id, secret } = await shop.register({ url: receiver.url, types: ['checkout.completed'] })
  assert.equal((await shop.call('DELETE', at(id))).statusCode, 200)
  await tidyDeliveries(ctx, ctx.now())
  await steal(shop)
  await deliverDue(ctx)
  assert.deepEqual(typesOf(receiver.received), ['webhook_endpoint.deleted', 'wallet.registered'])
  for (const received of receiver.received) await verifyWebhook({ ...received, secrets: secret })

  const tomorrow = later(farthing, daySeconds + 60)
  await steal(shop)
  await deliverDue(tomorrow)
  assert.equal(receiver.received.length, 2)
  await tidyDeliveries(tomorrow, tomorrow.now())
  const rows = await ctx.db.query<{ secrets: unknown }>(
    'select secrets from webhook_endpoints where id = $1',
    [id],
  )
  assert.deepEqual(rows, [{ secrets: [] }])
})

test('after secrets are rolled without overlap, the first one still checks these events, and only these', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const { id, secret } = await shop.register({ url: receiver.url })
  for (let i = 0; i < 6; i++) await shop.call('POST', at(id, '/roll-secret'), { overlapSeconds: 0 })
  await steal(shop)
  await shop.create()
  await deliverDue(ctx)
  const checked = await Promise.all(
    inLogOrder(receiver.received).map((received) =>
      verifyWebhook({ ...received, secrets: secret }).then(
        ({ type }) => type,
        () => 'refused',
      ),
    ),
  )
  assert.deepEqual(checked, [...Array(6).fill('webhook_endpoint.updated'), 'wallet.registered', 'refused'])
})

test('every change of an endpoint is an event without secrets, and a change of nothing is none', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver()
  const other = await openReceiver()
  await shop.register({ url: other.url, types: ['checkout.completed'] })
  const made = await shop.register({ url: receiver.url })
  await change(shop, made.id, { types: ['checkout.completed'] })
  await change(shop, made.id, { types: ['checkout.completed'], status: 'enabled' })
  await shop.call('POST', at(made.id, '/roll-secret'), {})
  await shop.call('DELETE', at(made.id))
  const log = (await shop.log()).filter(
    ({ data }) => 'webhookEndpoint' in data && data.webhookEndpoint.id === made.id,
  )
  const verbs = ['created', 'updated', 'updated', 'deleted']
  assert.deepEqual(
    log.map(({ type }) => type),
    verbs.map((verb) => `webhook_endpoint.${verb}`),
  )
  assert(!JSON.stringify(log).includes('whsec_'))
  await deliverDue(ctx)
  assert.deepEqual(
    typesOf(other.received),
    log.map(({ type }) => type),
    'the other endpoint hears of each',
  )
  assert.deepEqual(
    typesOf(receiver.received),
    log.slice(1).map(({ type }) => type),
  )
})

test('a rest that the receiver asked for ends early only if the URL changes or the endpoint is switched', async () => {
  const shop = await openHookShop(farthing)
  const receiver = await openReceiver(answer(429, { 'retry-after': '3600' }))
  const { id } = await shop.register({ url: receiver.url })
  await shop.create()
  await deliverDue(ctx)
  receiver.behave = answer(204)
  const soon = later(farthing, 600)
  for (const body of [{ ordered: true }, { types: [] }, { status: 'enabled' }, { url: receiver.url }]) {
    await change(shop, id, body)
    await deliverDue(soon)
    assert.equal(receiver.received.length, 1, JSON.stringify(body))
  }
  await change(shop, id, { status: 'disabled' })
  await deliverDue(soon)
  assert(receiver.received.length > 1)
})

test('a store cannot pile up endpoints by deleting them', async () => {
  const shop = await openHookShop(farthing)
  const { id } = await shop.register({ url: 'https://hooks.example/0' })
  for (let i = 1; i <= 48; i++) await change(shop, id, { url: `https://hooks.example/${i}` })
  assertLimit(await shop.call('PATCH', at(id), { url: 'https://hooks.example/49' }))
  assertLimit(await shop.call('POST', '/api/v1/webhook-endpoints', { url: 'https://hooks.example/50' }))
  assert.equal((await shop.call('DELETE', at(id))).statusCode, 200)
})

function assertLimit(refused: Answer): void {
  assert.equal(refused.statusCode, 409, refused.body)
  assert.equal(refused.json().code, 'endpoint_limit')
}
