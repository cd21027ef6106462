/**
 * Random and malformed requests. Every answer is one that the API document allows, never a 500, and the application
 * keeps running. FULL=1 sends 100,000 requests. A failure prints its seed and the smallest request that reproduces it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProblemDetails } from '@farthing/sdk'
import fc from 'fast-check'
import { openTestApp } from '../support/app.ts'
import { encodePayment, paymentFor } from '../support/by-hand.ts'
import {
  type Answer,
  assertProblem,
  openStore,
  order,
  send,
  solanaWallets,
  wallets,
} from '../support/store.ts'
import { assertDocumented, documented, type Operation, operations } from './support/document.ts'

const total = process.env.FULL === '1' ? 100_000 : 5_000
/** Requests in flight at the same time. */
const burst = 20
const bursts = (share: number) => ({ numRuns: Math.ceil((total * share) / burst) })

const farthing = await openTestApp(documented)
const shop = await openStore(farthing)
const foreign = await (await openStore(farthing)).create()
const checkout = await shop.create()
const [firstWallet] = await farthing.ctx.db.query<{ id: string }>(
  'select id from wallets where store_id = $1',
  [shop.id],
)
// Building blocks of requests

const nasty = fc.constantFrom(
  ...[
    '',
    ' ',
    '\0',
    '%00',
    '%',
    '%zz',
    '%F0%9F',
    '../..',
    '..%2f',
    '\\',
    '\r\nX: y',
    '\u202e',
    '\ufeff',
    '\ud800',
  ],
  ...["'", '"', "';drop table checkouts;--", '<script>', '{{x}}', 'null', 'true', '__proto__', 'constructor'],
  ...[
    '0',
    '-1',
    '1e400',
    '9'.repeat(40),
    'NaN',
    '0x10',
    '1-1',
    '999999999-999999999999999999',
    'x'.repeat(2_000),
  ],
  ...[checkout.id, foreign.id, shop.id, String(firstWallet?.id), order.orderId, 'OPEN', 'checkout.created'],
  ...['2026-01-01T00:00:00Z', '9999-12-31T23:59:60Z', '+275760-09-13T00:00:00Z', '1970-01-01T00:00:00-00:01'],
)
const text = fc.oneof(
  nasty,
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdefch_wal_st_-.'), maxLength: 40 }),
)
const json: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  text,
  fc.constantFrom(null, true, 0, -0, 1e308, 0.1, [], {}, '12.50', 'USD', 'CUSTODIAL'),
)

const validBodies: Readonly<Record<string, object>> = {
  createCheckout: {
    ...order,
    successRedirectUrl: 'https://shop.example/',
    cancelUrl: null,
    expiresInSeconds: 300,
  },
  updateStore: {
    name: 'Shop',
    logoUrl: null,
    accentColor: '#012345',
    supportEmail: 'help@shop.example',
    supportUrl: null,
    legalName: 'Shop Ltd',
    legalAddress: '4 Mill Lane\nBristol',
    taxId: null,
    finalityPolicy: [{ minAmount: '0', finality: 'safe' }],
  },
  createWebhookEndpoint: { url: 'https://hooks.example/', types: ['checkout.created'], ordered: true },
  updateWebhookEndpoint: { url: 'https://hooks.example/x', types: [], ordered: false, status: 'enabled' },
  rollWebhookSecret: { overlapSeconds: 60 },
  redeliverSince: { since: '2026-01-01T00:00:00Z', include: 'all' },
  registerEvmWallet: { walletAddress: wallets[0], custodialType: 'NON_CUSTODIAL' },
  registerSolanaWallet: { walletAddress: solanaWallets[0], custodialType: 'NON_CUSTODIAL' },
}

/** Bodies for an operation: almost valid, of the wrong shape, broken JSON, parser tricks, and far too large or deep. */
function bodyFor(operation: Operation): fc.Arbitrary<string | Buffer> {
  const valid = validBodies[operation.id] ?? { anything: 'x' }
  const whole = JSON.stringify(valid)
  const fields = Object.keys(valid)
  const oneWrong = fc
    .tuple(fc.constantFrom(...fields, 'unknown', '__proto__', 'constructor', 'toString'), json)
    .map(([field, value]) => JSON.stringify(Object.fromEntries([...Object.entries(valid), [field, value]])))
  const position = fc.nat({ max: whole.length })
  return fc.oneof(
    { weight: 4, arbitrary: oneWrong },
    { weight: 1, arbitrary: fc.constant(whole) },
    { weight: 2, arbitrary: json.map((value) => JSON.stringify(value)) },
    { weight: 2, arbitrary: position.map((end) => whole.slice(0, end)) },
    {
      weight: 2,
      arbitrary: fc.tuple(position, text).map(([at, added]) => whole.slice(0, at) + added + whole.slice(at)),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...fields), json, fc.nat({ max: 80 }))
        .map(([field, value, gap]) =>
          whole.replace('{', `{${JSON.stringify(field)}${' '.repeat(gap)}:${JSON.stringify(value)},`),
        ),
    },
    { weight: 1, arbitrary: fc.nat({ max: 30_000 }).map((depth) => '['.repeat(depth) + ']'.repeat(depth)) },
    { weight: 1, arbitrary: fc.nat({ max: 6_000 }).map((depth) => '{"a":'.repeat(depth)) },
    { weight: 1, arbitrary: fc.integer({ min: 60_000, max: 70_000 }).map((size) => `"${'x'.repeat(size)}"`) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom('', ' ', '\ufeff{}', '{"a":1e999}', '{"__proto__":{"a":1}}', 'NaN'),
    },
  )
}

