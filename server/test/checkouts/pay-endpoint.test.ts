/** The payment endpoint: the ordered table of answers, except those that need settlement. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, PaymentRequired } from '@farthing/sdk'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import { openTestApp } from '../support/app.ts'
import {
  completeByHand,
  encodePayment,
  letTimePass,
  payer,
  paymentFor,
  setStatus,
} from '../support/by-hand.ts'
import { type Answer, assertProblem, openStore, send } from '../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const doors = [
  { path: '/api/v1/checkouts', url: 'https://farthing.example/api/v1/checkouts' },
  { path: '/c', url: 'https://pay.farthing.example/c' },
] as const

type Headers = Record<string, string>
const pay = (id: string, headers: Headers = {}, body?: string | Buffer, path: string = doors[0].path) =>
  send(farthing.app, 'POST', `${path}/${id}`, body, headers)

function assertNoTerms(answer: Answer): void {
  assert.equal(answer.headers['payment-required'], undefined, 'terms were offered')
  assert.equal(answer.headers['payment-response'], undefined)
}

const sample = encodePayment(paymentFor((await pay((await shop.create()).id)).json()))
const noHeader = {}
const readable = { 'payment-signature': sample }
const unreadable = { 'payment-signature': '?' }

test('no such checkout: 404, with or without a payment, whatever characters the id contains', async () => {
  const { id } = await shop.create()
  const none = `ch_00${'0'.repeat(26)}`
  for (const unknown of [none, 'ch_', 'x', '%00', id.toUpperCase(), `${id}0`, 'x'.repeat(201), shop.id])
    for (const headers of [noHeader, readable, unreadable])
      for (const { path } of doors) {
        const answer = await pay(unknown, headers, undefined, path)
        assertProblem(answer, 404, 'not_found')
        assertNoTerms(answer)
      }
})

test('COMPLETED, no header: 200 with the checkout and the settlement of the payment that counts', async () => {
  const { id } = await shop.create()
  const transaction = await completeByHand(farthing, id)
  for (const { path } of doors) {
    const answer = await pay(id, noHeader, undefined, path)
    assert.equal(answer.statusCode, 200, answer.body)
    assert.equal(answer.json<Checkout>().status, 'COMPLETED')
    assert.equal(answer.headers['payment-required'], undefined)
    assert.deepEqual(decodePaymentResponseHeader(String(answer.headers['payment-response'])), {
      success: true,
      transaction,
      network: 'eip155:8453',
      payer,
    })
  }
})

test('COMPLETED, a payment: 409 already_paid, and nothing is charged', async () => {
  const { id } = await shop.create()
  await completeByHand(farthing, id)
  for (const headers of [readable, unreadable]) {
    const answer = await pay(id, headers)
    assertProblem(answer, 409, 'already_paid')
    assertNoTerms(answer)
  }
})

test('COMPLETED by a payment that left the chain: in progress, and no terms', async () => {
  const { id } = await shop.create()
  await completeByHand(farthing, id)
  await farthing.ctx.db.query('update credits set orphaned_at = clock() where checkout_id = $1', [id])
  const answer = await pay(id)
  assertProblem(answer, 409, 'payment_in_progress')
  assertNoTerms(answer)
})

test('PROCESSING: 409 payment_in_progress with Retry-After, even past its expiry', async () => {
  const { id } = await shop.create()
  await setStatus(farthing, id, 'PROCESSING')
  for (const headers of [noHeader, unreadable]) {
    const answer = await pay(id, headers)
    assertProblem(answer, 409, 'payment_in_progress')
    assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
    assertNoTerms(answer)
  }
  await letTimePass(farthing, id)
  assertProblem(await pay(id), 409, 'payment_in_progress')
})

test('EXPIRED, CANCELED, or OPEN past its expiry: 410 and no terms', async () => {
  const [expired, canceled, past] = [await shop.create(), await shop.create(), await shop.create()]
  await setStatus(farthing, expired.id, 'EXPIRED')
  await shop.call('POST', `/api/v1/checkouts/${canceled.id}/cancel`)
  await letTimePass(farthing, past.id)
  for (const [{ id }, code] of [
    [expired, 'checkout_expired'],
    [canceled, 'checkout_canceled'],
    [past, 'checkout_expired'],
  ] as const)
    for (const headers of [noHeader, readable, unreadable])
      for (const { path } of doors) {
        const answer = await pay(id, headers, undefined, path)
        assertProblem(answer, 410, code)
        assertNoTerms(answer)
      }
})

test('OPEN, a header that cannot be parsed as a single x402 version 2 payment: 400 with the terms', async () => {
  const { id } = await shop.create()
  const terms = (await pay(id)).json<PaymentRequired>()
  const padded = encodePayment({ ...paymentFor(terms), note: '' })
  assert(padded.endsWith('='), 'the sample needs padding')
  for (const header of [
    ...['', ' ', 'x', '????', 'null', '{}', '{"x402Version":2}', 'Bearer abc', 'ÿ'],
    ...[padded.replace(/=+$/, ''), `${padded}=`, `${padded}\t${padded}`, `${padded}, ${padded}`],
    ...[`${padded},${padded}`, `"${padded}"`, `${padded.slice(0, 8)} ${padded.slice(8)}`, `-_${padded}`],
    ...[
      encodePayment(null),
      encodePayment(2),
      encodePayment('2'),
      encodePayment([]),
      encodePayment([{ x402Version: 2 }]),
      encodePayment({}),
    ],
    ...[
      encodePayment({ x402Version: 1 }),
      encodePayment({ x402Version: '2' }),
      encodePayment({ x402version: 2 }),
    ],
    ...[Buffer.from('{"x402Version":2').toString('base64'), Buffer.from([0xff, 0xfe]).toString('base64')],
    encodePayment({ X402Version: 2 }).toLowerCase(),
  ]) {
    const answer = await pay(id, { 'payment-signature': header })
    assertProblem(answer, 400, 'malformed_payment')
    assert.deepEqual(decodePaymentRequiredHeader(String(answer.headers['payment-required'])), terms)
    assert.equal(answer.headers['payment-response'], undefined)
  }
})

test('OPEN, a payment that names an impossible network or scheme, however it is written: refused, never a 500', async () => {
  const { id } = await shop.create()
  const { accepted, ...rest } = paymentFor((await pay(id)).json())
  for (const text of ['\0', `${accepted.network}\0`, '\ud800', '\u202e', 'x'.repeat(5_000), '']) {
    for (const change of [{ network: text }, { scheme: text }]) {
      const header = encodePayment({ ...rest, accepted: { ...accepted, ...change } })
      const { statusCode } = await pay(id, { 'payment-signature': header })
      assert([400, 402].includes(statusCode), `${JSON.stringify(change)}: ${statusCode}`)
    }
  }
})

test('OPEN, a payment while no settler runs: 503 with Retry-After, and it may be sent again unchanged', async () => {
  const { id } = await shop.create()
  const terms = (await pay(id)).json<PaymentRequired>()
  const answer = await pay(id, { 'payment-signature': encodePayment(paymentFor(terms)) })
  assertProblem(answer, 503, 'settlement_unavailable')
  assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
  assertNoTerms(answer)
  assert.equal((await pay(id)).statusCode, 402, 'the checkout is no longer OPEN')
})

test('OPEN, no header: 402 with the terms in body and header, and the called URL as their resource', async () => {
  const { id } = await shop.create()
  const [api, page] = await Promise.all(doors.map(({ path }) => pay(id, noHeader, undefined, path)))
  assert(api && page)
  for (const [i, answer] of [api, page].entries()) {
    assert.equal(answer.statusCode, 402)
    assert.equal(answer.json<PaymentRequired>().resource.url, `${doors[i]?.url}/${id}`)
    assert.deepEqual(decodePaymentRequiredHeader(String(answer.headers['payment-required'])), answer.json())
  }
  assert.deepEqual(page.json<PaymentRequired>().accepts, api.json<PaymentRequired>().accepts)
})

test('the same checkout gets the same terms every time', async () => {
  const { id } = await shop.create()
  const bodies = await Promise.all(Array.from({ length: 5 }, async () => (await pay(id)).body))
  assert.equal(new Set(bodies).size, 1)
})

test('any body of any type up to 64 KiB is ignored; a larger one is refused', async () => {
  const { id } = await shop.create()
  for (const { path } of doors)
    for (const type of [
      ...['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'],
      ...['application/octet-stream', 'image/png', 'application/json; charset=latin1', 'APPLICATION/JSON'],
      ...['', 'x', '*/*', ';', 'application/json,application/json', 'text/plain; boundary="'],
    ])
      for (const body of ['', '{', '{"a":1,"a":2}', '\0', Buffer.alloc(65_536, 0xff)]) {
        const answer = await pay(id, { 'content-type': type }, body, path)
        assert.equal(answer.statusCode, 402, `${type}: ${answer.body}`)
      }
  const large = await pay(id, { 'content-type': 'text/plain' }, Buffer.alloc(65_537))
  assertProblem(large, 413, 'body_too_large')
  assertNoTerms(large)
})

