/** Long polling and streaming of the event log, and the order in which stores get their sequence numbers. */
import assert from 'node:assert/strict'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { Event, EventPage } from '@farthing/sdk'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { createKey, revokeKey } from '../../../src/stores/api-keys.ts'
import { openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { byOperator } from '../../support/operator.ts'
import { assertProblem, openStore, type StoreClient } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const base = await farthing.app.listen({ host: '127.0.0.1', port: 0 })

const pageOf = async (shop: StoreClient, query: string) =>
  (await shop.call('GET', `/api/v1/events${query}`)).json<EventPage>()

/** Reads server-sent events as a client would, until `close` is called. */
function openStream(shop: StoreClient, query = '', headers: Record<string, string> = {}) {
  const stream = { events: [] as Event[], ids: [] as string[], comments: 0, status: 0, isEnded: false }
  let text = ''
  const request = get(
    `${base}/api/v1/events${query}`,
    { headers: { accept: 'text/event-stream', 'x-api-key': shop.key, ...headers } },
    (response) => {
      stream.status = response.statusCode ?? 0
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
          const data = field('data')
          if (data === undefined) {
            stream.comments++
            continue
          }
          const event = JSON.parse(data) as Event
          assert.equal(field('event'), event.type)
          stream.events.push(event)
          stream.ids.push(field('id') ?? '')
        }
      })
      response.on('close', () => {
        stream.isEnded = true
      })
    },
  )
  request.on('error', () => {})
  const close = () => request.destroy()
  atEnd(close)
  return Object.assign(stream, { close })
}

test('a long poll returns the next event as soon as it happens, and an empty page when its time is up', async () => {
  const shop = await openStore(farthing)
  await shop.events()
  const { cursor } = await pageOf(shop, '?limit=100')
  let isAnswered = false
  const waiting = pageOf(shop, `?after=${cursor}&waitSeconds=30`).finally(() => {
    isAnswered = true
  })
  // Another store's events do not end the wait.
  const other = await openStore(farthing)
  await other.events()
  assert.equal(isAnswered, false)
  const { id } = await shop.create()
  await assignWaitingSequences(ctx)
  const page = await waiting
  assert.deepEqual(
    page.data.map(({ type, checkoutId }) => [type, checkoutId]),
    [['checkout.created', id]],
  )
  const idle = await pageOf(shop, `?after=${page.cursor}&waitSeconds=1`)
  assert.deepEqual(idle, { data: [], cursor: page.cursor, hasMore: false })
})

test('a filtered long poll keeps waiting when other events happen, and its cursor moves past them', async () => {
  const shop = await openStore(farthing)
  await shop.events()
  const { cursor } = await pageOf(shop, '?limit=100')
  const waiting = pageOf(shop, `?after=${cursor}&waitSeconds=30&type=checkout.canceled`)
  const { id } = await shop.create()
  await assignWaitingSequences(ctx)
  await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
  await assignWaitingSequences(ctx)
  const page = await waiting
  assert.deepEqual(
    page.data.map(({ type }) => type),
    ['checkout.canceled'],
  )
  const passed = await pageOf(shop, `?after=${cursor}&type=wallet.retired`)
  assert.deepEqual([passed.data.length, passed.cursor], [0, page.cursor])
})

test('a stream sends past and new events in order, and resumes from its last id without loss or repetition', async () => {
  const shop = await openStore(farthing)
  await Promise.all(Array.from({ length: 130 }, () => shop.create()))
  while ((await assignWaitingSequences(ctx)) > 0);
  const first = openStream(shop)
  await until('past events arrive', async () => first.events.length === 132)
  await shop.create()
  await assignWaitingSequences(ctx)
  await until('the new event arrives', async () => first.events.length === 133)
  first.close()
  await Promise.all(Array.from({ length: 3 }, () => shop.create()))
  await assignWaitingSequences(ctx)
  const second = openStream(shop, '?after=1-0', { 'last-event-id': first.ids[99] ?? '' })
  await until('the remaining events arrive', async () => second.events.length === 36)
  assert.deepEqual(
    [...first.events.slice(0, 100), ...second.events].map(({ sequence }) => sequence),
    Array.from({ length: 136 }, (_, i) => i + 1),
  )
  assert.equal(second.ids.at(-1), (await pageOf(shop, '?limit=1&after=1-135')).cursor)
  second.close()
})

test('a stream with an invalid cursor gets a problem response, and a stream ends when its key is revoked', async () => {
  const shop = await openStore(farthing)
  await shop.events()
  assertProblem(
    await shop.call('GET', '/api/v1/events?after=9-1', undefined, { accept: 'text/event-stream' }),
    409,
    'log_restarted',
  )
  const stream = openStream(shop)
  await until('past events arrive', async () => stream.events.length === 2)
  await revokeKey(ctx, null, byOperator, shop.key.split('_')[2] ?? '', new Date())
  // More events happen. The holder of the revoked key receives them for a second at most.
  let happened = 0
  await until('the stream ends', async () => {
    await createKey(ctx, shop.store.id, byOperator, {}, new Date())
    happened++
    await assignWaitingSequences(ctx)
    return stream.isEnded
  })
  assert(stream.events.length < 3 + happened)
})

test('long polls and streams end when the application closes', async () => {
  const neighbour = await openTestApp()
  await neighbour.app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = neighbour.app.server.address() as AddressInfo
  const shop = await openStore(neighbour)
  await shop.events()
  const ask = async (accept: string, query: string) =>
    await new Promise((resolve, reject) => {
      const options = { agent: false, headers: { accept, 'x-api-key': shop.key } } as const
      get(`http://127.0.0.1:${port}/api/v1/events${query}`, options, (response) =>
        response.resume().on('close', resolve),
      ).on('error', reject)
    })
  let arrived = 0
  neighbour.app.server.on('request', () => arrived++)
  const waiting = [ask('*/*', '?after=1-2&waitSeconds=30'), ask('text/event-stream', '')]
  await until('both requests have arrived', async () => arrived === 2)
  const began = performance.now()
  await neighbour.app.close()
  await Promise.all(waiting)
  // Less than the 30 s that the first request would have waited.
  assert(performance.now() - began < 25_000)
})

test('numbering takes turns between stores: no store waits for all stores with lower ids', async () => {
  const { db } = ctx
  // 450 stores, generated in SQL, with more waiting events than one run numbers.
  await db.query(
    `insert into stores (id, mode, name, finality_policy, created_at)
     select 'st_00' || lpad(n::text, 26, '0'), 'test', 'Many', '[]', now() from generate_series(1, 450) n`,
  )
  await db.query(`insert into event_counters (store_id) select id from stores where name = 'Many'`)
  const fill = async () =>
    await db.query(
      `insert into events (id, store_id, type, data, created_at)
       select 'evt_' || gen_random_uuid(), id, 'key.created', '{}', now() from stores where name = 'Many'`,
    )
  const turn = { after: '' }
  const numbered = new Set<string>()
  for (let run = 0; run < 3; run++) {
    // Under constant load every store has something waiting before each run.
    await fill()
    await assignWaitingSequences(ctx, turn)
    const rows = await db.query<{ id: string }>(
      `select s.id from stores s join event_counters c on c.store_id = s.id
       where s.name = 'Many' and c.last_sequence > 0`,
    )
    for (const { id } of rows) numbered.add(id)
  }
  assert.equal(numbered.size, 450)
})
