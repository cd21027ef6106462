/**
 * A key that was revoked or has expired changes nothing from then on, whatever it had begun: requests whose headers came
 * before and whose bodies come after, and requests whose transactions are under way. The operations are those of the API
 * document, so a new one is covered, or fails here.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKeySecret } from '@farthing/sdk'
import { documented, fillPath, type Operation, operations } from '../http/support/document.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { payFinally } from '../support/by-hand.ts'
import { startDeciding } from '../support/decide.ts'
import { dumpRows } from '../support/dump.ts'
import { type Held, holdBody, isSomebodyWaiting } from '../support/late-body.ts'
import { openProxy } from '../support/proxy.ts'
import { assertProblem, order, send, solanaWallets } from '../support/store.ts'
import { until } from '../support/until.ts'
import { named, openTenants, bodies as usual } from './support/tenants.ts'

const farthing = await openTestApp(documented)
startDeciding(farthing)
const { db } = farthing.ctx
const [tenant = assert.fail('no tenant')] = await openTenants(farthing, 1)
const { shop } = tenant
/** What brings an operation to a change where the tenant's own ids don't. */
const particular: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  createRefund: { paymentId: await payFinally(farthing, (await shop.create()).id) },
  nameRefundTransaction: { refundId: await openSentRefund() },
}
const bodies: typeof usual = {
  ...usual,
  registerSolanaWallet: { walletAddress: solanaWallets[2], custodialType: 'CUSTODIAL' },
}
const changing = operations.filter(({ isKeyed, method }) => isKeyed && method !== 'GET')
const { port } = new URL(await farthing.app.listen({ host: '127.0.0.1', port: 0 }))

async function openSentRefund(): Promise<string> {
  const paymentId = await payFinally(farthing, (await shop.create()).id)
  const answer = await shop.call('POST', `/api/v1/payments/${paymentId}/refunds`, { way: 'self-sent' })
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json().id
}

async function newKey(): Promise<ApiKeySecret> {
  const answer = await shop.call('POST', '/api/v1/keys', {})
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<ApiKeySecret>()
}

function pathOf(operation: Operation, { key = '' } = {}): string {
  const own = Object.fromEntries(Object.entries(named).map(([name, of]) => [name, of(tenant)]))
  return fillPath(operation.path, { ...own, ...(key && { keyId: key }), ...particular[operation.id] })
}

async function hold(key: string, method: string, path: string, body: unknown, at = port): Promise<Held> {
  return await holdBody(at, method, path, { Host: 'farthing.example', 'X-API-Key': key }, body ?? {})
}

const read = (key: string) => send(farthing.app, 'GET', '/api/v1/store', undefined, { 'x-api-key': key })

/** The ways in which a key ends. */
const ends: Readonly<Record<string, (key: ApiKeySecret) => Promise<unknown>>> = {
  revoked: ({ id }) => shop.call('DELETE', `/api/v1/keys/${id}`),
  'revoked by itself': ({ id, key }) =>
    send(farthing.app, 'DELETE', `/api/v1/keys/${id}`, undefined, { 'x-api-key': key }),
  'rotated without overlap': ({ id }) =>
    shop.call('POST', `/api/v1/keys/${id}/rotate`, { overlapSeconds: 0 }),
  // Nothing but time passes: the store's revision, with which creates are compared, stays as it is.
  expired: ({ id }) => db.query('update api_keys set expires_at = clock() where id = $1', [id]),
}

for (const [how, end] of Object.entries(ends))
  test(`a key that is ${how} between a request’s headers and its body does nothing, whatever the operation`, async () => {
    const key = await newKey()
    assert.equal((await read(key.key)).statusCode, 200)
    const held = await Promise.all(
      changing.map((operation) =>
        hold(key.key, operation.method, pathOf(operation, { key: key.id }), bodies[operation.id]),
      ),
    )
    await end(key)
    const before = await dumpRows(db)
    for (const [i, operation] of changing.entries()) {
      const { status, body } = await (held[i] as Held).finish()
      assert.deepEqual([operation.id, status, JSON.parse(body).code], [operation.id, 401, 'invalid_api_key'])
    }
    assert.equal(await dumpRows(db), before)
  })

