import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, StoreCheckout } from '@farthing/sdk'
import { expireCheckouts } from '../../src/checkouts/expire.ts'
import { openTestApp } from '../support/app.ts'
import { letTimePass, setStatus } from '../support/by-hand.ts'
import { assertProblem, openStore, send } from '../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const path = '/api/v1/checkouts'

test('an OPEN checkout can be canceled; canceling it again changes nothing; any other status is refused', async () => {
  const { id } = await shop.create()
  const cancel = () => shop.call('POST', `${path}/${id}/cancel`)
  const first = await cancel()
  assert.equal(first.statusCode, 200)
  assert.equal(first.json<StoreCheckout>().status, 'CANCELED')
  assert.equal((await cancel()).body, first.body)
  await setStatus(farthing, id, 'PROCESSING')
  const inProgress = await cancel()
  assertProblem(inProgress, 409, 'payment_in_progress')
  assert.match(String(inProgress.headers['retry-after']), /^[1-9]\d*$/)
  for (const status of ['COMPLETED', 'EXPIRED']) {
    await setStatus(farthing, id, status)
    assert.match(assertProblem(await cancel(), 409, 'not_cancelable').detail, new RegExp(status))
  }
})

test('a checkout past its expiry cannot be canceled, even before the sweep has marked it', async () => {
  const { id } = await shop.create()
  await letTimePass(farthing, id)
  assertProblem(await shop.call('POST', `${path}/${id}/cancel`), 409, 'not_cancelable')
})

test('ten simultaneous cancels record one event', async () => {
  const seller = await openStore(farthing)
  const { id } = await seller.create()
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => seller.call('POST', `${path}/${id}/cancel`)),
  )
  assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], [200])
  assert.deepEqual(
    (await seller.events()).filter(({ checkoutId }) => checkoutId === id).map(({ type }) => type),
    ['checkout.created', 'checkout.canceled'],
  )
})

test('concurrent sweeps expire each checkout once, with one event, and leave the others alone', async () => {
  const seller = await openStore(farthing)
  const old = await Promise.all(Array.from({ length: 30 }, () => seller.create()))
  for (const { id } of old) await letTimePass(farthing, id)
  const fresh = await seller.create()
  const canceled = await seller.create()
  await seller.call('POST', `${path}/${canceled.id}/cancel`)
  await letTimePass(farthing, canceled.id)
  const now = new Date()
  const swept = await Promise.all(Array.from({ length: 3 }, () => expireCheckouts(farthing.ctx, now)))
  const rest = await expireCheckouts(farthing.ctx, now)
  assert(swept.reduce((sum, count) => sum + count, rest) >= old.length)
  assert.equal(await expireCheckouts(farthing.ctx, now), 0)
  const expired = (await seller.events()).filter(({ type }) => type === 'checkout.expired')
  assert.deepEqual(expired.map(({ checkoutId }) => checkoutId).sort(), old.map(({ id }) => id).sort())
  const status = async (id: string) => (await seller.call('GET', `${path}/${id}`)).json<Checkout>().status
  assert.equal(await status(fresh.id), 'OPEN')
  assert.equal(await status(canceled.id), 'CANCELED')
})

test('a checkout past its expiry cannot be paid, even before the sweep has marked it', async () => {
  const { id } = await shop.create()
  await letTimePass(farthing, id)
  assertProblem(await send(farthing.app, 'POST', `${path}/${id}`), 410, 'checkout_expired')
  assert.equal((await shop.call('GET', `${path}/${id}`)).json<Checkout>().status, 'OPEN')
})