test('a page of any origin may ask for terms and pay: preflights and answers carry the headers browsers need', async () => {
  const { id } = await shop.create()
  const headers = {
    origin: 'https://agent.example',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'payment-signature,access-control-expose-headers,content-type',
  }
  const listOf = (answer: Answer, name: string) => String(answer.headers[name]).toLowerCase().split(/, */)
  for (const { path } of doors) {
    const preflight = await send(farthing.app, 'OPTIONS', `${path}/${id}`, undefined, headers)
    assert.equal(preflight.statusCode, 204)
    assert.equal(preflight.headers['access-control-allow-origin'], '*')
    assert(listOf(preflight, 'access-control-allow-methods').includes('post'))
    for (const name of headers['access-control-request-headers'].split(','))
      assert(listOf(preflight, 'access-control-allow-headers').includes(name), name)
    for (const answer of [
      await pay(id, noHeader, undefined, path),
      await pay(id, unreadable, undefined, path),
      await pay(id, readable, undefined, path),
      await pay('none', noHeader, undefined, path),
      await pay(id, { 'content-type': 'text/plain' }, Buffer.alloc(65_537), path),
    ]) {
      assert.equal(answer.headers['access-control-allow-origin'], '*', answer.body)
      assert.equal(answer.headers['access-control-allow-credentials'], undefined)
      for (const name of ['payment-required', 'payment-response', 'retry-after'])
        assert(listOf(answer, 'access-control-expose-headers').includes(name), name)
    }
  }
})

