/** What a key may do: exactly what the API document says, tried for every operation with every scope. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKey, ApiKeySecret, CreateApiKey, Page, Scope } from '@farthing/sdk'
import fc from 'fast-check'
import { type Grant, isInside, isWithin, parseAddress, scopes, scopesOf } from '../../src/stores/scopes.ts'
import { documented, fillPath, operations } from '../http/support/document.ts'
import { openTestApp } from '../support/app.ts'
import { assertInvalid, assertProblem, openStore, type StoreClient, send } from '../support/store.ts'
import { until } from '../support/until.ts'

const farthing = await openTestApp(documented)
const keyed = operations.filter(({ isKeyed }) => isKeyed)

async function makeKey(shop: StoreClient, input: CreateApiKey = {}): Promise<ApiKeySecret> {
  const answer = await shop.call('POST', '/api/v1/keys', input)
  assert.equal(answer.statusCode, 201, answer.body)
  return answer.json<ApiKeySecret>()
}

/** The store's client with another of its keys. */
function withKey(shop: StoreClient, { key }: ApiKeySecret): StoreClient {
  return {
    ...shop,
    key,
    call: (method, path, body, headers) =>
      send(farthing.app, method, path, body, { 'x-api-key': key, ...headers }),
  }
}

test('every operation is allowed with exactly the scope that the API document names, and refused with every other', async (t) => {
  const shop = await openStore(farthing)
  const ids = { storeId: shop.id, keyId: `00${'0'.repeat(16)}` }
  let tried = 0
  for (const scope of scopes) {
    const made = await makeKey(shop, { scopes: [scope] })
    const limited = withKey(shop, made)
    for (const operation of keyed) {
      const body = operation.takesBody ? {} : undefined
      const answer = await limited.call(
        operation.method,
        fillPath(operation.path, { ...unknownIds, ...ids }),
        body,
      )
      const isAllowed = operation.scope === null || made.scopes.includes(operation.scope as Scope)
      if (isAllowed) assert.doesNotMatch(answer.body, /scope_required/, `${operation.id} with ${scope}`)
      else {
        assertProblem(answer, 403, 'scope_required')
        assert.equal(answer.json().scope, operation.scope, operation.id)
      }
      tried++
    }
  }
  t.diagnostic(`${tried} calls: ${keyed.length} operations, ${scopes.length} scopes`)
  assert.deepEqual(
    keyed.filter(({ scope }) => scope === null).map(({ id }) => id),
    ['getOwnStore', 'getStore'],
  )
})

const unknownIds: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ['checkoutId', 'ch'],
    ['walletId', 'wal'],
    ['paymentId', 'pay'],
    ['endpointId', 'we'],
    ['deliveryId', 'dlv'],
  ].map(([name, prefix]) => [name, `${prefix}_00${'0'.repeat(26)}`]),
)

test('the presets: full may do everything, create only checkouts, read changes nothing', async () => {
  const shop = await openStore(farthing)
  assert.deepEqual((await makeKey(shop)).scopes, scopes)
  assert.deepEqual((await makeKey(shop, { preset: 'full' })).scopes, scopes)
  assert.deepEqual((await makeKey(shop, { preset: 'create' })).scopes, ['checkouts:read', 'checkouts:write'])
  const read = (await makeKey(shop, { preset: 'read' })).scopes
  assert.deepEqual(
    read,
    scopes.filter((scope) => scope.endsWith(':read')),
  )
  for (const { method, scope } of keyed)
    if (method !== 'GET')
      assert(scope?.endsWith(':write'), 'an operation that changes something needs :write')
})

