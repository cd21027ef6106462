import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { makeStore, openTestApp } from '../support/app.ts'
import { freshDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const order = { orderId: 'order-1', priceAmount: '1', priceCurrency: 'USD' }

test('serve reports that it is alive and ready, counts requests, and returns an id with every answer', async () => {
  const { url } = await freshDatabase()
  const serve = await startProcess('serve', { DATABASE_URL: url })
  const operations = `http://127.0.0.1:${serve.started.operationsPort}`
  for (const address of [serve.started.address, operations]) {
    assert.equal((await fetch(`${address}/livez`)).status, 200)
    assert.equal((await fetch(`${address}/readyz`)).status, 200)
  }
  const answer = await fetch(`${serve.started.address}/api/v1/networks`)
  assert.match(answer.headers.get('x-request-id') ?? '', /^req_00/)
  const metrics = await (await fetch(`${operations}/metrics`)).text()
  const counted = metrics
    .split('\n')
    .filter((line) => line.startsWith('http_server_request_duration_seconds_count{'))
  const labels = ['method="GET"', 'route="/api/v1/networks"', 'status="200"', 'cell="00"']
  assert.ok(
    counted.some((line) => labels.every((label) => line.includes(label)) && line.endsWith('} 1')),
    counted.join('\n'),
  )
  assert.equal((await fetch(`${serve.started.address}/metrics`)).status, 404, 'metrics are not public')
})

test('a request in progress when serve is told to stop still gets its answer, and serve then exits', async () => {
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

test('serve logs every request before it exits, and loses at most the last moment when it is killed', async () => {
  const { url } = await freshDatabase()
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const serve = await startProcess('serve', { DATABASE_URL: url })
    const ask = () => fetch(`${serve.started.address}/api/v1/networks`).then(({ headers }) => headers)
    const ids = async (count: number) =>
      (await Promise.all(Array.from({ length: count }, ask))).map((headers) => headers.get('x-request-id'))
    const isLogged = (id: string | null) => serve.output().includes(`"requestId":"${id}"`)
    const early = await ids(20)
    // A line waits for others for 200 ms at most, so it is out long before the process is killed.
    if (signal === 'SIGKILL') await until('the log has every request', async () => early.every(isLogged))
    const late = await ids(20)
    const closed = once(serve.child, 'close')
    await serve.kill(signal)
    await closed
    assert(early.every(isLogged))
    if (signal === 'SIGTERM') assert(late.every(isLogged) && serve.output().includes('"stopped"'))
  }
})

test('work exits with 0 when it is told to stop', async () => {
  const { url } = await freshDatabase()
  const work = await startProcess('work', { DATABASE_URL: url })
  assert.equal((await fetch(`http://127.0.0.1:${work.started.operationsPort}/readyz`)).status, 200)
  assert.equal(await work.kill('SIGTERM'), 0)
})

test('secrets in requests and settings never appear in serve’s output, whatever the answer', async () => {
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
  const token = 'canary_link-token'.padEnd(43, 'x')
  for (const link of [`00_${token}`, `01_${token}`, `00%5F${token}`, token, `00_${token}/x`])
    assert.notEqual((await call(`/c/refund/${link}`, {})).status, 200)
  await serve.kill('SIGTERM')
  assert.match(serve.output(), /"status":201/)
  for (const canary of [secret, payment, 'canary-password', signature, 'canary_link'])
    assert(!serve.output().includes(canary), canary)
})

test('serve refuses to start with invalid settings, and prints one sentence about each', async () => {
  await assert.rejects(
    startProcess('serve', { DATABASE_URL: 'nowhere', PORT: 'x' }),
    /DATABASE_URL must[^\n]*\nPORT must/,
  )
})

test('serve refuses fixed rates on networks with real money', async () => {
  const { url } = await freshDatabase()
  await assert.rejects(
    startProcess('serve', { DATABASE_URL: url, FIXED_RATES: 'EUR=0.86' }),
    /FIXED_RATES is for development: remove BASE_MAINNET from NETWORKS/,
  )
})
