/** Live updates of payment pages: what is sent, when, and how many connections are allowed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { digestOf, readView } from '../../../src/checkouts/view.ts'
import { buildApp } from '../../../src/http/app.ts'
import { post } from '../../payments/transfers/support/hand-transfers.ts'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, setStatus } from '../../support/by-hand.ts'
import { openStore } from '../../support/store.ts'
import { until } from '../../support/watch.ts'

const farthing = await openTestApp({
  NETWORKS: 'BASE_SEPOLIA',
  LIVE_CONNECTIONS_MAX: '6',
  LIVE_CONNECTIONS_PER_ADDRESS: '4',
  TRUSTED_PROXIES: '127.0.0.1',
})
const { db } = farthing.ctx
const address = await farthing.app.listen({ port: 0, host: '127.0.0.1' })
const shop = await openStore(farthing, { mode: 'test' })
await db.query(
  `insert into followers (network, head_number, head_time, head_seen_at) values ('eip155:84532', 1, clock(), clock())`,
)

type Told = { id: string; status: string; version: number; digest: string; isTransferReserved: boolean }
type Feed = {
  readonly response: IncomingMessage
  readonly told: Told[]
  readonly text: () => string
  readonly isEnded: () => boolean
  close(): void
}

async function open(id: string, headers: Record<string, string> = {}, at = address): Promise<Feed> {
  const told: Told[] = []
  let text = ''
  let isEnded = false
  const asked: ClientRequest = request(`${at}/c/${id}/live`, { headers, agent: false })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject).end()
  })
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    told.length = 0
    for (const [, version = '', data = ''] of text.matchAll(/^id: (.*)\ndata: (.*)\n\n/gm))
      told.push({ id: version, ...JSON.parse(data) })
  })
  response.on('error', () => {})
  response.on('close', () => {
    isEnded = true
  })
  return { response, told, text: () => text, isEnded: () => isEnded, close: () => asked.destroy() }
}

async function countOpen(): Promise<number> {
  const [metric] = (await farthing.ctx.metrics.livePages.get()).values
  return metric?.value ?? 0
}

async function untilClosed(...feeds: Feed[]): Promise<void> {
  for (const feed of feeds) feed.close()
  await until(async () => (await countOpen()) === 0, 'all pages closed')
}

test('a page gets the current state at once and then every change: a reserved amount, a payment', async () => {
  const { id } = await shop.create()
  const feed = await open(id)
  assert.equal(feed.response.statusCode, 200)
  assert.match(String(feed.response.headers['content-type']), /^text\/event-stream/)
  assert.equal(feed.response.headers['cache-control'], 'no-store')
  assert.equal(feed.response.headers['x-accel-buffering'], 'no')
  await until(async () => feed.told.length === 1, 'the state')
  assert.deepEqual(
    [feed.told[0]?.status, feed.told[0]?.isTransferReserved, feed.told[0]?.id],
    ['OPEN', false, '1'],
  )

  await post(farthing, `${id}/transfer`)
  await until(async () => feed.told.length === 2, 'the amount')
  assert.deepEqual([feed.told[1]?.status, feed.told[1]?.isTransferReserved], ['OPEN', true])
  const view = await readView(farthing.ctx, id)
  assert(view)
  assert.equal(feed.told[1]?.digest, digestOf(view))

  await completeByHand(farthing, id)
  await db.query('update checkouts set version = version + 1 where id = $1', [id])
  await until(async () => feed.told.length === 3, 'the payment')
  assert.equal(feed.told[2]?.status, 'COMPLETED')
  assert.equal(new Set(feed.told.map(({ digest }) => digest)).size, 3)
  const status = await farthing.request({ url: `/c/${id}/status` })
  const { id: _, ...last } = feed.told[2] as Told
  assert.deepEqual(status.json(), last, 'polling returns the same state')
  await untilClosed(feed)
})

test('a page learns that the checkout has expired before its status changes', async () => {
  const { id } = await shop.create()
  const feed = await open(id)
  await until(async () => feed.told.length === 1, 'the state')
  await db.query(
    `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() where id = $1`,
    [id],
  )
  await until(async () => feed.told.length === 2, 'the end')
  assert.equal(feed.told[1]?.status, 'OPEN')
  await untilClosed(feed)
})

test('a page that reconnects gets what it missed in one message; all pages of a checkout get the same messages', async () => {
  const { id } = await shop.create()
  const first = await open(id)
  await until(async () => first.told.length === 1, 'the state')
  await untilClosed(first)
  await setStatus(farthing, id, 'PROCESSING')
  await db.query('update checkouts set version = 2 where id = $1', [id])
  const back = await open(id, { 'last-event-id': first.told[0]?.id ?? '' })
  const beside = await open(id)
  await until(async () => back.told.length === 1 && beside.told.length === 1, 'the state')
  assert.deepEqual([back.told[0]?.status, back.told[0]?.version], ['PROCESSING', 2])
  await setStatus(farthing, id, 'OPEN')
  await db.query('update checkouts set version = 3 where id = $1', [id])
  farthing.ctx.db.wakeUps.send('outcomes')
  await until(async () => back.told.length === 2 && beside.told.length === 2, 'the change')
  assert.deepEqual(back.told[1], beside.told[1])
  await untilClosed(back, beside)
})

test('an unknown checkout gets 404 and leaves no connection open', async () => {
  for (const id of [`ch_00${'0'.repeat(26)}`, 'x']) {
    assert.equal((await farthing.request({ url: `/c/${id}/status` })).statusCode, 404)
    assert.equal((await farthing.request({ url: `/c/${id}/live` })).statusCode, 404)
  }
  assert.equal(await countOpen(), 0)
})

test('a page that disconnects while it is being answered leaves no connection open', async () => {
  const { id } = await shop.create()
  const { port, hostname } = new URL(address)
  for (let i = 0; i < 60; i++) {
    const socket = connect(Number.parseInt(port, 10), hostname)
    await once(socket, 'connect')
    socket.write(`GET /c/${id}/live HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 10.0.1.${i}\r\n\r\n`)
    if (i % 2 === 0) await new Promise((resolve) => setImmediate(resolve))
    socket.resetAndDestroy()
  }
  await until(async () => (await countOpen()) === 0, 'all pages closed')
  const after = await Promise.all(Array.from({ length: 4 }, () => open(id)))
  assert(after.every(({ response }) => response.statusCode === 200))
  await untilClosed(...after)
})

test('connections are limited per address and in total; a refused page can poll instead', async () => {
  const { id } = await shop.create()
  const from = (host: string) => open(id, { 'x-forwarded-for': host })
  const one = await Promise.all(Array.from({ length: 4 }, () => from('10.0.0.1')))
  const refused = await from('10.0.0.1')
  assert.equal(refused.response.statusCode, 429)
  assert.equal(refused.response.headers['retry-after'], '5')
  const two = await Promise.all([from('10.0.0.2'), from('10.0.0.2')])
  assert.equal((await from('10.0.0.3')).response.statusCode, 429)
  const asked = await farthing.request({ url: `/c/${id}/status` })
  assert.equal(asked.json().status, 'OPEN')
  one[0]?.close()
  await until(async () => (await countOpen()) === 5, 'one gone')
  const again = await from('10.0.0.3')
  assert.equal(again.response.statusCode, 200)
  await untilClosed(...one, ...two, again)
})

test('a process that stops closes its connections at once and tells pages when to reconnect', async () => {
  const app = buildApp(farthing.ctx, { isDraining: false })
  const at = await app.listen({ port: 0, host: '127.0.0.1' })
  const { id } = await shop.create()
  const feeds = await Promise.all(Array.from({ length: 3 }, () => open(id, {}, at)))
  await app.close()
  await until(async () => feeds.every(({ isEnded }) => isEnded()), 'the end')
  for (const { text } of feeds) assert.match(text(), /retry: \d+\n\n$/)
})