test('the store’s own operations are closed to pages of other origins', async () => {
  const { id } = await shop.create()
  for (const answer of [
    await shop.call('GET', `/api/v1/checkouts/${id}`),
    await shop.call('POST', `/api/v1/checkouts/${id}/cancel`),
    await send(farthing.app, 'OPTIONS', '/api/v1/checkouts'),
  ])
    assert.equal(answer.headers['access-control-allow-origin'], undefined)
})

test('a rate-limited payer gets an answer that a page of another origin can read', async () => {
  const limited = await openTestApp({ ADDRESS_REQUESTS_PER_SECOND: '2' })
  limited.clock.now = new Date()
  const { id } = await (await openStore(limited)).create()
  const ask = () => send(limited.app, 'POST', `/api/v1/checkouts/${id}`)
  // The key's first use took one of the two requests.
  assert.equal((await ask()).statusCode, 402)
  const answer = await ask()
  assertProblem(answer, 429, 'rate_limited')
  assert.equal(answer.headers['retry-after'], '1')
  assert.match(String(answer.headers.ratelimit), /^"address";r=0;t=1$/)
  assert.equal(answer.headers['ratelimit-policy'], '"address";q=2;w=1')
  assert.equal(answer.headers['access-control-allow-origin'], '*')
})

test('no answer may be cached: every answer says no-store and names its request', async () => {
  const { id } = await shop.create()
  const completed = await shop.create()
  await completeByHand(farthing, completed.id)
  for (const answer of [
    await pay(id),
    await pay(id, unreadable),
    await pay(completed.id),
    await pay('none'),
    await pay('%zz'),
    await pay('x'.repeat(300)),
    await send(farthing.app, 'OPTIONS', `/c/${id}`),
    await send(farthing.app, 'GET', '/nothing'),
    await send(farthing.app, 'PATCH', '/api/v1/checkouts', '{', {}),
    await send(farthing.app, 'GET', '/api/v1/networks'),
    await send(farthing.app, 'GET', '/api/v1/checkouts'),
    await shop.call('GET', '/api/v1/checkouts'),
    await shop.call('POST', '/api/v1/checkouts', '{'),
  ]) {
    assert.equal(answer.headers['cache-control'], 'no-store', answer.body)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.match(String(answer.headers['x-request-id']), /^req_/)
  }
})

test('no URL in any answer comes from the request’s Host or forwarding headers', async () => {
  const evil = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'http',
    forwarded: 'host=evil.example;proto=http',
    origin: 'https://evil.example',
    referer: 'https://evil.example/',
  }
  const created = await shop.call(
    'POST',
    '/api/v1/checkouts',
    { orderId: '1', priceAmount: '1', priceCurrency: 'USD' },
    evil,
  )
  assert.equal(created.statusCode, 201)
  const { id } = created.json<Checkout>()
  const completed = await shop.create()
  await completeByHand(farthing, completed.id)
  for (const answer of [
    created,
    await pay(id, evil),
    await pay(id, evil, undefined, '/c'),
    await pay(id, { ...evil, ...unreadable }),
    await pay(completed.id, evil),
    await pay('none', evil),
    await shop.call('GET', `/api/v1/checkouts/${id}`, undefined, evil),
    await send(farthing.app, 'GET', '/openapi.json', undefined, evil),
    await send(farthing.app, 'GET', '/docs/api', undefined, evil),
    await send(farthing.app, 'POST', `http://evil.example/api/v1/checkouts/${id}`, undefined, evil),
  ]) {
    const required = Buffer.from(String(answer.headers['payment-required'] ?? ''), 'base64').toString()
    assert(
      !`${JSON.stringify(answer.headers)}${required}${answer.body}`.includes('evil.example'),
      answer.body,
    )
  }
})
