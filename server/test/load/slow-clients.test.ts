/**
 * Clients that hold sockets instead of making requests: some send nothing, some send their headers or a body byte by
 * byte. The server disconnects each of them in time and serves other clients meanwhile. FULL=1: 5,100 sockets.
 */
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { makeStore, openTestApp } from '../support/app.ts'
import { watchPauses } from '../support/pauses.ts'
import { startProcess } from '../support/process.ts'

const sockets = process.env.FULL === '1' ? 5_100 : 600
const dripMs = 250
/** A request must be complete within 15 s, and sockets are checked every second. The rest is for a busy machine. */
const shownOutMs = 25_000
const patienceMs = 3_000
const pauses = watchPauses()
const aloneMs = 2_000

const { ctx, databaseUrl } = await openTestApp()
const { key } = await makeStore(ctx)
const serve = await startProcess('serve', {
  DATABASE_URL: databaseUrl,
  KEY_REQUESTS_PER_SECOND: '1000000',
  ADDRESS_REQUESTS_PER_SECOND: '1000000',
})
const address = new URL(serve.started.address ?? '')

const headers = `POST /api/v1/checkouts HTTP/1.1\r\nHost: ${address.host}\r\nX-API-Key: ${key}\r\nContent-Type: application/json\r\n`
const kinds = [
  { name: 'silent', first: '', rest: '' },
  {
    name: 'slow headers',
    first: 'POST /api/v1/checkouts HTTP/1.1\r\n',
    rest: `X-Slow: ${'a'.repeat(4_000)}`,
  },
  { name: 'slow body', first: `${headers}Content-Length: 4000\r\n\r\n`, rest: '{'.padEnd(4_000) },
] as const

/** Opens a socket of this kind. Returns how long it stayed open, in milliseconds. */
async function hold({ first, rest }: (typeof kinds)[number]): Promise<number> {
  const socket: Socket = connect(Number.parseInt(address.port, 10), address.hostname)
  const startedAt = performance.now()
  let sent = 0
  const dripping = setInterval(() => rest && socket.write(rest[sent++] ?? ''), dripMs)
  return await new Promise((resolve) => {
    // A client that is disconnected while it sends gets a reset, which also counts as the end.
    socket.on('error', () => {})
    socket.on('connect', () => socket.write(first))
    socket.on('data', () => {})
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      clearInterval(dripping)
      resolve(performance.now() - startedAt)
    })
  })
}

/** Sends requests one after another until `isOver`. Returns how long each answer took, in milliseconds. */
async function askUntil(isOver: () => boolean): Promise<number[]> {
  const took: number[] = []
  while (!isOver()) {
    const startedAt = performance.now()
    const answer = await fetch(new URL('/api/v1/checkouts?limit=1', address), {
      headers: { 'x-api-key': key },
    })
    assert.equal(answer.status, 200, await answer.text())
    took.push(performance.now() - startedAt)
  }
  return took
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

test('a client that holds a socket without completing a request is disconnected, and no other client waits for it', async (t) => {
  const aloneUntil = performance.now() + aloneMs
  const alone = await askUntil(() => performance.now() > aloneUntil)
  const held = new Map<string, number[]>(kinds.map(({ name }) => [name, []]))
  let left = 0
  const slow = Array.from({ length: sockets }, async (_, i) => {
    const kind = kinds[i % kinds.length]
    assert(kind)
    left++
    held.get(kind.name)?.push(await hold(kind))
    left--
  })
  const besideUntil = performance.now() + shownOutMs
  const beside = await askUntil(() => left === 0 || performance.now() > besideUntil)
  assert.equal(left, 0, `${left} sockets are still open`)
  await Promise.all(slow)
  t.diagnostic(
    JSON.stringify({
      sockets,
      longestHeldMs: Object.fromEntries([...held].map(([name, ms]) => [name, Math.round(Math.max(...ms))])),
      answers: beside.length,
      medianMs: [alone, beside].map((values) => Math.round(percentile(values, 0.5))),
      p99Ms: [alone, beside].map((values) => Math.round(percentile(values, 0.99))),
    }),
  )
  assert(Math.max(...beside) < patienceMs + pauses(), `one answer took ${Math.max(...beside)} ms`)
  assert.equal((await fetch(new URL('/livez', address))).status, 200)
})
