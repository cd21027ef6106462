import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { Checkout, Page, StoreCheckout } from '@farthing/sdk'
import type { FastifyInstance } from 'fastify'
import { openDatabase } from '../../src/database/db.ts'
import { openNeighbour, openTestApp } from '../support/app.ts'
import { watchPauses } from '../support/pauses.ts'
import {
  type Answer,
  assertInvalid,
  assertProblem,
  openStore,
  order,
  registerWallet,
  type StoreClient,
  send,
  wallets,
} from '../support/store.ts'

const farthing = await openTestApp()
const neighbour = await openNeighbour(farthing)
const shop = await openStore(farthing)
const body = JSON.stringify(order)
const create = (key: string, payload: string | Buffer = body, by: StoreClient = shop) =>
  by.call('POST', '/api/v1/checkouts', payload, { 'idempotency-key': key })
const countOf = async (by: StoreClient) =>
  (await by.call('GET', '/api/v1/checkouts?limit=100')).json<Page<StoreCheckout>>().data.length

function assertReplay(replay: Answer, first: Answer): void {
  assert.equal(replay.statusCode, 201, replay.body)
  assert.equal(replay.headers['idempotency-replayed'], 'true')
  assert.equal(replay.headers.location, first.headers.location)
  assert.equal(replay.headers['content-type'], first.headers['content-type'])
  assert.deepEqual(replay.rawPayload, first.rawPayload)
}

test('a repeated request gets the first answer byte for byte and creates nothing', async () => {
  const seller = await openStore(farthing)
  const payload = JSON.stringify({ ...order, orderId: '注文 é 👍 \\ "', priceAmount: '1.10' })
  const first = await create('key-1', payload, seller)
  assert.equal(first.statusCode, 201)
  assert.equal(first.headers['idempotency-replayed'], undefined)
  for (let i = 0; i < 3; i++) assertReplay(await create('key-1', payload, seller), first)
  assert.equal(await countOf(seller), 1)
  const events = await seller.events()
  assert.equal(events.filter(({ type }) => type === 'checkout.created').length, 1)
})

test('a repeated request gets the first answer even if the checkout has changed since', async () => {
  const first = await create('changed')
  await shop.call('POST', `/api/v1/checkouts/${first.json<Checkout>().id}/cancel`)
  assertReplay(await create('changed'), first)
})

test('another process replays the same answer', async () => {
  const first = await create('elsewhere')
  const headers = { 'x-api-key': shop.key, 'idempotency-key': 'elsewhere' }
  assertReplay(await send(neighbour, 'POST', '/api/v1/checkouts', body, headers), first)
})

test('the same key with a different body is rejected, even if the difference has no meaning', async () => {
  await create('used')
  for (const other of [`${body} `, JSON.stringify({ ...order, orderId: 'other' })])
    assertProblem(await create('used', other), 422, 'idempotency_key_reused')
  assertProblem(
    await create('used', JSON.stringify({ ...order, priceAmount: 'x' })),
    422,
    'idempotency_key_reused',
  )
})

test('a stored answer is replayed even after the checkout’s wallet was retired', async () => {
  const seller = await openStore(farthing, { evmWallet: null })
  const { id } = await registerWallet(seller, wallets[1])
  const first = await create('before', body, seller)
  assert.equal(first.statusCode, 201)
  await seller.call('POST', `/api/v1/stores/${seller.id}/wallets/${id}/retire`)
  assertProblem(await create('after', body, seller), 409, 'wallet_required')
  assertReplay(await create('before', body, seller), first)
})

test('a refusal is not stored: the same key and body succeed once the reason is gone', async () => {
  const seller = await openStore(farthing, { evmWallet: null })
  assertProblem(await create('again', body, seller), 409, 'wallet_required')
  await registerWallet(seller, wallets[1])
  const answer = await create('again', body, seller)
  assert.equal(answer.statusCode, 201, answer.body)
  assert.equal(answer.headers['idempotency-replayed'], undefined)
})