test('a key makes, rotates and revokes only keys that may do no more than itself', async () => {
  const shop = await openStore(farthing)
  const narrow = await makeKey(shop, { scopes: ['keys:write', 'checkouts:write'], label: 'narrow' })
  const wide = await makeKey(shop, { preset: 'read' })
  const thief = withKey(shop, narrow)
  for (const wanted of [{}, { preset: 'full' }, { preset: 'read' }, { scopes: ['wallets:write'] }])
    assertProblem(await thief.call('POST', '/api/v1/keys', wanted), 403, 'key_too_wide')
  const ids = [shop.key.split('_')[2], wide.id]
  for (const id of ids) {
    assertProblem(await thief.call('POST', `/api/v1/keys/${id}/rotate`, {}), 403, 'key_too_wide')
    assertProblem(await thief.call('DELETE', `/api/v1/keys/${id}`), 403, 'key_too_wide')
  }
  const child = await makeKey(thief, { preset: 'create' })
  const rotated = await thief.call('POST', `/api/v1/keys/${child.id}/rotate`, {})
  assert.deepEqual(rotated.json<ApiKeySecret>().scopes, child.scopes)
  assert.equal((await thief.call('DELETE', `/api/v1/keys/${narrow.id}`)).statusCode, 200, 'itself too')
  assertProblem(await thief.call('POST', '/api/v1/keys', {}), 401, 'invalid_api_key')
})

test('another store’s keys cannot be seen, rotated or revoked', async () => {
  const [shop, other] = [await openStore(farthing), await openStore(farthing)]
  const { id } = await makeKey(other, { label: 'theirs' })
  assertProblem(await shop.call('POST', `/api/v1/keys/${id}/rotate`, {}), 404, 'not_found')
  assertProblem(await shop.call('DELETE', `/api/v1/keys/${id}`), 404, 'not_found')
  assert(!(await shop.call('GET', '/api/v1/keys')).body.includes(id))
  assertProblem(await shop.call('DELETE', '/api/v1/keys/%00'), 404, 'not_found')
  assertInvalid(await shop.call('GET', '/api/v1/keys?cursor=%00'), 'cursor')
  assertInvalid(await shop.call('GET', '/api/v1/events?actor=%00'), 'actor')
  assert.deepEqual((await shop.call('GET', `/api/v1/keys?cursor=${id}`)).json(), {
    data: [],
    nextCursor: null,
  })
})

test('keys are listed newest first, page by page, without their secrets', async () => {
  const shop = await openStore(farthing)
  const made: ApiKeySecret[] = []
  for (let i = 0; i < 5; i++) made.push(await makeKey(shop, { label: `key ${i}` }))
  const found: ApiKey[] = []
  let cursor = ''
  do {
    const page = (await shop.call('GET', `/api/v1/keys?limit=2${cursor}`)).json<Page<ApiKey>>()
    found.push(...page.data)
    cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
  } while (cursor !== '')
  assert.deepEqual(
    found.map(({ label }) => label),
    ['key 4', 'key 3', 'key 2', 'key 1', 'key 0', null],
  )
  for (const { key } of made) assert(!JSON.stringify(found).includes(key.slice(-52)))
})

test('a key with a list of addresses works from these and nowhere else, and makes no key that works elsewhere', async () => {
  const shop = await openStore(farthing)
  const made = await makeKey(shop, { addresses: ['192.0.2.0/24', '2001:db8::7'] })
  assert.deepEqual(made.addresses, ['192.0.2.0/24', '2001:db8::7/128'])
  const from = (remoteAddress: string, body?: object) =>
    farthing.app.inject({
      method: body ? 'POST' : 'GET',
      url: '/api/v1/keys',
      headers: { 'x-api-key': made.key, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { payload: JSON.stringify(body) }),
      remoteAddress,
    })
  for (const address of ['192.0.2.1', '::ffff:192.0.2.255', '2001:db8::7'])
    assert.equal((await from(address)).statusCode, 200, address)
  for (const address of ['192.0.3.1', '127.0.0.1', '2001:db8::8', '::ffff:10.0.0.1'])
    assertProblem(await from(address), 403, 'address_not_allowed')
  assertProblem(await from('192.0.2.1', {}), 403, 'key_too_wide')
  assertProblem(await from('192.0.2.1', { addresses: ['192.0.0.0/16'] }), 403, 'key_too_wide')
  assert.equal((await from('192.0.2.1', { addresses: ['192.0.2.0/24'] })).statusCode, 201)
  for (const [i, wrong] of ['localhost', '192.0.2.0/33', '1.2.3', '::1/129', 'fe80::1%eth0', ''].entries())
    assertInvalid(
      await shop.call('POST', '/api/v1/keys', { addresses: [...Array(i).fill('192.0.2.1'), wrong] }),
      `/addresses/${i}`,
    )
})

