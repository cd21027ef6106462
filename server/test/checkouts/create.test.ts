import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, PaymentRequired } from '@farthing/sdk'
import { encodePaymentRequiredHeader } from '@x402/core/http'
import { replaceRates } from '../../src/rates/rows.ts'
import { sources } from '../../src/rates/sources.ts'
import { openTestApp } from '../support/app.ts'
import {
  assertInvalid,
  assertProblem,
  openStore,
  order,
  registerWallet,
  type StoreClient,
  send,
  solanaWallets,
  wallets,
} from '../support/store.ts'

const farthing = await openTestApp()
const { db } = farthing.ctx
const shop = await openStore(farthing)
const path = '/api/v1/checkouts'
const create = (change: object, by: StoreClient = shop) => by.call('POST', path, { ...order, ...change })
const payTerms = async (id: string) => {
  const answer = await send(farthing.app, 'POST', `${path}/${id}`)
  assert.equal(answer.statusCode, 402, answer.body)
  return answer.json<PaymentRequired>()
}
const secondsBetween = (from: string, to: string) => (Date.parse(to) - Date.parse(from)) / 1_000

test('creating a checkout returns 201 and the URL where it can be read', async () => {
  const answer = await create({})
  assert.equal(answer.statusCode, 201)
  const made = answer.json<Checkout>()
  assert.equal(answer.headers.location, `https://farthing.example/api/v1/checkouts/${made.id}`)
  const read = await shop.call('GET', new URL(String(answer.headers.location)).pathname)
  assert.deepEqual(read.json(), { ...made, payment: null })
})

test('priceAmount is echoed exactly as sent and offered in exact units', async () => {
  for (const [priceAmount, units] of [
    ['0.000001', '1'],
    ['1', '1000000'],
    ['1.0', '1000000'],
    ['1.10', '1100000'],
    ['0.100000', '100000'],
    ['9007199254740.993', '9007199254740993000'],
    ['999999999999999.999999', '999999999999999999999'],
  ] as const) {
    const made = await shop.create({ priceAmount })
    assert.equal(made.priceAmount, priceAmount)
    assert.deepEqual(
      (await payTerms(made.id)).accepts.map(({ amount }) => amount),
      [units],
    )
  }
})

test('an amount that is not a plain decimal above zero with at most 15 whole and 6 decimal digits is refused', async () => {
  for (const priceAmount of [
    ...['', '0', '0.0', '0.000000', '-1', '+1', '01', '00.1', '1.', '.5', '1e3', '0x10', ' 1', '1 ', '1\n'],
    ...['1,5', '1.5.5', 'NaN', 'Infinity', '١', '１', '0.0000001', '1000000000000000', '1_000', '1.5000000'],
  ])
    assertInvalid(await create({ priceAmount }), '/priceAmount')
})

test('a currency in lower case is stored and answered in upper case', async () => {
  for (const priceCurrency of ['usd', 'Usd', 'USD']) {
    const answer = await create({ ...order, priceCurrency })
    assert.equal(answer.statusCode, 201, answer.body)
    assert.equal(answer.json().priceCurrency, 'USD')
  }
})

test('a currency that is not an ISO 4217 code is refused', async () => {
  for (const priceCurrency of ['', 'ınr', 'US', 'USDC', 'ZZZ', 'USD ', 'BTC', '__proto__'])
    assertInvalid(await create({ priceCurrency }), '/priceCurrency')
})

test('successRedirectUrl: null is the same as leaving it out; an empty one is refused', async () => {
  const answer = await create({ ...order, successRedirectUrl: null })
  assert.equal(answer.statusCode, 201, answer.body)
  assert.equal(answer.json().successRedirectUrl, null)
  assertInvalid(await create({ ...order, successRedirectUrl: '' }), '/successRedirectUrl')
})

test('every mistake in a body is reported at once, including unknown fields', async () => {
  const answer = await create({ orderId: '', priceAmount: 'x', priceCurrency: 'x', successRedirectUrl: 'x' })
  assertInvalid(answer, '/orderId', '/priceAmount', '/priceCurrency', '/successRedirectUrl')
  assertInvalid(await create({ priceAmout: '1', 'a/b~c': 1 }), '/priceAmout', '/a~1b~0c')
})

