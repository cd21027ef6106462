/**
 * Attack: a store opens more event streams than may wait for its log. The streams beyond that limit don't wait: they
 * query the database in a busy loop.
 * What should hold: a stream is idle while nothing happens, however many the store has opened.
 */
import assert from 'node:assert/strict'
import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { mock, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { makeStore, openTestApp } from '../../../support/app.ts'
import { atEnd } from '../../../support/at-end.ts'

/** At most 100 may wait per store. */
const streams = 105
/** All waiting streams share two queries per second. */
const queriesMax = 20
const app = await openTestApp()
const address = await app.app.listen({ host: '127.0.0.1', port: 0 })

/** Opens a stream and returns once the response begins. */
async function openStream(key: string): Promise<void> {
  const headers = { accept: 'text/event-stream', 'x-api-key': key }
  const asked: ClientRequest = get(`${address}/api/v1/events`, { agent: false, headers })
  atEnd(() => asked.destroy())
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    asked.once('response', resolve).once('error', reject)
  })
  response.on('error', () => {}).resume()
}

test('streams beyond a store’s limit do not query the database in a busy loop', {
  todo: 'attacks F8: a stream that may not wait reads the log again at once',
}, async () => {
  const { key } = await makeStore(app.ctx)
  await Promise.all(Array.from({ length: streams }, () => openStream(key)))
  const query = mock.method(app.ctx.db, 'query')
  await wait(1_000)
  const queries = query.mock.callCount()
  query.mock.restore()
  assert(queries <= queriesMax, `${queries} queries in a second in which nothing happened`)
})