test('a key is noted as used once per hour, to the hour, without a write per request', async () => {
  const shop = await openStore(farthing)
  const made = await makeKey(shop, { preset: 'read' })
  const reader = withKey(shop, made)
  const usedAt = async () => {
    const [row] = await farthing.ctx.db.query<{ last_used_at: Date | null; xmin: string }>(
      'select last_used_at, xmin::text from api_keys where id = $1',
      [made.id],
    )
    return row
  }
  assert.equal((await usedAt())?.last_used_at, null)
  for (let i = 0; i < 20; i++) assert.equal((await reader.call('GET', '/api/v1/checkouts')).statusCode, 200)
  // The note is written behind the answer, on the same pool.
  await until('the use is noted', async () => Boolean((await usedAt())?.last_used_at))
  const first = await usedAt()
  assert.equal((first?.last_used_at?.getTime() ?? 1) % 3_600_000, 0)
  for (let i = 0; i < 20; i++) await reader.call('GET', '/api/v1/checkouts')
  assert.deepEqual(await usedAt(), first, 'the row is written once')
  const listed = (await shop.call('GET', '/api/v1/keys')).json<Page<ApiKey>>().data
  assert.equal(listed.find(({ id }) => id === made.id)?.lastUsedAt, first?.last_used_at?.toISOString())
})

test('a store has at most 100 keys that can be used', async () => {
  const shop = await openStore(farthing)
  await farthing.ctx.db.query(
    `insert into api_keys (id, store_id, secret_hash, created_at)
     select '00' || lpad(n::text, 16, '0'), $1, sha256(''), clock() from generate_series(1, 99) n`,
    [shop.id],
  )
  assertProblem(await shop.call('POST', '/api/v1/keys', {}), 409, 'key_limit')
  await shop.call('DELETE', `/api/v1/keys/00${'1'.padStart(16, '0')}`)
  assert.equal((await shop.call('POST', '/api/v1/keys', {})).statusCode, 201)
})

const someScopes = fc.option(fc.subarray([...scopes]), { nil: null })
const grant: fc.Arbitrary<Grant> = fc.record({
  scopes: someScopes,
  addresses: fc.subarray(['192.0.2.0/24', '192.0.3.1/32', '2001:db8::/48']),
})

test('property: what a narrower key may do, the wider one may do too', () => {
  const probes = ['192.0.2.9', '192.0.3.1', '192.0.3.2', '2001:db8::1', '2001:db9::1']
  const allows = ({ scopes: granted, addresses }: Grant, scope: Scope, from: string) =>
    (granted === null || granted.includes(scope)) && (addresses.length === 0 || isInside(addresses, from))
  fc.assert(
    fc.property(grant, grant, (inner, outer) => {
      if (!isWithin(inner, outer)) return
      for (const scope of scopes)
        for (const from of probes)
          assert(!allows(inner, scope, from) || allows(outer, scope, from), `${scope} from ${from}`)
    }),
    { numRuns: 2_000 },
  )
})

test('property: scopes are stored in one order, and :write brings :read', () => {
  fc.assert(
    fc.property(fc.subarray([...scopes], { minLength: 1 }), (asked) => {
      const found = scopesOf({ scopes: asked.toReversed() })
      assert(found)
      assert.deepEqual(found, scopesOf({ scopes: [...found] }))
      for (const scope of asked) assert(found.includes(scope))
      for (const scope of found)
        assert(asked.includes(scope) || asked.includes(scope.replace(':read', ':write') as Scope))
    }),
    { numRuns: 500 },
  )
})

test('property: an address is inside its own block', () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: 0, max: 32 }), (address, prefix) => {
      const block = parseAddress(`${address}/${prefix}`)
      assert(block && isInside([block], address), `${address}/${prefix}`)
    }),
    { numRuns: 500 },
  )
})
