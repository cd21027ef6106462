/** HTTP at the level of bytes: requests that no client library would send, most of them on real sockets. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { duplexPair } from 'node:stream'
import { test } from 'node:test'
import type { PaymentRequired, ProblemDetails } from '@farthing/sdk'
import fc from 'fast-check'
import type { ProblemCode } from '../../src/problems.ts'
import { openTestApp } from '../support/app.ts'
import { encodePayment, paymentFor } from '../support/by-hand.ts'
import { openCount, runs } from '../support/full.ts'
import { openStore, order, send } from '../support/store.ts'

/** Mutated requests in flight at the same time. FULL=1 sends a million, one in ten of them on a socket. */
const burst = process.env.FULL === '1' ? 500 : 10

const farthing = await openTestApp()
const shop = await openStore(farthing)
const { id } = await shop.create()
const { port } = new URL(await farthing.app.listen({ host: '127.0.0.1', port: 0 }))

type Reply = { readonly status: number; readonly headers: string; readonly body: string }

/** How long the sender of a possibly incomplete request waits for an answer before it hangs up. */
const patienceMs = 300

/**
 * Sends bytes and returns all answers until the server closes the connection. A request that `mayBeCut` can leave the
 * server waiting for more bytes, so we end our side after a while.
 */
async function exchange(bytes: string | Buffer, mayBeCut: 'mayBeCut' | null = null): Promise<Reply[]> {
  const text = await new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: '127.0.0.1', port: Number(port) })
    socket.setTimeout(mayBeCut ? patienceMs : 20_000, () => {
      if (mayBeCut) socket.end()
      else
        socket.destroy(
          new Error(`the connection stayed open after ${JSON.stringify(bytes.toString('latin1'))}`),
        )
    })
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
    // A server that has answered and closed resets the connection while we still send. The answer counts anyway.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error)
    })
    socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  })
  return parseReplies(text)
}

/** The same without a socket: the bytes go straight to the server's own parser, which is many times cheaper. */
async function exchangeInside(bytes: string): Promise<Reply[]> {
  const [inside, outside] = duplexPair()
  const chunks: Buffer[] = []
  outside.on('data', (chunk) => chunks.push(chunk))
  // A server that waits for the rest of a request sees the end of the stream.
  const timer = setTimeout(() => outside.end(), patienceMs)
  const closed = new Promise((resolve) => inside.once('close', resolve))
  farthing.app.server.emit('connection', Object.assign(inside, { remoteAddress: '127.0.0.1' }))
  outside.write(Buffer.from(bytes, 'latin1'))
  await closed
  clearTimeout(timer)
  // The last bytes written are read in the next turn of the event loop.
  await new Promise(setImmediate)
  outside.destroy()
  return parseReplies(Buffer.concat(chunks).toString('latin1'))
}

function parseReplies(text: string): Reply[] {
  const replies: Reply[] = []
  let rest = text
  while (rest !== '') {
    const [head = ''] = rest.split('\r\n\r\n', 1)
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1])
    assert(status >= 100, `not an answer: ${rest.slice(0, 200)}`)
    // Node itself refuses a request without Host, with an empty chunked body. No other answer here is chunked.
    const isChunked = /^transfer-encoding: chunked$/im.test(head)
    const length = isChunked ? '0\r\n\r\n'.length : Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
    const bodyAt = head.length + 4
    replies.push({ status, headers: head.toLowerCase(), body: rest.slice(bodyAt, bodyAt + length) })
    rest = rest.slice(bodyAt + length)
  }
  return replies
}

function assertRefused(replies: readonly Reply[], status: number, code: ProblemCode, about: string): void {
  assert.deepEqual(
    replies.map((reply) => reply.status),
    [status],
    `${JSON.stringify(about.slice(0, 200))}: ${JSON.stringify(replies)}`,
  )
  const [reply] = replies as [Reply]
  assert.match(reply.headers, /^content-type: application\/problem\+json/m)
  assert.match(reply.headers, /^cache-control: no-store$/m)
  const problem = JSON.parse(reply.body) as ProblemDetails
  assert.deepEqual([problem.code, problem.status], [code, status])
  assert.match(problem.requestId, /^req_/)
}

const line = (path = `/api/v1/checkouts/${id}`) =>
  `POST ${path} HTTP/1.1\r\nHost: farthing.example\r\nConnection: close\r\n`
const create = (headers: string, body: string) =>
  `${line('/api/v1/checkouts')}X-API-Key: ${shop.key}\r\nContent-Type: application/json\r\n${headers}\r\n${body}`
const json = JSON.stringify(order)

test('a well-formed request on a raw socket succeeds, so the refusals below mean something', async () => {
  const replies = await exchange(`${line()}\r\n`)
  assert.deepEqual(
    replies.map(({ status }) => status),
    [402],
  )
  const created = await exchange(create(`Content-Length: ${json.length}\r\n`, json))
  assert.equal(created[0]?.status, 201)
})