/** Those that this fixture's ids and bodies don't bring to a change: each is refused before it. */
const refusedBefore: Readonly<Record<string, number>> = {
  proveWallet: 422,
  prepareRefund: 503,
  signRefund: 422,
  createAddressRequest: 409,
}

test('a change that is under way while its key is revoked is not made, whatever the operation', async () => {
  for (const operation of changing.filter(({ id }) => id !== 'createCheckout')) {
    const key = await newKey()
    const path = pathOf(operation)
    const headers = { 'x-api-key': key.key }
    const { answer, before } = await db.transaction(async (tx) => {
      await tx.query('update api_keys set revoked_at = clock() where id = $1', [key.id])
      const before = await dumpRows(tx)
      let isAnswered = false
      const answer = send(farthing.app, operation.method, path, bodies[operation.id], headers)
      void answer.finally(() => {
        isAnswered = true
      })
      await until('the change waits for the key', async () => isAnswered || (await isSomebodyWaiting(db)))
      return { answer, before }
    })
    const { statusCode, body } = await answer
    assert.deepEqual([operation.id, statusCode], [operation.id, refusedBefore[operation.id] ?? 401], body)
    assert.equal(await dumpRows(db), before, operation.id)
  }
})

test('a create is not made if its key expires while it waits, and one that was made is no way around it', async () => {
  const { id, key } = await newKey()
  const create = (headers: Record<string, string>) =>
    send(farthing.app, 'POST', '/api/v1/checkouts', order, { 'x-api-key': key, ...headers })
  assert.equal((await create({})).statusCode, 201)
  await ends.expired?.({ id } as ApiKeySecret)
  // The process still has the key in its cache.
  const before = await dumpRows(db)
  for (const headers of [{}, { 'idempotency-key': 'one' }])
    assertProblem(await create(headers), 401, 'invalid_api_key')
  assert.equal(await dumpRows(db), before)
})

test('two keys that revoke each other at once: one of them wins', async () => {
  for (let i = 0; i < 20; i++) {
    const pair = [await newKey(), await newKey()] as const
    const [one, other] = pair
    const revoke = (by: ApiKeySecret, { id }: ApiKeySecret) =>
      send(farthing.app, 'DELETE', `/api/v1/keys/${id}`, undefined, { 'x-api-key': by.key })
    const answers = await Promise.all([revoke(one, other), revoke(other, one)])
    assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 401])
    await Promise.all(pair.map(({ id }) => shop.call('DELETE', `/api/v1/keys/${id}`)))
  }
})

/** What a thief leaves behind who keeps creations of keys open, with every key that these give them. */
async function robAndEvict(at: string): Promise<void> {
  const isOwn = new Set(
    (await shop.call('GET', '/api/v1/keys?limit=100')).json().data.map(({ id }: ApiKeySecret) => id),
  )
  const stolen = [(await newKey()).key]
  let held: Held[] = []
  for (let sweep = 0; sweep < 4; sweep++) {
    for (const key of stolen.slice(-3))
      if ((await read(key)).statusCode === 200)
        for (let i = 0; i < 3; i++) held.push(await hold(key, 'POST', '/api/v1/keys', { label: 'thief' }, at))
    // One of them goes through while the keys are good.
    const early = JSON.parse((await held.pop()?.finish())?.body ?? '{}') as Partial<ApiKeySecret>
    if (early.key) stolen.push(early.key)
    const listed = (await shop.call('GET', '/api/v1/keys?limit=100')).json().data as ApiKeySecret[]
    for (const { id, revokedAt } of listed)
      if (!isOwn.has(id) && revokedAt === null)
        assert.equal((await shop.call('DELETE', `/api/v1/keys/${id}`)).statusCode, 200)
    for (const each of held) {
      assert.equal((await each.finish()).status, 401)
    }
    held = []
  }
  assert(stolen.length > 1, 'the thief had keys of their own')
  for (const key of stolen) assert.equal((await read(key)).statusCode, 401)
}

test('a thief who keeps creations of keys open has none left after the keys that the owner sees are revoked', () =>
  robAndEvict(port))

test('the same through HAProxy', async () => {
  const proxy = await openProxy({ cells: [{ tag: '00', servers: [`http://127.0.0.1:${port}`] }] })
  atEnd(() => proxy.close())
  await until('the cell is up', async () => (await proxy.ask('GET', '/livez')).status === 200)
  await robAndEvict(String(proxy.port))
})