const contentType = fc.oneof(
  { weight: 8, arbitrary: fc.constant('application/json') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('application/json; charset=utf-16', 'text/plain', 'x', '', '*/*', ';'),
  },
)
const apiKey = fc.oneof(
  { weight: 9, arbitrary: fc.constant(shop.key) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      text,
      text.map((added) => shop.key + added),
      text.map((added) => `sk_live_${added}`),
    ),
  },
)
const goodPayment = paymentFor((await send(farthing.app, 'POST', `/api/v1/checkouts/${foreign.id}`)).json())
const { authorization } = goodPayment.payload
const payment = fc.oneof(
  text,
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  json.map((value) => encodePayment(value ?? null)),
  fc
    .tuple(fc.constantFrom(...Object.keys(goodPayment), 'extensions'), json)
    .map(([field, value]) => encodePayment({ ...goodPayment, [field]: value })),
  fc.tuple(fc.constantFrom(...Object.keys(authorization)), json).map(([field, value]) =>
    encodePayment({
      ...goodPayment,
      payload: { ...goodPayment.payload, authorization: { ...authorization, [field]: value } },
    }),
  ),
)

type Request = {
  operation: Operation
  url: string
  headers: Record<string, string>
  body: string | Buffer | null
}

function requestFor(operation: Operation): fc.Arbitrary<Request> {
  // The other store's checkout stays OPEN: no request here is allowed to cancel it.
  const ids = fc.oneof(
    { weight: operation.isKeyed ? 1 : 6, arbitrary: fc.constant(foreign.id) },
    {
      weight: 4,
      arbitrary: fc.constantFrom(checkout.id, shop.id, String(firstWallet?.id), `ch_00${'z'.repeat(26)}`),
    },
  )
  // A segment of dots would change the path: clients resolve it before they send the request.
  const segment = fc
    .oneof({ weight: 3, arbitrary: ids }, { weight: 1, arbitrary: text.map(encode) })
    .filter((value) => !/^(\.|%2e){0,2}$/i.test(value))
  const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  const path = fc
    .tuple(...inPath.map((name) => (name === 'storeId' ? fc.oneof(fc.constant(shop.id), segment) : segment)))
    .map((values) => {
      let i = 0
      return operation.path.replace(/\{\w+\}/g, () => String(values[i++]))
    })
  const names = [...operation.parameters.map(({ name }) => name), 'limit[]', 'x', '__proto__']
  const query = fc
    .array(fc.tuple(fc.constantFrom(...names), text.map(encode)), { maxLength: 3 })
    .map((pairs) => pairs.map(([name, value]) => `${encode(name)}=${value}`).join('&'))
  return fc.record({
    operation: fc.constant(operation),
    url: fc
      .tuple(path, fc.oneof({ weight: 4, arbitrary: query }, { weight: 1, arbitrary: text.map(encode) }))
      .map(([base, search]) => (search === '' ? base : `${base}?${search}`)),
    headers: fc
      .record(
        {
          'x-api-key': apiKey,
          'content-type': contentType,
          'idempotency-key': text,
          'payment-signature': payment,
        },
        { requiredKeys: ['x-api-key', 'content-type'] },
      )
      .map((headers) => headers as Record<string, string>),
    body: operation.method === 'GET' ? fc.constant(null) : fc.option(bodyFor(operation), { freq: 5 }),
  })
}

function encode(value: string): string {
  return encodeURIComponent(value.toWellFormed())
}

async function perform({ operation, url, headers, body }: Request): Promise<Answer> {
  return await send(farthing.app, operation.method, url, body ?? undefined, headers)
}

/** The only 503s that may occur here. Any other 503 would hide a fault. */
const notNow = ['rate_unavailable', 'settlement_unavailable']

function assertSound(request: Request, answer: Answer): void {
  const about = `${request.operation.method} ${JSON.stringify(request.url)}`
  assert.notEqual(answer.statusCode, 500, `${about}: ${answer.body}`)
  assertDocumented(request.operation, answer, about)
  if (answer.statusCode === 503) assert(notNow.includes(answer.json<ProblemDetails>().code), answer.body)
  assert.equal(answer.headers['cache-control'], 'no-store')
}

