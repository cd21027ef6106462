import assert from 'node:assert/strict'
import { connect, createServer } from 'node:net'
import { test } from 'node:test'
import { openDatabase } from '../src/database/db.ts'
import { buildApp } from '../src/http/app.ts'
import { makeStore, openTestApp } from './support/app.ts'
import { freshDatabase } from './support/database.ts'
import { startProcess } from './support/process.ts'

const order = { orderId: 'order-1', priceAmount: '1', priceCurrency: 'USD' }

test('serve says it is alive and ready, counts its requests, and answers each with its id', async () => {
  const { url } = await freshDatabase()
  const serve = await startProcess('serve', { DATABASE_URL: url })
  const operations = `http://127.0.0.1:${serve.started.operationsPort}`
  for (const door of [serve.started.address, operations]) {
    assert.equal((await fetch(`${door}/livez`)).status, 200)
    assert.equal((await fetch(`${door}/readyz`)).status, 200)
  }
  const answer = await fetch(`${serve.started.address}/api/v1/networks`)
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_00/)
  const metrics = await (await fetch(`${operations}/metrics`)).text()
  assert.match(
    metrics,
    /http_server_request_duration_seconds_count\{method="GET",route="\/api\/v1\/networks",status="200"\} 1/,
  )
  assert.equal(
    (await fetch(`${serve.started.address}/metrics`)).status,
    404,
    'metrics do not face the public',
  )
})

test('a request that is under way when serve is told to stop still gets its answer, and serve ends by itself', async () => {
  const { ctx, databaseUrl } = await openTestApp()
  const { key } = await makeStore(ctx)
  const serve = await startProcess('serve', { DATABASE_URL: databaseUrl })
  const port = Number.parseInt(new URL(serve.started.address ?? '').port, 10)
  const body = JSON.stringify(order)
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  const ended = new Promise((resolve) => socket.once('close', resolve))
  socket.write(
    `POST /api/v1/checkouts HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  await new Promise((resolve) => socket.once('data', resolve))
  assert.match(answer, /100 Continue/, 'the request has been received')
  const stopped = serve.kill('SIGTERM')
  await new Promise<void>((resolve) => {
    serve.child.stdout?.on('data', (chunk) => /"stopping"/.test(String(chunk)) && resolve())
  })
  socket.write(body)
  await ended
  assert.match(answer, /HTTP\/1\.1 201 Created/)
  assert.equal(await stopped, 0)
})

test('work stops within a second of being told to', async () => {
  const { url } = await freshDatabase()
  const work = await startProcess('work', { DATABASE_URL: url })
  assert.equal((await fetch(`http://127.0.0.1:${work.started.operationsPort}/readyz`)).status, 200)
  assert.equal(await work.kill('SIGTERM'), 0)
})

test('secrets that pass through serve never reach its output, whatever the answer', async () => {
  const { ctx, databaseUrl } = await openTestApp()
  const { key } = await makeStore(ctx)
  const withPassword = databaseUrl.replace('farthing@', 'farthing:canary-password@')
  const serve = await startProcess('serve', { DATABASE_URL: withPassword, LOG_LEVEL: 'debug' })
  const secret = key.split('_').at(-1) ?? ''
  const signature = `0x${'ca11ab1e'.repeat(16)}1b`
  const account = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
  const payload = {
    x402Version: 2,
    accepted: {
      scheme: 'exact',
      network: 'eip155:8453',
      asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
    },
    payload: {
      signature,
      authorization: {
        from: account,
        to: account,
        value: '1',
        validAfter: '0',
        validBefore: '1',
        nonce: `0x${'7'.repeat(64)}`,
      },
    },
  }
  const payment = Buffer.from(JSON.stringify(payload)).toString('base64')
  const call = (path: string, init: RequestInit) => fetch(`${serve.started.address}${path}`, init)
  const headers = { 'X-API-Key': key, 'Content-Type': 'application/json', 'PAYMENT-SIGNATURE': payment }
  const created = await call('/api/v1/checkouts', { method: 'POST', headers, body: JSON.stringify(order) })
  assert.equal(created.status, 201)
  const { id } = (await created.json()) as { id: string }
  const statuses = [
    await call('/api/v1/checkouts', { method: 'POST', headers, body: `{"secret":"${key}"` }),
    await call(`/api/v1/checkouts/${id}`, { method: 'POST', headers }),
    await call('/api/v1/checkouts', { headers: { 'X-API-Key': key.slice(0, -1) } }),
    await call(`/api/v1/checkouts/${key}`, { headers }),
    await call(`/nowhere?api_key=${key}`, {}),
  ].map(({ status }) => status)
  assert.deepEqual(statuses, [400, 503, 401, 404, 404])
  await serve.kill('SIGTERM')
  assert.match(serve.output(), /"status":201/)
  for (const canary of [secret, payment, 'canary-password', signature])
    assert(!serve.output().includes(canary), canary)
})

test('a wrong setting stops serve at once with a sentence about each', async () => {
  await assert.rejects(
    startProcess('serve', { DATABASE_URL: 'nowhere', PORT: 'x' }),
    /DATABASE_URL must[^\n]*\nPORT must/,
  )
})

test('rates that never change are refused where money is real', async () => {
  const { url } = await freshDatabase()
  await assert.rejects(
    startProcess('serve', { DATABASE_URL: url, FIXED_RATES: 'EUR=0.86' }),
    /FIXED_RATES is for development: remove BASE_MAINNET from NETWORKS/,
  )
})

test('the address that counts is the client’s behind a trusted proxy, and the proxy’s own otherwise', async () => {
  const settings = { ADDRESS_REQUESTS_PER_SECOND: '1' }
  const ask = async (app: Awaited<ReturnType<typeof openTestApp>>, client: string) =>
    (
      await app.request({
        url: '/api/v1/networks',
        headers: { 'x-forwarded-for': client },
        remoteAddress: '10.0.0.1',
      })
    ).statusCode
  const trusting = await openTestApp({ ...settings, TRUSTED_PROXIES: '10.0.0.0/8' })
  trusting.clock.now = new Date()
  assert.deepEqual(
    [await ask(trusting, '192.0.2.1'), await ask(trusting, '192.0.2.2'), await ask(trusting, '192.0.2.1')],
    [200, 200, 429],
  )
  const wary = await openTestApp(settings)
  wary.clock.now = new Date()
  assert.deepEqual([await ask(wary, '192.0.2.1'), await ask(wary, '192.0.2.2')], [200, 429])
})

test('a key has its own limit, told in headers, and a wrong key counts against its address', async () => {
  const { ctx, clock, request } = await openTestApp({
    KEY_REQUESTS_PER_SECOND: '2',
    ADDRESS_REQUESTS_PER_SECOND: '3',
  })
  const { key } = await makeStore(ctx)
  clock.now = new Date()
  const list = (apiKey: string) => request({ url: '/api/v1/checkouts', headers: { 'x-api-key': apiKey } })
  const answers = [await list(key), await list(key), await list(key)]
  assert.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [200, 200, 429],
  )
  assert.equal(answers[1]?.headers.ratelimit, '"key";r=0;t=1')
  assert.equal(answers[2]?.headers['retry-after'], '1')
  const wrong = [await list('sk_live_x'), await list('sk_live_x'), await list('sk_live_x')]
  assert.deepEqual(
    wrong.map(({ statusCode }) => statusCode),
    [401, 401, 429],
  )
})