test('a checkout in USD lasts 24 hours, one with a locked rate lasts 1 hour', async () => {
  assertProblem(await create({ priceCurrency: 'EUR' }), 503, 'rate_unavailable')
  for (const source of sources) {
    const perBase = new Map(
      Object.entries(source.base === 'USD' ? { USD: '1', EUR: '0.8' } : { EUR: '1', USD: '1.25' }),
    )
    await replaceRates(db, source, { asOf: new Date(), perBase }, new Date())
  }
  assertProblem(await create({ priceCurrency: 'ISK' }), 422, 'currency_unsupported')
  const inUsd = await shop.create()
  assert.equal(secondsBetween(inUsd.createdAt, inUsd.expiresAt), 86_400)
  const inEur = await shop.create({ priceCurrency: 'EUR', priceAmount: '0.000001' })
  assert.equal(secondsBetween(inEur.createdAt, inEur.expiresAt), 3_600)
  const asked = await shop.create({ priceCurrency: 'EUR', expiresInSeconds: 604_800 })
  assert.equal(secondsBetween(asked.createdAt, asked.expiresAt), 604_800)
})

test('expiresInSeconds is a whole number from 300 to 604800', async () => {
  for (const expiresInSeconds of [300, 301, 604_800]) {
    const made = await shop.create({ expiresInSeconds })
    assert.equal(secondsBetween(made.createdAt, made.expiresAt), expiresInSeconds)
  }
  for (const expiresInSeconds of [299, 604_801, 0, -300, 300.5, '300', null, 1e300])
    assertInvalid(await create({ expiresInSeconds }), '/expiresInSeconds')
})

test('without a payable wallet, the error contains the exact request that registers one', async () => {
  const newcomer = await openStore(farthing, { evmWallet: null })
  // A Solana wallet is recorded but cannot be paid here, so it does not help.
  await registerWallet(newcomer, solanaWallets[0], 'solana')
  const { detail } = assertProblem(await create({}, newcomer), 409, 'wallet_required')
  const [, method, url, body] = /(POST) (\S+) with the same X-API-Key, .* body (\{.*\})\.$/.exec(detail) ?? []
  assert.equal(method, 'POST')
  assert.equal(url, `https://farthing.example/api/v1/stores/${newcomer.id}/wallets/evm`)
  const filled = JSON.parse(String(body).replace('<your address>', wallets[0]))
  const registered = await newcomer.call('POST', new URL(String(url)).pathname, filled)
  assert.equal(registered.statusCode, 201, registered.body)
  assert.equal((await create({}, newcomer)).statusCode, 201)
})

test('the ways to pay are fixed at creation; a later wallet change does not affect them', async () => {
  const mover = await openStore(farthing)
  const before = await mover.create()
  const terms = await payTerms(before.id)
  const next = await registerWallet(mover, wallets[1])
  assert.deepEqual(await payTerms(before.id), terms)
  assert.equal((await payTerms((await mover.create()).id)).accepts[0]?.payTo, wallets[1])
  await mover.call('POST', `/api/v1/stores/${mover.id}/wallets/${next.id}/retire`)
  assert.equal((await payTerms((await mover.create()).id)).accepts[0]?.payTo, wallets[0])
  assert.deepEqual(await payTerms(before.id), terms)
})

test('a live store is offered only live networks, and a test store only test networks', async () => {
  const tester = await openStore(farthing, { mode: 'test' })
  const networks = async (by: StoreClient) =>
    (await payTerms((await by.create()).id)).accepts.map(({ network, extra }) => [
      network,
      'name' in extra && extra.name,
    ])
  assert.deepEqual(await networks(shop), [['eip155:8453', 'USD Coin']])
  assert.deepEqual(await networks(tester), [['eip155:84532', 'USDC']])
})

test('orderId is echoed byte for byte in any script, and a 402 that describes it fits into its header', async () => {
  for (const orderId of [
    ...[
      'a',
      ' ',
      '注文-42',
      'commande n° 7 — é',
      'e\u0301',
      'טסט',
      'مرحبا',
      '👩‍👩‍👧',
      '𝒳',
      '<b>"&\'</b>',
      '\\',
      '%00',
    ],
    'x'.repeat(255),
    '€'.repeat(85),
  ]) {
    const made = await shop.create({ orderId })
    assert.equal(made.orderId, orderId)
    const answer = await send(farthing.app, 'POST', `${path}/${made.id}`)
    assert.match(
      answer.json<PaymentRequired>().resource.description,
      /: 1\d?\.\d\d USD for order .*, payable until/,
    )
    // To the byte what the protocol's own library writes, whatever characters are in it.
    assert.equal(answer.headers['payment-required'], encodePaymentRequiredHeader(answer.json()))
  }
})

