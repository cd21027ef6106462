/** The event log names who caused what, and reads as an audit log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKeySecret, Event } from '@farthing/sdk'
import { expireCheckouts } from '../../src/checkouts/expire.ts'
import { openTestApp } from '../support/app.ts'
import { creditByHand, letTimePass } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { startDeciding } from '../support/decide.ts'
import { openStore, type StoreClient, send } from '../support/store.ts'

const farthing = await openTestApp()
startDeciding(farthing)
const operator = { type: 'operator', id: 'test', name: 'test' }

/** A store, and one of its keys that has a label. */
async function openTill(): Promise<{ shop: StoreClient; till: StoreClient['call']; actor: object }> {
  // A wallet of its own: what reaches one that stores share is not for one of them to decide.
  const shop = await openStore(farthing, { evmWallet: newPayer().address })
  const made = await shop.call('POST', '/api/v1/keys', { label: 'till 3' })
  const { id, key } = made.json<ApiKeySecret>()
  return {
    shop,
    async till(method, path, body) {
      const answer = await send(farthing.app, method, path, body, { 'x-api-key': key })
      assert(answer.statusCode < 300, answer.body)
      return answer
    },
    actor: { type: 'key', id, name: 'till 3' },
  }
}

const actorsOf = (events: readonly Event[]) => events.map(({ type, actor }) => [type, actor])

test('a change names the key or the operator behind it, and what time caused names nobody', async () => {
  const { shop, till, actor } = await openTill()
  const [first, second] = [await shop.create(), await shop.create()]
  await till('POST', `/api/v1/checkouts/${first.id}/cancel`)
  await till('PATCH', `/api/v1/stores/${shop.id}`, { name: 'Till shop' })
  await till('PATCH', `/api/v1/stores/${shop.id}`, { name: 'Till shop' })
  const { id } = (await till('POST', '/api/v1/webhook-endpoints', { url: 'https://hooks.example/' })).json()
  await till('PATCH', `/api/v1/webhook-endpoints/${id}`, { ordered: true })
  await till('DELETE', `/api/v1/webhook-endpoints/${id}`)
  await letTimePass(farthing, second.id)
  await expireCheckouts(farthing.ctx, new Date())
  const own = { type: 'key', id: shop.key.split('_')[2], name: null }
  assert.deepEqual(actorsOf(await shop.events()), [
    ['wallet.registered', operator],
    ['key.created', operator],
    ['key.created', own],
    ['checkout.created', own],
    ['checkout.created', own],
    ['checkout.canceled', actor],
    ['store.updated', actor],
    ['webhook_endpoint.created', actor],
    ['webhook_endpoint.updated', actor],
    ['webhook_endpoint.deleted', actor],
    ['checkout.expired', null],
  ])
})

test('a decision about a payment is told once, with its actor, before what follows from it', async () => {
  const { shop, till, actor } = await openTill()
  const { id } = await shop.create()
  const [wanted, other] = [await creditByHand(farthing, id), await creditByHand(farthing, id)]
  for (let i = 0; i < 2; i++) {
    await till('POST', `/api/v1/payments/${wanted}/accept`, { checkoutId: id })
    await till('POST', `/api/v1/payments/${other}/dismiss`)
  }
  const events = (await shop.events()).slice(-3)
  assert.deepEqual(actorsOf(events), [
    ['payment.accepted', actor],
    ['checkout.completed', null],
    ['payment.dismissed', actor],
  ])
  const [accepted, completed, dismissed] = events
  assert(accepted && 'payment' in accepted.data && accepted.data.payment.id === wanted)
  assert.equal(accepted.checkoutId, id)
  assert((accepted.checkoutVersion ?? 0) < (completed?.checkoutVersion ?? 0))
  assert(dismissed && 'payment' in dismissed.data && dismissed.data.payment.dismissedAt)
})

test('the log is read by actor, by kind of event, and by both', async () => {
  const { shop, till, actor } = await openTill()
  const { id } = await shop.create()
  await till('POST', `/api/v1/checkouts/${id}/cancel`)
  await till('PATCH', `/api/v1/stores/${shop.id}`, { name: 'Till shop' })
  await shop.events()
  const read = async (query: string) =>
    (await shop.call('GET', `/api/v1/events?${query}`)).json<{ data: Event[] }>().data.map(({ type }) => type)
  const by = `actor=${(actor as { id: string }).id}`
  assert.deepEqual(await read(by), ['checkout.canceled', 'store.updated'])
  assert.deepEqual(await read('actor=test'), ['wallet.registered', 'key.created'])
  assert.deepEqual(await read('type=key.*'), ['key.created', 'key.created'])
  assert.deepEqual(await read(`type=checkout.*&${by}`), ['checkout.canceled'])
  assert.equal((await shop.call('GET', '/api/v1/events?type=check*')).statusCode, 422)
})