test('a database that cannot be reached makes serve not ready, and a request an explained 503', async () => {
  const { app, ctx } = await openTestApp()
  const { key } = await makeStore(ctx)
  const gone = openDatabase({ url: 'postgres://farthing@127.0.0.1:9/none', connections: 4, name: 'gone' })
  const cut = buildApp({ ...ctx, db: gone }, { isDraining: false })
  assert.equal((await cut.inject('/readyz')).statusCode, 503)
  const answer = await cut.inject({ url: '/api/v1/checkouts', headers: { 'x-api-key': key } })
  assert.equal(answer.statusCode, 503)
  assert.equal(answer.json().code, 'unavailable')
  assert.equal((await app.inject('/readyz')).statusCode, 200)
  await gone.close()
})

test('a database that ends in the moment a connection to it is open is the database away, and the process goes on', async () => {
  const { url } = await freshDatabase()
  const { port } = new URL(url)
  const farewell = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')
  const length = Buffer.alloc(4)
  length.writeInt32BE(farewell.length + 4)
  // The real database, whose first "ready" comes in one piece with its farewell.
  const door = createServer((client) => {
    const upstream = connect(Number.parseInt(port, 10), '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream)
    upstream.on('data', (chunk) => {
      const isReady = chunk.subarray(-6).equals(Buffer.from('Z\0\0\0\x05I'))
      if (isReady) client.end(Buffer.concat([chunk, Buffer.from('E'), length, farewell]))
      else client.write(chunk)
    })
    client.on('close', () => upstream.destroy())
  })
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  const address = door.address()
  assert(address && typeof address === 'object')
  const leaving = new URL(url)
  leaving.port = `${address.port}`
  const db = openDatabase({ url: leaving.href, connections: 2, name: 'leaving' })
  const unavailable = { code: 'unavailable' }
  await assert.rejects(
    db.transaction((tx) => tx.query('select 1')),
    unavailable,
  )
  await assert.rejects(db.query('select 1'), unavailable)
  await db.close()
  door.close()
})

test('a database that only reads, as a standby does until it leads, answers 503, and no connection to it is kept', async () => {
  const { url } = await freshDatabase()
  const name = new URL(url).pathname.slice(1)
  // What a session has at its start it keeps: only a new connection finds out what changed.
  const early = openDatabase({ url, connections: 2, name: 'early' })
  const late = openDatabase({ url, connections: 2, name: 'late' })
  const write = 'create temporary table written (one int)'
  await early.query(`alter database ${name} set default_transaction_read_only = on`)
  const unavailable = { code: 'unavailable' }
  await assert.rejects(late.query(write), unavailable)
  await assert.rejects(
    late.transaction((tx) => tx.query(write)),
    unavailable,
  )
  await early.query(`alter database ${name} set default_transaction_read_only = off`)
  await late.query(write)
  await late.transaction((tx) => tx.query(write))
  await Promise.all([early.close(), late.close()])
})
