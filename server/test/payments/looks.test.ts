import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noteLook, readDemand } from '../../src/payments/looks.ts'
import { openNeighbour } from '../support/app.ts'
import { openShop } from '../support/shop.ts'
import { until } from '../support/until.ts'

const shop = await openShop({ network: 'BASE_SEPOLIA', blockTimeSeconds: null, worker: false })
const { caip2 } = shop.chain.network
const { db } = shop.ctx
const id = await shop.create()

const isAwake = async () => (await readDemand(db, caip2)).isAwake
const written = async (network = caip2) =>
  (
    await db.query<{ looked_at: Date; awake_since: Date }>(
      'select looked_at, awake_since from network_looks where network = $1',
      [network],
    )
  )[0]
const makeOld = async (seconds: number) => {
  await db.query(
    `update network_looks set looked_at = clock() - make_interval(secs => $1), awake_since = clock() - interval '1 day'`,
    [seconds],
  )
}
/** As seen by a process that has just started. */
const freshly = () => ({ ...shop.ctx })

test('an open checkout alone keeps no network awake; whoever looks at it as a person or a program does', async () => {
  assert.equal(await isAwake(), false)
  for (const accept of ['application/json', 'text/html']) {
    await db.query('delete from network_looks')
    const app = await openNeighbour({ ...shop, ctx: freshly() })
    await app.inject({ url: `/c/${id}`, headers: { accept } })
    await until(`a look as ${accept}`, isAwake)
  }
})

test('a checkout that cannot be paid wakes nobody', async () => {
  const closed = await shop.create()
  await shop.request({
    method: 'POST',
    url: `/api/v1/checkouts/${closed}/cancel`,
    headers: { 'x-api-key': shop.key },
  })
  await db.query('delete from network_looks')
  const app = await openNeighbour({ ...shop, ctx: freshly() })
  await app.inject({ url: `/c/${closed}` })
  await app.inject({ url: `/c/${closed}`, headers: { accept: 'text/html' } })
  // Whoever looks after them is written, so what they did is written by then.
  noteLook(freshly(), ['eip155:1'])
  await until('the other look', async () => (await written('eip155:1')) !== undefined)
  assert.equal(await isAwake(), false)
})

test('however many look, through however many processes, one row is written in a quarter of a minute', async () => {
  await makeOld(20)
  noteLook(freshly(), [caip2])
  await until('the first', async () => ((await written())?.looked_at.getTime() ?? 0) > Date.now() - 15_000)
  const first = await written()
  const others = ['eip155:10', 'eip155:11', 'eip155:12']
  for (const other of others) noteLook(freshly(), [caip2, other])
  for (const other of others) await until(other, async () => (await written(other)) !== undefined)
  assert.deepEqual(await written(), first)
})

test('nobody looks for some minutes: it is idle again, and the next look begins anew', async () => {
  await makeOld(301)
  assert.equal(await isAwake(), false)
  noteLook(freshly(), [caip2])
  await until('the look', isAwake)
  const row = await written()
  assert.deepEqual(row?.awake_since, row?.looked_at)
  await makeOld(200)
  const before = await written()
  noteLook(freshly(), [caip2])
  await until(
    'another look',
    async () => (await written())?.looked_at.getTime() !== before?.looked_at.getTime(),
  )
  assert.deepEqual((await written())?.awake_since, before?.awake_since)
})

test('what is claimed keeps a network awake until it is settled', async () => {
  await makeOld(301)
  const [payer, nonce] = [`0x${'aa'.repeat(20)}`, `0x${'bb'.repeat(32)}`]
  await db.query(
    `insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, pay_to, amount, valid_after, valid_before, signature, state, claimed_at)
     values ($1, $2, $3, $4, $5, $6, $3, 1, 0, 9999999999, '\\x00', 'claimed', clock())`,
    [caip2, shop.chain.token.toLowerCase(), payer, nonce, id, shop.store.id],
  )
  assert.equal(await isAwake(), true)
  await db.query(
    `update authorizations set state = 'dead', resolved_at = clock(), reason = 'authorization_expired'`,
  )
  assert.equal(await isAwake(), false)
})
