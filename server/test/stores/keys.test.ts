import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createKey, revokeKey, rotateKey } from '../../src/stores/api-keys.ts'
import { openNeighbour, openTestApp } from '../support/app.ts'
import { byOperator } from '../support/operator.ts'
import { type Answer, assertProblem, openStore, order, send, wallets } from '../support/store.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const neighbour = await openNeighbour(farthing)
const both: readonly FastifyInstance[] = [farthing.app, neighbour]

const create = (app: FastifyInstance, key: string) =>
  send(app, 'POST', '/api/v1/checkouts', order, { 'x-api-key': key })
const read = (app: FastifyInstance, key: string) =>
  send(app, 'GET', '/api/v1/checkouts', undefined, { 'x-api-key': key })
const statusOf = async (answer: Promise<Answer>) => (await answer).statusCode
const idOf = (key: string) => key.split('_')[2] ?? ''

/** Runs `work` at a time when the processes' cached keys have expired. */
async function later(work: () => Promise<void>): Promise<void> {
  farthing.clock.now = new Date(Date.now() + 1_001)
  try {
    await work()
  } finally {
    farthing.clock.now = null
  }
}

test('a key contains its store’s mode and its own id, and only the hash of its secret is stored', async () => {
  for (const mode of ['live', 'test'] as const) {
    const { key } = await openStore(farthing, { mode })
    assert.match(key, new RegExp(`^sk_${mode}_00[0-9a-z]{16}_[0-9a-z]{52}$`))
    const [row] = await ctx.db.query<{ secret_hash: Buffer; all: string }>(
      'select secret_hash, api_keys::text as all from api_keys where id = $1',
      [idOf(key)],
    )
    assert.deepEqual(row?.secret_hash, createHash('sha256').update(key.slice(-52)).digest())
    assert(!row?.all.includes(key.slice(-52)))
  }
})

test('a store may have several keys, and each works', async () => {
  const shop = await openStore(farthing)
  const { text } = await createKey(ctx, shop.store.id, byOperator, {}, new Date())
  assert.notEqual(text, shop.key)
  for (const key of [shop.key, text]) assert.equal(await statusOf(create(farthing.app, key)), 201)
})

test('a wrong secret, an unknown id, another mode and a mistyped key all get the same answer', async () => {
  const { key } = await openStore(farthing)
  assert.equal(await statusOf(create(farthing.app, key)), 201)
  const swapped = key.at(-1) === '0' ? '1' : '0'
  const bodies = new Set<string>()
  for (const wrong of [
    key.slice(0, -1) + swapped,
    key.replace(idOf(key), `00${'0'.repeat(16)}`),
    key.replace('sk_live_', 'sk_test_'),
    key.toUpperCase(),
    key.slice(3),
    `${key}, ${key}`,
    `${key},`,
    'sk_live',
    '',
  ]) {
    const { requestId, ...rest } = assertProblem(await create(farthing.app, wrong), 401, 'invalid_api_key')
    bodies.add(JSON.stringify(rest))
  }
  assert.equal(bodies.size, 1)
  assert.equal(await statusOf(create(farthing.app, key)), 201, 'the valid key still works')
})

test('a key that is sent in two headers is rejected, even if both are valid', async () => {
  const { key } = await openStore(farthing)
  const address = new URL(await neighbour.listen({ host: '127.0.0.1', port: 0 }))
  const ask = (...headers: string[]) =>
    new Promise<number | undefined>((resolve, reject) => {
      const options = { host: address.hostname, port: address.port, path: '/api/v1/checkouts' }
      request({ ...options, headers: ['Host', 'farthing.example', ...headers] }, (response) => {
        response.resume().once('end', () => resolve(response.statusCode))
      })
        .once('error', reject)
        .end()
    })
  assert.equal(await ask('X-API-Key', key), 200)
  assert.equal(await ask('X-API-Key', key, 'X-API-Key', key), 401)
  assert.equal(await ask('X-API-Key', key, 'x-api-key', 'sk_live_x'), 401)
  assert.equal(await ask('Authorization', `Bearer ${key}`), 401)
})

test('a rotated key works alongside its successor until the overlap ends', async () => {
  const shop = await openStore(farthing)
  const next = await rotateKey(
    ctx,
    null,
    byOperator,
    { keyId: idOf(shop.key), overlapSeconds: 3_600 },
    new Date(),
  )
  for (const app of both)
    for (const key of [shop.key, next.text]) assert.equal(await statusOf(create(app, key)), 201)
  await ctx.db.query('update api_keys set expires_at = clock() where id = $1', [idOf(shop.key)])
  await later(async () => {
    for (const app of both) {
      assertProblem(await read(app, shop.key), 401, 'invalid_api_key')
      assert.equal(await statusOf(read(app, next.text)), 200)
    }
  })
})