test('keys belong to a store: two stores may use the same key', async () => {
  const [one, other] = [await openStore(farthing), await openStore(farthing)]
  const answers = [await create('shared', body, one), await create('shared', body, other)]
  assert.deepEqual(
    answers.map(({ statusCode, headers }) => [statusCode, headers['idempotency-replayed']]),
    [
      [201, undefined],
      [201, undefined],
    ],
  )
  assert.notEqual(answers[0]?.json<Checkout>().id, answers[1]?.json<Checkout>().id)
})

test('concurrent requests with the same key through two processes create one checkout and get the same answer', async () => {
  const seller = await openStore(farthing)
  const headers = { 'x-api-key': seller.key, 'idempotency-key': 'at-once' }
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      send(i % 2 === 0 ? farthing.app : neighbour, 'POST', '/api/v1/checkouts', body, headers),
    ),
  )
  assert.deepEqual([...new Set(answers.map(({ statusCode }) => statusCode))], [201])
  assert.equal(new Set(answers.map((answer) => answer.body)).size, 1)
  assert.equal(answers.filter((answer) => !answer.headers['idempotency-replayed']).length, 1)
  assert.equal(await countOf(seller), 1)
})

test('many keys used at once, in opposite order in two processes, neither stall nor get mixed up', async () => {
  const seller = await openStore(farthing)
  const keys = Array.from({ length: 40 }, (_, i) => `k${i}`)
  const ask = async (app: FastifyInstance, key: string) => {
    const headers = { 'x-api-key': seller.key, 'idempotency-key': key }
    const answer = await send(app, 'POST', '/api/v1/checkouts', { ...order, orderId: key }, headers)
    assert.equal(answer.statusCode, 201, answer.body)
    assert.equal(answer.json<Checkout>().orderId, key)
  }
  await Promise.all([
    ...keys.map((key) => ask(farthing.app, key)),
    ...keys.toReversed().map((key) => ask(neighbour, key)),
  ])
  assert.equal(await countOf(seller), keys.length)
})

test('a key is 1 to 255 visible ASCII characters in one header', async () => {
  for (const key of ['!', '~', 'a,b', 'x'.repeat(255)]) assert.equal((await create(key)).statusCode, 201, key)
  for (const key of ['', 'a b', 'x'.repeat(256), 'é', 'a\tb', 'one, two'])
    assertInvalid(await create(key), 'Idempotency-Key')
})

test('a second request with a key whose first is still running gets 409 after about 5 s; other keys do not wait', async () => {
  const holder = openDatabase({ url: farthing.databaseUrl, connections: 4, name: 'holder' })
  const rolledBack = new Error('rolled back')
  const seconds = { held: 0, other: 0 }
  const pauses = watchPauses()
  const timed = async (name: keyof typeof seconds, request: Promise<Answer>) => {
    const startedAt = performance.now()
    const answer = await request
    seconds[name] = (performance.now() - startedAt) / 1_000
    return answer
  }
  const work = holder.transaction(async (tx) => {
    await tx.query(
      `insert into idempotency_keys (store_id, route, key, body_hash, resource_id, answer, created_at)
       values ($1, 'POST /api/v1/checkouts', 'running', $2, 'ch_unknown', '{}', clock())`,
      [shop.id, hash('sha256', body, 'buffer')],
    )
    const held = timed('held', create('running'))
    // In the same turn of the event loop, so that both are in one group commit.
    const other = timed('other', create('free'))
    assert.equal((await other).statusCode, 201)
    const answer = await held
    assertProblem(answer, 409, 'idempotency_in_progress')
    assert.equal(answer.headers['retry-after'], '1')
    throw rolledBack
  })
  await assert.rejects(work, rolledBack)
  await holder.close()
  const paused = pauses() / 1_000
  assert(seconds.held > 4.5 && seconds.held < 7 + paused, `answered after ${seconds.held} s`)
  assert(seconds.other < 2 + paused, `another key waited ${seconds.other} s`)
  assert.equal((await create('running')).statusCode, 201, 'the key is free after the rollback')
})
