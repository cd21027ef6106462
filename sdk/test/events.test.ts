/** Readers of the event log miss nothing, whatever fails. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LogEntry } from '@farthing/sdk'
import { assignWaitingSequences } from '../../server/src/events/assign-sequence.ts'
import { openStore, watchedFetch } from './support/shops.ts'

const shop = await openStore()
const { client } = shop
const order = { orderId: 'order-1', priceAmount: '12.50', priceCurrency: 'USD' }

async function create(count: number): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await client.checkouts.create(order)).id)
  while ((await assignWaitingSequences(shop.ctx)) > 0);
  return ids
}

test('a sync delivers every event after its cursor, in order, and the next sync continues there', async () => {
  await create(130)
  const sequences: number[] = []
  const onEvent = ({ sequence }: { sequence: number }) => sequences.push(sequence)
  const cursor = await client.events.sync({ onEvent })
  assert.deepEqual(
    sequences,
    Array.from(sequences, (_, i) => i + 1),
  )
  assert(sequences.length >= 130)
  assert.equal(await client.events.sync({ cursor, onEvent }), cursor)
  const before = sequences.length
  await create(3)
  await client.events.sync({ cursor, onEvent })
  assert.deepEqual(sequences.slice(before), [before + 1, before + 2, before + 3])
})

test('a handler that fails in the middle of a page misses no event and sees none twice', async () => {
  await create(10)
  const done: string[] = []
  let stored: string | null = null
  for (;;) {
    let left = 3
    try {
      await client.events.sync({
        cursor: stored,
        onEvent(event, cursor) {
          if (left-- === 0) throw new Error('the shop’s database is away')
          done.push(event.id)
          stored = cursor
        },
      })
      break
    } catch (error) {
      assert.match(String(error), /database is away/)
    }
  }
  const all: string[] = []
  await client.events.sync({ onEvent: ({ id }) => all.push(id) })
  assert.deepEqual(done, all)
})

test('the client derives the same cursor for each event as the server', async () => {
  await create(1)
  const read: LogEntry[] = []
  await client.events.sync({ onEvent: (event, cursor) => read.push({ event, cursor }) })
  const abort = new AbortController()
  const answer = await fetch(`${shop.baseUrl}/api/v1/events`, {
    headers: { 'x-api-key': shop.key, accept: 'text/event-stream' },
    signal: abort.signal,
  })
  let text = ''
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.match(/^id: .+$/gm)?.length === read.length) break
  }
  abort.abort()
  assert.deepEqual(
    text.match(/^id: .+$/gm),
    read.map(({ cursor }) => `id: ${cursor}`),
  )
})

test('a stream yields past events, then new ones, across lost connections, until it is aborted', async () => {
  const after = await client.events.end()
  const { fetch: losing } = watchedFetch((_request, count) => count % 2 === 1)
  const abort = new AbortController()
  const stream = shop
    .open({ fetch: losing, retriesMax: 0 })
    .events.stream({ after, type: 'checkout.created', signal: abort.signal })
  const expected = await create(2)
  const seen: (string | null)[] = []
  for await (const { event } of stream) {
    seen.push(event.checkoutId)
    if (seen.length === 2) expected.push(...(await create(2)))
    if (seen.length === 4) abort.abort()
  }
  assert.deepEqual(seen, expected)
})

test('a stream with an invalid key ends with that refusal', async () => {
  const stream = shop.open({ apiKey: 'sk_test_wrong' }).events.stream()
  await assert.rejects(stream.next(), { name: 'FarthingError', code: 'invalid_api_key' })
})

test('after the cursor of the log’s end come only later events', async () => {
  const after = await client.events.end()
  assert.deepEqual((await client.events.list({ after })).data, [])
  const [id] = await create(1)
  assert.deepEqual(
    (await client.events.list({ after })).data.map(({ checkoutId }) => checkoutId),
    [id],
  )
})

test('after a database restore, a sync continues where the server says', async () => {
  const cursor = await client.events.end()
  await shop.ctx.db.query('update event_log set epoch = epoch + 1')
  const [id] = await create(1)
  const seen: (string | null)[] = []
  const next = await client.events.sync({ cursor, onEvent: ({ checkoutId }) => seen.push(checkoutId) })
  assert.deepEqual(seen, [id])
  assert.notEqual(next.split('-')[0], cursor.split('-')[0])
})