test('after a rotation without overlap the old key can no longer create checkouts, in any process', async () => {
  const shop = await openStore(farthing)
  for (const app of both) assert.equal(await statusOf(create(app, shop.key)), 201)
  const next = await rotateKey(
    ctx,
    null,
    byOperator,
    { keyId: idOf(shop.key), overlapSeconds: 0 },
    new Date(),
  )
  for (const app of both) {
    assertProblem(await create(app, shop.key), 401, 'invalid_api_key')
    assert.equal(await statusOf(create(app, next.text)), 201)
  }
})

test('a second rotation never extends a key’s life, and a revoked key cannot be rotated', async () => {
  const shop = await openStore(farthing)
  const endOf = async () => {
    const [row] = await ctx.db.query<{ expires_at: Date }>('select expires_at from api_keys where id = $1', [
      idOf(shop.key),
    ])
    return row?.expires_at
  }
  await rotateKey(ctx, null, byOperator, { keyId: idOf(shop.key), overlapSeconds: 60 }, new Date())
  const end = await endOf()
  await rotateKey(ctx, null, byOperator, { keyId: idOf(shop.key), overlapSeconds: 86_400 }, new Date())
  assert.deepEqual(await endOf(), end)
  await revokeKey(ctx, null, byOperator, idOf(shop.key), new Date())
  await assert.rejects(
    rotateKey(ctx, null, byOperator, { keyId: idOf(shop.key), overlapSeconds: 60 }, new Date()),
    /revoked/,
  )
})

test('a revoked key can change nothing in any process, even where it is still cached', async () => {
  const shop = await openStore(farthing)
  const { id } = await shop.create()
  const other = await createKey(ctx, shop.store.id, byOperator, {}, new Date())
  const [{ id: walletId }] = (await ctx.db.query<{ id: string }>(
    'select id from wallets where store_id = $1',
    [shop.id],
  )) as [{ id: string }]
  for (const app of both) assert.equal(await statusOf(read(app, shop.key)), 200)
  await revokeKey(ctx, null, byOperator, idOf(shop.key), new Date())
  const stores = `/api/v1/stores/${shop.id}`
  const newWallet = { walletAddress: wallets[2], custodialType: 'CUSTODIAL' }
  for (const app of both) {
    const call = (method: 'POST' | 'PATCH', path: string, body?: unknown) =>
      send(app, method, path, body, { 'x-api-key': shop.key })
    assertProblem(await call('POST', `${stores}/wallets/evm`, newWallet), 401, 'invalid_api_key')
    assertProblem(await create(app, shop.key), 401, 'invalid_api_key')
    assertProblem(await call('PATCH', stores, { name: 'Stolen' }), 401, 'invalid_api_key')
    assertProblem(await call('POST', `/api/v1/checkouts/${id}/cancel`), 401, 'invalid_api_key')
    assertProblem(await call('POST', `${stores}/wallets/${walletId}/retire`), 401, 'invalid_api_key')
    assert.equal(await statusOf(create(app, other.text)), 201, 'the store’s other key still works')
  }
})

test('a revoked key can read nothing after one second', async () => {
  const shop = await openStore(farthing)
  for (const app of both) assert.equal(await statusOf(read(app, shop.key)), 200)
  await revokeKey(ctx, null, byOperator, idOf(shop.key), new Date())
  await later(async () => {
    for (const app of both) assertProblem(await read(app, shop.key), 401, 'invalid_api_key')
  })
})

test('guessing the secret of a key is limited per address and does not lock out its owner', async () => {
  const limited = await openTestApp({ ADDRESS_REQUESTS_PER_SECOND: '3' })
  limited.clock.now = new Date()
  const shop = await openStore(limited)
  const wrong = shop.key.slice(0, -4) + (shop.key.endsWith('0000') ? '1111' : '0000')
  assert.equal(await statusOf(read(limited.app, shop.key)), 200)
  const statuses = []
  for (let i = 0; i < 6; i++) statuses.push(await statusOf(read(limited.app, wrong)))
  assert.deepEqual(statuses, [401, 401, 429, 429, 429, 429])
  assert.equal(await statusOf(read(limited.app, shop.key)), 200)
})