test('an orderId that is empty, too long, or hides or reorders text is refused', async () => {
  const hidden = ['\0', '\t', '\n', '\r', '\x1b', '\x7f', '\x85', '\u061c', '\u200e', '\u200f']
  const reordering = [
    '\u202a',
    '\u202b',
    '\u202c',
    '\u202d',
    '\u202e',
    '\u2066',
    '\u2067',
    '\u2068',
    '\u2069',
  ]
  for (const orderId of ['', 'x'.repeat(256), '€'.repeat(86), '\ud800', 'a\udc00b'])
    assertInvalid(await create({ orderId }), '/orderId')
  for (const character of [...hidden, ...reordering])
    assertInvalid(await create({ orderId: `a${character}b` }), '/orderId')
})

test('the same orderId may be used again, because a buyer may try twice', async () => {
  const [first, second] = [await shop.create(), await shop.create()]
  assert.notEqual(first.id, second.id)
  assert.equal(first.orderId, second.orderId)
})

test('a redirect must be an absolute https URL without credentials or spelling tricks', async () => {
  const fit = `https://shop.example/${'x'.repeat(2_048 - 21)}`
  for (const successRedirectUrl of [
    ...['https://shop.example', 'https://shop.example:8443/a?b=c#d', 'https://müller.example/ö', fit],
    ...['https://[2001:db8::1]/', 'https://shop.example/?u=https://a@b', 'HTTPS://shop.example/'],
  ]) {
    const made = await shop.create({ successRedirectUrl, cancelUrl: successRedirectUrl })
    assert.equal(made.successRedirectUrl, successRedirectUrl)
    assert.equal(made.cancelUrl, successRedirectUrl)
  }
  for (const successRedirectUrl of [
    ...[
      '',
      'shop.example',
      '/thanks',
      '//shop.example',
      'https://',
      'https:',
      `${fit}x`,
      'https://a b.example',
    ],
    ...['javascript:alert(1)', ' javascript:alert(1)', ' java\tscript:alert(1)', 'java\nscript:alert(1)'],
    ...['data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'ftp://shop.example', 'ws://shop.example'],
    ...['https://user@shop.example', 'https://user:pass@shop.example', 'https://good.example@evil.example'],
    ...['https://:pass@shop.example', 'https://shop.example\\@evil.example', 'https://shop.example/\ud800'],
    // Resolved against the URL of an https page, these are paths, not hosts.
    ...['https:shop.example', 'https:/shop.example', 'https:///shop.example', 'https://@shop.example'],
  ])
    assertInvalid(
      await create({ successRedirectUrl, cancelUrl: successRedirectUrl }),
      '/successRedirectUrl',
      '/cancelUrl',
    )
})

test('cancelUrl is returned only if it was given, and null is the same as leaving it out', async () => {
  assert(!('cancelUrl' in (await shop.create({ cancelUrl: null }))))
  const { id } = await shop.create({ cancelUrl: 'https://shop.example/cart' })
  const read = await shop.call('GET', `/api/v1/checkouts/${id}`)
  assert.equal(read.json().cancelUrl, 'https://shop.example/cart')
})

test('http redirects are allowed only for test stores, and only to loopback', async () => {
  const tester = await openStore(farthing, { mode: 'test' })
  for (const successRedirectUrl of ['http://localhost:3000/', 'http://127.0.0.1', 'http://[::1]:8080/x']) {
    assert.equal((await create({ successRedirectUrl }, tester)).statusCode, 201, successRedirectUrl)
    assertInvalid(await create({ successRedirectUrl }), '/successRedirectUrl')
  }
  for (const host of [
    'shop.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '0.0.0.0',
  ])
    assertInvalid(await create({ successRedirectUrl: `http://${host}/` }, tester), '/successRedirectUrl')
})
