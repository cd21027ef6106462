/**
 * Attack: a store opens more event streams than may wait for its log. The streams beyond that limit don't wait: they
 * query the database in a busy loop.
 * What should hold: a stream is idle while nothing happens, and one beyond the limit is refused with the time to wait.
 */
import assert from 'node:assert/strict'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { mock, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { makeStore, openTestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'
import { until } from '../../../support/until.ts'

/** At most 100 may wait per store. */
const streams = 105
/** All waiting streams share two queries per second. */
const queriesMax = 20
const app = await openTestApp()
const address = await app.app.listen({ host: '127.0.0.1', port: 0 })

/** Opens a stream and returns once the response begins. */
async function openStream(key: string): Promise<IncomingMessage> {
  const headers = { accept: 'text/event-stream', 'x-api-key': key }
  const asked: ClientRequest = get(`${address}/api/v1/events`, { agent: false, headers })
  atEnd(() => asked.destroy())
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject)
  })
  return response.on('error', () => {}).resume()
}

test('streams beyond a store’s limit are refused, and none queries the database in a busy loop', async () => {
  const { key } = await makeStore(app.ctx)
  const opened = await Promise.all(Array.from({ length: streams }, () => openStream(key)))
  const refused = opened.filter(({ statusCode }) => statusCode === 429)
  assert.equal(opened.filter(({ statusCode }) => statusCode === 200).length, 100)
  assert.equal(refused.length, 5)
  assert(refused.every(({ headers }) => headers['retry-after'] === '5'))
  const query = mock.method(app.ctx.db, 'query')
  await wait(1_000)
  const queries = query.mock.callCount()
  query.mock.restore()
  assert(queries <= queriesMax, `${queries} queries in a second in which nothing happened`)

  const ask = (url: string) => app.request({ method: 'GET', url, headers: { 'x-api-key': key } })
  const last = '/api/v1/events?after=1-0'
  assert.equal((await ask(`${last}&waitSeconds=1`)).statusCode, 429, 'a long poll needs a place too')
  assert.equal((await ask(last)).statusCode, 200, 'a read that does not wait needs none')
})

test('a stream that ends makes its place free', async () => {
  const { key } = await makeStore(app.ctx)
  const opened = await Promise.all(Array.from({ length: 100 }, () => openStream(key)))
  assert.equal((await openStream(key)).statusCode, 429)
  opened[0]?.destroy()
  await until('a place is free', async () => (await openStream(key)).statusCode === 200)
})