test('bytes that are not HTTP get a problem response, and the connection is closed', async () => {
  for (const bytes of [
    ...['GET\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', 'G\0T / HTTP/1.1\r\n\r\n', ' GET / HTTP/1.1\r\n\r\n'],
    ...[
      'get / HTTP/1.1\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\x16\x03\x01\x02\x00',
      'HELO x\r\n',
      '{}',
    ],
    ...[
      `${line()}No-Colon\r\n\r\n`,
      `${line()}Name : x\r\n\r\n`,
      `${line()}: x\r\n\r\n`,
      `${line()}A: \0\r\n\r\n`,
    ],
    ...[`${line()}A: b\rc\r\n\r\n`, `${line()}A\x01: x\r\n\r\n`, `${line()}A: x\r\n folded\r\n\r\n`],
    'GET /\x80\x00 HTTP/1.1\r\n\r\n',
  ])
    assertRefused(await exchange(bytes), 400, 'bad_request', bytes)
})

test('a body with an ambiguous length is rejected, and the bytes after it are not treated as a request', async () => {
  const smuggled = `GET /livez HTTP/1.1\r\nHost: x\r\n\r\n`
  for (const headers of [
    ...[
      'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
      'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n',
    ],
    ...['Content-Length: 5\r\nContent-Length: 6\r\n', 'Content-Length: -5\r\n', 'Content-Length: +5\r\n'],
    ...[
      'Content-Length: 5, 5\r\n',
      'Content-Length: 0x5\r\n',
      'Content-Length: 5 5\r\n',
      'Content-Length: \r\n',
    ],
    ...['Transfer-Encoding: xchunked\r\n', 'Transfer-Encoding: chunked, identity\r\n'],
    ...[
      'Transfer-Encoding:\x0bchunked\r\n',
      'Transfer-Encoding : chunked\r\n',
      'Content-Length: 99999999999999999999\r\n',
    ],
  ])
    assertRefused(await exchange(create(headers, `0\r\n\r\n${smuggled}`)), 400, 'bad_request', headers)
})

test('a broken chunked body is rejected, and the bytes after it get no answer', async () => {
  const chunked = 'Transfer-Encoding: chunked\r\n'
  const ok = await exchange(create(chunked, `${json.length.toString(16)};x=y\r\n${json}\r\n0\r\n\r\n`))
  assert.deepEqual(
    ok.map(({ status }) => status),
    [201],
  )
  for (const body of ['zz\r\n', '-1\r\n\r\n', 'ffffffffffffffffff\r\n', '2\r\n{}x\r\n0\r\n\r\n', '5\r\n{}'])
    for (const { status } of await exchange(
      create(chunked, `${body}GET /livez HTTP/1.1\r\n\r\n`),
      'mayBeCut',
    ))
      assert.equal(status, 400, body)
})

test('headers of up to 12 KiB are accepted, larger ones are rejected with 431', async () => {
  const padded = (size: number) => `${line()}X-Padding: ${'x'.repeat(size)}\r\n\r\n`
  assert.equal((await exchange(padded(11_000)))[0]?.status, 402)
  assertRefused(await exchange(padded(12_500)), 431, 'headers_too_large', 'one header')
  const many = `${line()}${'X: y\r\n'.repeat(4_000)}\r\n`
  assertRefused(await exchange(many), 431, 'headers_too_large', 'many headers')
  const target = `GET /${'x'.repeat(13_000)} HTTP/1.1\r\n\r\n`
  assertRefused(await exchange(target), 431, 'headers_too_large', 'a long path')
})

test('a body larger than 64 KiB is rejected, with or without a Content-Length', async () => {
  const large = 'x'.repeat(70_000)
  const told = await exchange(create(`Content-Length: ${large.length}\r\n`, large))
  const untold = await exchange(
    create('Transfer-Encoding: chunked\r\n', `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`),
  )
  for (const replies of [told, untold]) assertRefused(replies, 413, 'body_too_large', 'large')
})

test('a payment header must be canonical base64; two payment headers are rejected, even if they are equal', async () => {
  // A note makes the encoding contain + or /, and end with an equals sign.
  const terms = (await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)).json<PaymentRequired>()
  const samples = ['', '.', '..'].map((end) => encodePayment({ ...paymentFor(terms), note: `>>>???${end}` }))
  const payment = samples.find((sample) => /[+/].*=$/.test(sample))
  assert(payment)
  const ask = (...values: string[]) =>
    exchange(`${line()}${values.map((value) => `PAYMENT-SIGNATURE: ${value}\r\n`).join('')}\r\n`)
  // Whitespace around a header's value is not part of the value.
  for (const value of [payment, `  ${payment}\t `]) assert.notEqual((await ask(value))[0]?.status, 400)
  const bare = payment.replace(/=+$/, '')
  for (const values of [
    ...[
      [payment, payment],
      [payment, ''],
      ['', payment],
      [payment, 'x'],
      [bare],
      [`${payment}=`],
      [`${payment}==`],
    ],
    ...[
      [`${payment}${payment}`],
      [`${payment},`],
      [`${payment}, ${payment}`],
      [`"${payment}"`],
      [`${payment};`],
    ],
    ...[[payment.replaceAll('+', '-').replaceAll('/', '_')], [`${payment.slice(0, 8)} ${payment.slice(8)}`]],
    ...[
      [`${payment.slice(0, 8)}\t${payment.slice(8)}`],
      [encodeURIComponent(payment)],
      [`\xa0${payment}`],
      ['\xff'],
    ],
  ]) {
    const replies = await ask(...values)
    assertRefused(replies, 400, 'malformed_payment', values.join(' | '))
    assert.match(replies[0]?.headers ?? '', /^payment-required: /m)
  }
})

