/** The rows of the answer table that refuse a payment for an OPEN checkout. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newPayer, paymentHeader } from '../support/chain/evm-payment.ts'
import { watchPauses } from '../support/pauses.ts'
import { openShop, type Shop } from '../support/shop.ts'
import { type Answer, alter, assertRefused, decode, encode, eventsOf } from '../support/watch.ts'

/** A chain that mines by itself. */
const shop = await openShop()

/** Bad payments slow down the client address they come from, so each one comes from a different address. */
let addresses = 0
async function payFromElsewhere(at: Shop, id: string, header: string): Promise<Answer> {
  return await at.request({
    method: 'POST',
    url: `/api/v1/checkouts/${id}`,
    headers: { 'payment-signature': header },
    remoteAddress: `10.0.0.${++addresses}`,
  })
}

test('8. OPEN, a payment that cannot be parsed or has another version: 400 with the terms', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const terms = await shop.require(id)
  const header = await paymentHeader(terms, payer.key)
  const changed = (change: Parameters<typeof alter>[1]) => alter(header, change)
  for (const unreadable of [
    ...['', ' ', '!', `${header}=`, header.slice(0, -1), Buffer.from('{"x402Version":2').toString('base64')],
    ...[Buffer.from(decode<object>(header).toString()).toString('base64url'), `${header},${header}`],
    ...[null, 1, '', [], {}, [{ x402Version: 2 }]].map(encode),
    ...[1, 3, '2', null].map((version) =>
      changed((payment) => Object.assign(payment, { x402Version: version })),
    ),
    ...['accepted', 'payload'].map((name) => changed((payment) => Reflect.deleteProperty(payment, name))),
    changed(({ payload }) => Reflect.deleteProperty(payload, 'signature')),
    changed(({ payload }) => Object.assign(payload, { signature: payload.signature.slice(2) })),
    changed(({ payload }) => Object.assign(payload, { signature: '0x' })),
    ...['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce'].flatMap((name) =>
      [undefined, null, 1, '', '-1', 'abc', '0x1', `0x${'g'.repeat(64)}`, `${2n ** 256n}`].map((value) =>
        changed(({ payload }) => Object.assign(payload.authorization, { [name]: value })),
      ),
    ),
  ]) {
    const answer = await shop.pay(id, unreadable)
    assert.equal(answer.statusCode, 400, `${unreadable}: ${answer.body}`)
    assert.equal(answer.json().code, 'malformed_payment')
    assert.deepEqual(decode<unknown>(String(answer.headers['payment-required'])), terms)
    assert.equal(answer.headers['payment-response'], undefined)
  }
})

test('10. OPEN, a payment that would not settle: 402 with the reason and a failed settlement; nothing is charged', async () => {
  const stranger = newPayer()
  const seconds = BigInt(Math.floor(Date.now() / 1_000))
  const id = await shop.create()
  const other = await shop.create()
  const terms = await shop.require(id)
  const [accepted] = terms.accepts
  assert(accepted)
  type Overrides = Parameters<typeof paymentHeader>[2]
  const cases: readonly (readonly [string, Overrides, Parameters<typeof alter>[1]?])[] = [
    ['unsupported_scheme', {}, (payment) => Object.assign(payment.accepted, { scheme: 'upto' })],
    ['invalid_network', {}, (payment) => Object.assign(payment.accepted, { network: 'eip155:8453' })],
    [
      'invalid_payment_requirements',
      {},
      (payment) => Object.assign(payment.accepted, { asset: stranger.address }),
    ],
    ['invalid_exact_evm_recipient_mismatch', { to: stranger.address }],
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: 999_999n }],
    ['invalid_exact_evm_payload_authorization_value_mismatch', { value: 1_000_001n }],
    ['invalid_exact_evm_payload_authorization_valid_after', { validAfter: seconds + 600n }],
    ['invalid_exact_evm_payload_authorization_valid_before', { validBefore: seconds + 5n }],
    ['invalid_exact_evm_payload_authorization_valid_before', { validBefore: seconds + 3_600n }],
    ['invalid_exact_evm_signature', { key: stranger.key, from: (await shop.fund()).address }],
    ['invalid_exact_evm_signature', { signature: `0x${'11'.repeat(65)}` }],
    ['invalid_exact_evm_signature', { type: 'ReceiveWithAuthorization' }],
    ['invalid_exact_evm_insufficient_balance', { key: stranger.key }],
  ]
  for (const [reason, overrides, change] of cases) {
    const payer = await shop.fund()
    const signed = await paymentHeader(terms, payer.key, overrides)
    const answer = await payFromElsewhere(shop, id, change ? alter(signed, change) : signed)
    assertRefused(shop, answer, reason)
    assert.deepEqual(answer.json(), { ...terms, error: reason })
    assert.equal(await shop.chain.balance(payer.address), 1_000_000_000n)
  }
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.equal((await eventsOf(shop, id)).length, 1, 'an event other than checkout.created was recorded')
  assert.equal((await shop.read(other)).status, 'OPEN')
})

test('bad payments slow down every address in their IPv6 /64, and no other', async () => {
  const id = await shop.create()
  const payFrom = async (remoteAddress: string, overrides: Parameters<typeof paymentHeader>[2] = {}) => {
    const header = await paymentHeader(await shop.require(id), newPayer().key, overrides)
    const start = performance.now()
    const answer = await shop.request({
      method: 'POST',
      url: `/api/v1/checkouts/${id}`,
      headers: { 'payment-signature': header },
      remoteAddress,
    })
    assert.equal(answer.statusCode, 402, answer.body)
    return performance.now() - start
  }
  // Twenty failures are free; two more make one second. Failures are forgotten by the clock, which stands still here.
  shop.clock.now = new Date()
  for (let i = 0; i < 22; i++) await payFrom(`2001:db8:0:1::${i.toString(16)}`, { value: 1n })
  const pauses = watchPauses()
  const slowed = await payFrom('2001:db8:0:1:ffff::1')
  assert(slowed >= 990, `${slowed} ms`)
  const other = await payFrom('2001:db8:0:2::1')
  assert(other < 990 + pauses(), `${other} ms`)
  shop.clock.now = null
})

test('10 before 11: a payment that does not match the terms gets 402 even while no settler runs', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer, { value: 1n })
  await shop.stopWork()
  // The answer to "is a settler running" is cached for half a second.
  shop.clock.now = new Date(Date.now() + 1_000)
  const answer = await payFromElsewhere(shop, id, header)
  shop.clock.now = null
  shop.startWork()
  assertRefused(shop, answer, 'invalid_exact_evm_payload_authorization_value_mismatch')
})
