/** Clients that ask and do not read the answer: at every listener, for every kind of answer. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { openServer } from '../../src/http/server.ts'
import { atEnd } from '../support/at-end.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { patienceMs } from '../support/patience.ts'
import { until } from '../support/until.ts'
import { enrolWith, openConsole, openInvitedStore } from './console/support/console.ts'

const console = await openConsole({ listens: true })
const { farthing } = console
const { ctx } = farthing
const base = await farthing.app.listen({ host: '127.0.0.1', port: 0 })
const [serve, screens] = [quicken(farthing.app.server), quicken(console.app.server)]

/** A listener's limit for clients that do not read, divided by 40. One that has no limit still has none. */
function quicken(server: Server): Server {
  assert(server.timeout <= 60_000)
  return server.setTimeout(server.timeout / 40)
}

// An event log and an export that are longer than what the kernel keeps for a client that does not read.
const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
const { browser } = await enrolWith(console, token)
const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, '🪙'.repeat(500)]))
for (let made = 0; made < 300; made += 20)
  await Promise.all(Array.from({ length: 20 }, () => store.create({ metadata })))
while ((await assignWaitingSequences(ctx)) > 0);

type Headers = Readonly<Record<string, string>>
const ask = (method: string, path: string, headers: Headers = {}) => {
  const lines = Object.entries({ Host: 'x', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}
const key = { 'X-API-Key': store.key }
const reference = ask('GET', '/openapi.json')
const exported = ask('GET', `/stores/${store.id}/payments/export`, { Cookie: browser.cookie })

/** A client that sends this and reads nothing. */
function open(server: Server, request: string): Socket {
  const { port } = server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.pause().write(request)
  atEnd(() => socket.destroy())
  return socket
}

async function countOpen(server: Server): Promise<number> {
  return await new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
}

for (const [what, server, request] of [
  ['plain answers', serve, reference.repeat(40)],
  ['a stream of events', serve, ask('GET', '/api/v1/events', { ...key, Accept: 'text/event-stream' })],
  ['a page that was asked for behind what is not read', serve, `${reference.repeat(40)}${ask('GET', '/')}`],
  ['an export', screens, exported],
  ['screens of the console', screens, ask('GET', '/sign-in').repeat(2_000)],
] as const)
  test(`a client that does not read is dropped: ${what}`, async () => {
    const client = open(server, request)
    await once(client, 'connect')
    await until('the connection is there', async () => (await countOpen(server)) === 1)
    await until('the client is dropped', async () => (await countOpen(server)) === 0)
  })

test('an export that has nothing to send for longer than that is not broken off', async () => {
  const [arrived, answer] = await ctx.db.transaction(async (tx) => {
    await tx.query('lock table checkouts in access exclusive mode')
    const connection = once(screens, 'connection') as Promise<[Socket]>
    const asked = fetch(`${console.url}/stores/${store.id}/payments/export`, {
      headers: { cookie: browser.cookie, connection: 'close' },
      signal: AbortSignal.timeout(patienceMs),
    })
    const [socket] = await connection
    await once(socket, 'timeout')
    return [socket, await asked] as const
  })
  assert.equal(arrived.destroyed, false)
  assert.match(await answer.text(), /^checkout_id,.*k19.*\r\n$/s)
})

test('a client that gets a refusal before it has sent a request, and never hangs up, is dropped', async () => {
  const client = connect({
    port: (serve.address() as AddressInfo).port,
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  atEnd(() => client.destroy())
  client.write('HELO x\r\n')
  const [answer] = await once(client, 'data')
  assert.match(String(answer), /^HTTP\/1\.1 400 /)
  await until('the client is dropped', async () => (await countOpen(serve)) === 0)
})

test('many clients that do not read leave other requests unharmed, and the places of streams are free again', async () => {
  const stream = ask('GET', '/api/v1/events', { ...key, Accept: 'text/event-stream' })
  let come = 0
  const count = () => come++
  serve.on('connection', count)
  for (let i = 0; i < 30; i++) open(serve, i % 2 === 0 ? reference.repeat(40) : stream)
  await until('they have come', async () => come === 30)
  serve.off('connection', count)
  const answer = await fetch(`${base}/api/v1/store`, {
    headers: key,
    signal: AbortSignal.timeout(patienceMs),
  })
  assert.equal(answer.status, 200)
  await answer.text()
  await until('all are dropped', async () => (await countOpen(serve)) <= 1)
  const again = await fetch(`${base}/api/v1/events`, {
    headers: { ...key, accept: 'text/event-stream' },
    signal: AbortSignal.timeout(patienceMs),
  })
  assert.equal(again.status, 200)
  await again.body?.cancel()
})

const limitMs = 1_500

/** A server of ours with one long answer. */
async function openLong(size: number): Promise<Server> {
  const app = openServer(ctx, { isDraining: false }, base, limitMs)
  const piece = Buffer.alloc(2 ** 16)
  app.get('/long', (_request, reply) =>
    reply.send(Readable.from(Array.from({ length: size / piece.length }, () => piece))),
  )
  app.get('/piece', (_request, reply) => reply.send(Buffer.alloc(size)))
  await app.listen({ host: '127.0.0.1', port: 0 })
  atEnd(() => app.close())
  return app.server
}

for (const [what, said] of [
  ['empty lines', '\r\n'],
  ['requests', ask('GET', '/long')],
] as const)
  for (const path of ['/long', '/piece'])
    test(`a client that sends ${what} while it does not read is dropped: ${path}`, async () => {
      const server = await openLong(24 * 2 ** 20)
      const client = open(server, ask('GET', path))
      const pace = setInterval(() => client.write(said), limitMs / 5)
      await until('the connection is there', async () => (await countOpen(server)) === 1)
      await until('the client is dropped', async () => (await countOpen(server)) === 0)
      clearInterval(pace)
    })

for (const said of ['', '\r\n'])
  test(`a client that reads slowly but steadily gets the whole answer, ${said ? 'also if it sends meanwhile' : 'however long it takes'}`, async () => {
    const server = await openLong(24 * 2 ** 20)
    const taken = once(server, 'request').then(async ([, response]) => {
      const since = performance.now()
      await once(response, 'close')
      return { ms: performance.now() - since, isWhole: response.writableFinished }
    })
    const client = open(server, ask('GET', '/long'))
    let got = 0
    const pace = setInterval(() => {
      if (said) client.write(said)
      got += (client.read(2 ** 18) ?? client.read())?.length ?? 0
      if (got > 24 * 2 ** 20) client.destroy()
    }, limitMs / 15)
    await once(client, 'close')
    clearInterval(pace)
    const { ms, isWhole } = await taken
    assert(isWhole, `dropped after ${ms} ms`)
    assert(ms > 2 * limitMs, `the kernel took it all within ${ms} ms, so that this shows nothing`)
  })

test('a stream has no HEAD: it is refused at once, and takes no place', async () => {
  const { id } = await store.create()
  const cases = [
    [base, '/api/v1/events', { ...key, accept: 'text/event-stream' }, 405],
    [base, '/api/v1/events', key, 405],
    [base, `/pay/${id}/live`, {}, 404],
    [console.url, `/stores/${store.id}/live`, { cookie: browser.cookie }, 404],
    [console.url, `/stores/${store.id}/payments/export`, { cookie: browser.cookie }, 404],
  ] as const
  for (const [at, path, headers, status] of cases) {
    const signal = AbortSignal.timeout(patienceMs)
    const answer = await fetch(`${at}${path}`, { method: 'HEAD', headers, signal })
    assert.equal(answer.status, status, path)
    if (status === 405) assert.equal(answer.headers.get('allow'), 'GET')
  }
  const [metric] = (await ctx.metrics.livePages.get()).values
  assert.equal(metric?.value ?? 0, 0)
})
