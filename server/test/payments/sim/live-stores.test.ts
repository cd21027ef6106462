/** A live store can in no way get the simulated network: not by settings, the API, SQL of any role, or a restore. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { type Database, sqlState } from '../../../src/database/db.ts'
import { newId } from '../../../src/ids.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { openClient, startWork, untilReady } from '../../support/client.ts'
import { freshDatabase, openAs } from '../../support/database.ts'

const app = await openTestApp({ NETWORKS: 'BASE_MAINNET,BASE_SEPOLIA,SIMULATED' })
const [live, tests] = [await makeStore(app.ctx), await makeStore(app.ctx, { mode: 'test' })]
const liveShop = { ...app, ...live, ...openClient(app, live.key) }
const testShop = { ...app, ...tests, ...openClient(app, tests.key) }
startWork(app)
await untilReady(app, 'farthing:simulated')

const roles = ['serve', 'work', 'console', 'operator'] as const
const hex = () => `0x${randomBytes(32).toString('hex')}`

/** Every way to connect a store with the network, as the statement that would do it. */
const attempts: Readonly<
  Record<string, (db: Database, storeId: string, checkoutId: string) => Promise<unknown>>
> = {
  'a checkout that offers it': (db, storeId) =>
    db.query(
      `insert into checkouts (id, store_id, order_id, price_amount, price_currency, options, finality, status, version, created_at,
           expires_at)
         select $1, $2, 'order', '1', 'USD', $3::json, 'included', 'OPEN', 1, clock(), clock() + interval '1 day'`,
      [newId('ch', '00', new Date()), storeId, JSON.stringify([{ network: 'farthing:simulated' }])],
    ),
  'a payment for it': (db, storeId, checkoutId) =>
    db.query(
      `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash, position, asset,
           payer, pay_to, amount, store_id, checkout_id, disposition, first_seen_block_time, included_at)
         values ('farthing:simulated', $1, 0, $2, 1, clock(), $1, 0, 'sim_usdc', 'sim_payer', 'sim_' || $3::text, 1, $3, $4, 'overpaid',
           clock(), clock())`,
      [hex(), newId('pay', '00', new Date()), storeId, checkoutId],
    ),
  'money at its wallet that belongs to nothing': (db, storeId) =>
    db.query(
      `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash, position, asset,
           payer, pay_to, amount, disposition, first_seen_block_time, included_at)
         values ('farthing:simulated', $1, 0, $2, 1, clock(), $1, 0, 'sim_usdc', 'sim_payer', 'sim_' || $3::text, 1, 'unmatched', clock(),
           clock())`,
      [hex(), newId('pay', '00', new Date()), storeId],
    ),
  'an authorization to pay it': (db, storeId, checkoutId) =>
    db.query(
      `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount, valid_after,
           valid_before, signature, claimed_at)
         values ('farthing:simulated', 'sim_usdc', 'sim_payer', $1, $3, $2, 'rejected', 'sim_x', 1, 0, 1, '', clock())`,
      [hex(), storeId, checkoutId],
    ),
  'an amount that is reserved for it': (db, _storeId, checkoutId) =>
    db.query(
      `insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
         values ($1, 'farthing:simulated', 'sim_usdc', $2, 1, 0, clock())`,
      [checkoutId, hex()],
    ),
  'a transfer on its chain': (db, storeId) =>
    db.query(
      `insert into simulated_transfers (transaction_hash, store_id, asset, payer, pay_to, amount, steps, due_at)
         values ($1, $2, 'sim_usdc', 'sim_payer', 'sim_x', 1, '{included}', clock() + interval '1 day')`,
      [hex(), storeId],
    ),
}

/** A row or a right that is missing: either way nothing was written. */
const refusals = new Set(['23514', '42501'])

async function isRefused(write: Promise<unknown>): Promise<boolean> {
  const error = await write.then(
    () => null,
    (reason) => reason,
  )
  if (error === null) return false
  assert(refusals.has(sqlState(error) ?? ''), String(error))
  return true
}

for (const [what, attempt] of Object.entries(attempts))
  test(`a live store gets no ${what}, whoever writes it`, async () => {
    const id = await liveShop.create()
    for (const role of roles)
      assert(await isRefused(attempt(openAs(role, app.databaseUrl), live.store.id, id)), role)
    assert(await isRefused(attempt(app.ctx.db, live.store.id, id)), 'the owner of the database')
    // The statement is good: a test store gets it.
    await attempt(app.ctx.db, tests.store.id, await testShop.create())
  })

test('no test store becomes live, and no live store a test store, whoever writes it', async () => {
  for (const [storeId, mode] of [
    [tests.store.id, 'live'],
    [live.store.id, 'test'],
  ]) {
    const change = (db: Database) => db.query('update stores set mode = $2 where id = $1', [storeId, mode])
    for (const role of roles) assert(await isRefused(change(openAs(role, app.databaseUrl))), role)
    assert(await isRefused(change(app.ctx.db)), 'the owner of the database')
  }
})

test('a live store’s checkout is offered elsewhere only, and cannot be simulated with any key', async () => {
  const id = await liveShop.create()
  const [row] = await app.ctx.db.query<{ options: { network: string }[] }>(
    'select options from checkouts where id = $1',
    [id],
  )
  assert.deepEqual(
    row?.options.map(({ network }) => network),
    ['eip155:8453'],
  )
  for (const [key, status] of [
    [live.key, 409],
    [tests.key, 404],
  ] as const) {
    const answer = await app.request({
      method: 'POST',
      url: '/api/v1/test/simulate',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      payload: { checkoutId: id, case: 'payment.paid' },
    })
    assert.equal(answer.statusCode, status, answer.body)
  }
})

test('a live store’s checkout lives for five minutes at least, and serve cannot end it early', async () => {
  const body = { orderId: 'o', priceAmount: '1', priceCurrency: 'USD', expiresInSeconds: 1 }
  const create = (key: string) =>
    app.request({
      method: 'POST',
      url: '/api/v1/checkouts',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      payload: body,
    })
  assert.equal((await create(live.key)).statusCode, 422)
  assert.equal((await create(tests.key)).statusCode, 201)
  const end = async (id: string) =>
    await openAs('serve', app.databaseUrl).query('update checkouts set expires_at = clock() where id = $1', [
      id,
    ])
  const id = await liveShop.create()
  assert(await isRefused(end(id)))
  await end(await testShop.create())
})

test('a restored database refuses it as the one before did', async () => {
  const copy = await freshDatabase('template0')
  const run = promisify(execFile)
  await run('sh', [
    '-c',
    'pg_dump --no-owner --no-privileges "$1" | psql -q -v ON_ERROR_STOP=1 "$2"',
    'sh',
    app.databaseUrl,
    copy.url,
  ])
  const id = await liveShop.create()
  for (const attempt of Object.values(attempts)) assert(await isRefused(attempt(copy.db, live.store.id, id)))
})