test('API key and idempotency key headers are rejected when they are sent twice', async () => {
  const length = `Content-Length: ${json.length}\r\n`
  const twice = await exchange(create(`${length}X-API-Key: ${shop.key}\r\n`, json))
  assertRefused(twice, 401, 'invalid_api_key', 'X-API-Key')
  const keys = await exchange(create(`${length}Idempotency-Key: a\r\nIdempotency-Key: a\r\n`, json))
  assertRefused(keys, 422, 'invalid_request', 'Idempotency-Key')
})

test('path traversal finds nothing', async () => {
  for (const path of [
    ...[
      '/api/v1/checkouts/../../../etc/passwd',
      '/api/v1/checkouts/..',
      '/../',
      '//api/v1/checkouts',
      '/api//v1/x',
    ],
    ...[
      '/api/v1/checkouts/%2e%2e/x',
      '/api/v1/checkouts/..%2f..%2fstores',
      '/API/V1/CHECKOUTS',
      '/c/',
      '/c',
      '*',
    ],
    ...[`/api/v1/checkouts/${id};a=b`, `/api/v1/checkouts/${id}%00`, `/api/v1/checkouts/${id}%20`, '/%2e'],
  ]) {
    const replies = await exchange(line(path).concat('\r\n'))
    assert.deepEqual(replies.length, 1, path)
    assert([400, 404].includes(replies[0]?.status ?? 0), `${path}: ${replies[0]?.status}`)
  }
})

test('random byte changes in valid requests never cause a server error, and never two successes for one request', async (t) => {
  const terms = (await send(farthing.app, 'POST', `/api/v1/checkouts/${id}`)).json<PaymentRequired>()
  const payment = encodePayment(paymentFor(terms))
  const good = [
    create(`Content-Length: ${json.length}\r\nIdempotency-Key: k\r\n`, json),
    create('Transfer-Encoding: chunked\r\n', `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`),
    `${line()}PAYMENT-SIGNATURE: ${payment}\r\n\r\n`,
    `GET /api/v1/checkouts?limit=5&status=OPEN HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: ${shop.key}\r\n\r\n`,
  ]
  const change = fc.record({
    // Without noBias, nearly every change would fall on the first byte.
    at: fc.noBias(fc.nat({ max: 9_999 })),
    remove: fc.nat({ max: 4 }),
    insert: fc.oneof(
      fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom('\r\n', '\n', '\r', '\0', ': ', ',', ' ', '\t', '%00', '%', '?', '#', '..')
        .map((added) => Buffer.from(added)),
    ),
  })
  const changed = fc
    .tuple(fc.constantFrom(...good), fc.array(change, { maxLength: 3 }))
    .map(([request, changes]) => {
      let bytes = Buffer.from(request, 'latin1')
      for (const { at, remove, insert } of changes) {
        const offset = Math.floor((at * bytes.length) / 10_000)
        bytes = Buffer.concat([bytes.subarray(0, offset), insert, bytes.subarray(offset + remove)])
      }
      return bytes.toString('latin1')
    })
  const count = openCount('requests')
  const many = fc.array(changed, { minLength: burst, maxLength: burst })
  const property = fc.asyncProperty(many, async (requests) => {
    const answered = await Promise.all(
      requests.map((bytes, i) => (i % 10 === 0 ? exchange(bytes, 'mayBeCut') : exchangeInside(bytes))),
    )
    count.add('requests', burst)
    for (const [i, replies] of answered.entries()) {
      const about = () => `${JSON.stringify(replies)} to ${JSON.stringify(requests[i])}`
      for (const { status, body } of replies) {
        count.add(`${status}`)
        assert(status < 500 || (status === 503 && body.includes('"settlement_unavailable"')), about())
      }
      // A change may end a request early. The remaining bytes are then refused as a separate request.
      assert(
        replies.slice(1).every(({ status }) => status >= 400),
        about(),
      )
    }
  })
  await fc.assert(property, runs(60, 2_000))
  count.say(t)
  for (const status of [200, 201, 400, 401]) assert(count.counts[status], `no ${status}`)
})

test('after all these requests the application still works', async () => {
  assert.equal((await exchange(`${line()}\r\n`))[0]?.status, 402)
  assert.equal((await send(farthing.app, 'GET', '/readyz')).statusCode, 200)
})