test('any request to any operation gets an answer that the API document allows, never a 500', async (t) => {
  const anyRequest = fc.oneof(...operations.map(requestFor))
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(anyRequest, { minLength: burst, maxLength: burst }), async (requests) => {
      const answers = await Promise.all(requests.map(perform))
      for (const [i, answer] of answers.entries()) {
        assertSound(requests[i] as Request, answer)
        statuses.set(answer.statusCode, (statuses.get(answer.statusCode) ?? 0) + 1)
      }
    }),
    bursts(0.85),
  )
  t.diagnostic(JSON.stringify(Object.fromEntries(statuses)))
  // The generator must reach success and the refusals it is meant to reach, or it tests nothing.
  for (const status of [200, 201, 400, 401, 402, 404, 413, 415, 422])
    assert(statuses.has(status), `no ${status}`)
})

test('an id with a zero byte, which the database cannot compare, belongs to nothing', async () => {
  const fits = operations.filter(({ path }) => path.includes('{'))
  assert(fits.length > 30)
  for (const operation of fits)
    for (const bad of ['%00', 'x%00', '%00%00/']) {
      const url = operation.path.replace(/\{(\w+)\}/g, (_, name) => (name === 'storeId' ? shop.id : bad))
      for (const path of [url, operation.path.replace(/\{\w+\}/g, bad)]) {
        const body = operation.method === 'GET' ? undefined : '{}'
        const answer = await send(farthing.app, operation.method, path, body, { 'x-api-key': shop.key })
        const about = `${operation.method} ${path}`
        assert.notEqual(answer.statusCode, 500, about)
        if (answer.statusCode === 422) assert(!answer.body.includes('database'), `${about}: ${answer.body}`)
        if (!bad.endsWith('/')) assertDocumented(operation, answer, about)
      }
    }
})

// Bodies and paths

test('a duplicate key in a JSON object is rejected, however it is escaped and spaced', async () => {
  const [, escaped] = ['priceAmount', 'price\\u0041mount']
  for (const gap of ['', ' ', '\n'.repeat(31), ' '.repeat(32), '\t'.repeat(500)])
    for (const again of ['priceAmount', escaped]) {
      const body = `{"orderId":"x","priceCurrency":"USD","priceAmount"${gap}:"1","${again}"${gap}:"1"}`
      assertProblem(await shop.call('POST', '/api/v1/checkouts', body), 400, 'malformed_json')
    }
})

test('a body that is crafted to parse slowly is rejected within a second of processor time', async () => {
  for (const body of [
    `"${'\\"'.repeat(32_000)}`,
    `{"a":"${'\\"'.repeat(32_000)}`,
    `"${'\\'.repeat(65_001)}`,
    '"'.repeat(65_001),
    `{"a"${' '.repeat(65_000)}`,
    '{"":'.repeat(16_000),
    `[${'"a",'.repeat(16_000)}`,
  ]) {
    const before = process.cpuUsage()
    assertProblem(await shop.call('POST', '/api/v1/checkouts', body), 400, 'malformed_json')
    const { user, system } = process.cpuUsage(before)
    assert(user + system < 1_000_000, body.slice(0, 20))
  }
})

test('an unknown path gets 404 and an unknown method 405 with the allowed methods, whatever the body', async () => {
  const methods = [
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'TRACE',
    'QUERY',
    'PROPFIND',
  ] as const
  const taken = Map.groupBy(operations, ({ path }) => path.replace(/\{\w+\}/g, 'x'))
  // A fixed path may also fit one with a parameter.
  const isAt = (pattern: string, path: string) =>
    new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`).test(path)
  for (const path of ['/nothing', '/nothing/', '/api/v1/', '/api/v1/payments', ...taken.keys()])
    for (const method of methods)
      for (const payload of [undefined, '', '{', '{"__proto__":1}', 'x'.repeat(10)]) {
        const known = operations.filter((one) => isAt(one.path, path)).map((one) => one.method as string)
        if (known.includes(method) || (method === 'HEAD' && known.includes('GET'))) continue
        if (method === 'OPTIONS' && taken.get(path)?.some(({ id }) => /^pay(Checkout|Link)/.test(id)))
          continue
        const answer = await farthing.request({
          method: method as 'GET',
          url: path,
          headers: { 'content-type': 'application/json' },
          ...(payload !== undefined && { payload }),
        })
        const about = `${method} ${path} ${payload}`
        assert.equal(answer.statusCode, known.length > 0 ? 405 : 404, `${about}: ${answer.body}`)
        if (known.length === 0) continue
        assert.deepEqual(String(answer.headers.allow).split(', ').sort(), known.sort(), about)
      }
})

test('after all these requests the application still works', async () => {
  assert.equal((await send(farthing.app, 'GET', '/readyz')).statusCode, 200)
  const { id } = await (await openStore(farthing)).create()
  assert.equal((await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)).statusCode, 402)
})
