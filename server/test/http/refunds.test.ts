/** Refunds over HTTP: who may ask for what, and that asking twice refunds once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Payment, Refund, StoreCheckout } from '@farthing/sdk'
import { openTestApp } from '../support/app.ts'
import { creditByHand, payer, payFinally } from '../support/by-hand.ts'
import { type Answer, assertProblem, openStore } from '../support/store.ts'

/** The keys' own limit is another test's matter. */
const farthing = await openTestApp({ KEY_REQUESTS_PER_SECOND: '10000' })

async function openPaid() {
  const shop = await openStore(farthing)
  const { id: checkoutId } = await shop.create()
  const paymentId = await payFinally(farthing, checkoutId)
  const path = `/api/v1/payments/${paymentId}/refunds`
  const ask = (body: unknown = {}, headers: Record<string, string> = {}) =>
    shop.call('POST', path, body, headers)
  return { shop, checkoutId, paymentId, path, ask }
}

function idsOf(answers: readonly Answer[]): Set<string> {
  return new Set(answers.filter(({ statusCode }) => statusCode === 201).map((each) => each.json().id))
}

test('1,000 double clicks at once with one Idempotency-Key make one refund, and each gets it', async () => {
  const { shop, ask } = await openPaid()
  const click = () => ask({ amount: '2000000' }, { 'idempotency-key': 'return-1' })
  const clicks = await Promise.all(Array.from({ length: 1_000 }, click))
  // They wait for one another, on a slow machine too long for some: 503 says to repeat the request.
  for (const [i, { statusCode }] of clicks.entries()) if (statusCode === 503) clicks[i] = await click()
  assert.deepEqual(new Set(clicks.map(({ statusCode }) => statusCode)), new Set([201]))
  assert.equal(idsOf(clicks).size, 1)
  const { data } = (await shop.call('GET', '/api/v1/refunds')).json()
  assert.equal(data.length, 1)
})

test('of tabs that race for the whole payment without a key, one gets it and the others are told that nothing is left', async () => {
  const { shop, checkoutId, ask } = await openPaid()
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask()))
  assert.equal(idsOf(answers).size, 1)
  for (const answer of answers.filter(({ statusCode }) => statusCode !== 201)) {
    assertProblem(answer, 409, 'refund_exceeds_payment')
    assert.equal(answer.json().left, '0')
  }
  const checkout: StoreCheckout = (await shop.call('GET', `/api/v1/checkouts/${checkoutId}`)).json()
  assert.deepEqual([checkout.status, checkout.refundedAmount], ['COMPLETED', '0'])
  assert.deepEqual(
    checkout.refunds?.map(({ amount, recipient }) => [amount, recipient]),
    [['12500000', payer]],
  )
})

test('an Idempotency-Key belongs to one refund: other bytes or another payment are refused', async () => {
  const first = await openPaid()
  const headers = { 'idempotency-key': 'return-2' }
  const made = await first.ask({ amount: '1000000' }, headers)
  assert.equal(made.statusCode, 201, made.body)
  assertProblem(await first.ask({ amount: '1000001' }, headers), 422, 'idempotency_key_reused')
  const { id } = await first.shop.create()
  const other = `/api/v1/payments/${await payFinally(farthing, id)}/refunds`
  const reused = await first.shop.call('POST', other, { amount: '1000000' }, headers)
  assertProblem(reused, 422, 'idempotency_key_reused')
  assert.equal((await openPaid().then(({ ask }) => ask({}, headers))).statusCode, 201)
})

test('the payment says what is left of it, a canceled refund gives it back, and the list finds refunds', async () => {
  const { shop, checkoutId, paymentId, ask } = await openPaid()
  const read = async (): Promise<Payment> => (await shop.call('GET', `/api/v1/payments/${paymentId}`)).json()
  assert(!('refundable' in (await read())))
  const refund: Refund = (await ask({ amount: '2500000', reason: 'Broken cup' })).json()
  assert.deepEqual([(await read()).refundable, (await read()).refundedAmount], ['10000000', '0'])
  const by = async (query: string): Promise<string[]> =>
    (await shop.call('GET', `/api/v1/refunds?${query}`)).json().data.map(({ id }: Refund) => id)
  for (const query of [`paymentId=${paymentId}`, `checkoutId=${checkoutId}`, 'status=REQUESTED'])
    assert.deepEqual(await by(query), [refund.id], query)
  assert.deepEqual(await by('status=SENT'), [])
  const canceled = await shop.call('POST', `/api/v1/refunds/${refund.id}/cancel`)
  assert.deepEqual([canceled.statusCode, canceled.json().status], [200, 'CANCELED'])
  assert.equal((await read()).refundable, '12500000')
  const types = (await shop.events()).map(({ type }) => type).filter((type) => type.startsWith('refund.'))
  assert.deepEqual(types, ['refund.requested', 'refund.canceled'])
})

test('a key cannot choose a recipient, also not for money whose sender did not sign', async () => {
  const { shop, ask } = await openPaid()
  const elsewhere = `0x${'ab'.repeat(20)}`
  assertProblem(await ask({ recipient: elsewhere }), 403, 'recipient_needs_member')
  assert.equal((await ask({ amount: '1000000', recipient: payer.toLowerCase() })).json().recipient, payer)
  const plain = await creditByHand(farthing, (await shop.create()).id)
  await farthing.ctx.db.query(
    'update credits set finalized_at = clock(), safe_at = clock() where payment_id = $1',
    [plain],
  )
  const path = `/api/v1/payments/${plain}/refunds`
  assertProblem(await shop.call('POST', path, { recipient: payer }), 403, 'recipient_needs_member')
  const made = await shop.call('POST', path, {})
  assert.deepEqual([made.statusCode, made.json().recipient], [201, null])
})

test('a key needs refunds:write to ask and to cancel, and refunds:read to look', async () => {
  const { shop, path, ask } = await openPaid()
  const { id } = (await ask({ amount: '1000000' })).json()
  const keyWith = async (...scopes: string[]) => ({
    'x-api-key': (await shop.call('POST', '/api/v1/keys', { scopes })).json().key,
  })
  const reader = await keyWith('refunds:read', 'payments:write')
  const stranger = await keyWith('payments:write')
  assertProblem(await shop.call('POST', path, {}, reader), 403, 'scope_required')
  assertProblem(
    await shop.call('POST', `/api/v1/refunds/${id}/cancel`, undefined, reader),
    403,
    'scope_required',
  )
  assert.equal((await shop.call('GET', `/api/v1/refunds/${id}`, undefined, reader)).statusCode, 200)
  for (const at of ['/api/v1/refunds', `/api/v1/refunds/${id}`])
    assertProblem(await shop.call('GET', at, undefined, stranger), 403, 'scope_required')
})

test('a payment that is not final, not the store’s or not of a proven wallet is not refunded', async () => {
  const { shop, paymentId, path } = await openPaid()
  const other = await openPaid()
  assertProblem(await other.shop.call('POST', path, {}), 404, 'not_found')
  await farthing.ctx.db.query('update credits set finalized_at = null where payment_id = $1', [paymentId])
  const early = await shop.call('POST', path, {})
  assertProblem(early, 409, 'payment_not_final')
  assert(Date.parse(early.json().expectedAt) > Date.now())
  assert(early.headers['retry-after'])
  await farthing.ctx.db.query('update wallets set proven_at = null where store_id = $1', [other.shop.id])
  assertProblem(await other.ask(), 409, 'wallet_unproven')
})
