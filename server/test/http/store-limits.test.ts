/** What one store can ask for, however many keys it has, and what that costs the others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApiKeySecret } from '@farthing/sdk'
import { openDatabase } from '../../src/database/db.ts'
import { buildApp } from '../../src/http/app.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { urlAs } from '../support/database.ts'
import { assertProblem, openStore, order, type StoreClient, send } from '../support/store.ts'
import { until } from '../support/until.ts'

const perKey = 10
const farthing = await openTestApp({ KEY_REQUESTS_PER_SECOND: String(perKey) })
const { db, metrics } = farthing.ctx

/** What is under way, and what waits, as the metrics say. */
async function queue(): Promise<[number, number]> {
  const { values } = await metrics.fairQueue.get()
  const countIn = (state: string) => values.find(({ labels }) => labels.state === state)?.value ?? 0
  return [countIn('under_way'), countIn('waiting')]
}

async function refusals(share: string): Promise<number> {
  const { values } = await metrics.shareRefusals.get()
  return values.find(({ labels }) => labels.listener === 'api' && labels.share === share)?.value ?? 0
}

/** Keys of a store, made at times far enough apart for no limit to apply. */
async function makeKeys(shop: StoreClient, count: number): Promise<string[]> {
  const keys: string[] = []
  for (let i = 0; i < count; i++) {
    farthing.clock.now = new Date((farthing.clock.now ?? new Date()).getTime() + 2_000)
    keys.push((await shop.call('POST', '/api/v1/keys', {})).json<ApiKeySecret>().key)
  }
  farthing.clock.now = new Date((farthing.clock.now ?? new Date()).getTime() + 60_000)
  return keys
}

for (const count of [1, 20, 99])
  test(`with ${count} keys a store reads and changes no more in an instant than three keys may`, async () => {
    const shop = await openStore(farthing)
    const keys = await makeKeys(shop, count)
    const before = await refusals('requests')
    const answers = await Promise.all(
      keys.flatMap((key) =>
        Array.from({ length: perKey + 5 }, () =>
          send(farthing.app, 'GET', '/api/v1/checkouts?limit=1', undefined, { 'x-api-key': key }),
        ),
      ),
    )
    const taken = answers.filter(({ statusCode }) => statusCode === 200).length
    assert.equal(taken, Math.min(count, 3) * perKey)
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 200))
      assertProblem(answer, 429, 'rate_limited')
    // Each key by itself is within its own limit for the first ten.
    assert.equal((await refusals('requests')) - before, Math.max(0, count - 3) * perKey)
    farthing.clock.now = null
  })

test('of one store two changes are under way at once, the next wait without a connection, and another store’s are not behind them', async () => {
  // Four connections for transactions.
  const small = openDatabase({ url: urlAs('serve', farthing.databaseUrl), connections: 8, name: 'small' })
  const config = { ...farthing.ctx.config, keyRequestsPerSecond: 1_000 }
  const app = buildApp({ ...farthing.ctx, config, db: small }, { isDraining: false })
  atEnd(async () => {
    await app.close()
    await small.close()
  })
  const [hostile, other] = [await openStore(farthing, {}, app), await openStore(farthing, {}, app)]
  const stolen = (await hostile.call('POST', '/api/v1/keys', {})).json<ApiKeySecret>()
  const { id } = await other.create()
  const busy = await db.transaction(async (tx) => {
    // All of its changes wait for this.
    await tx.query('select 1 as held from stores where id = $1 for update', [hostile.id])
    const changes = Array.from({ length: 50 }, (_, i) =>
      hostile.call('PATCH', `/api/v1/stores/${hostile.id}`, { name: `Shop ${i}` }),
    )
    const canceled = await other.call('POST', `/api/v1/checkouts/${id}/cancel`)
    assert.equal(canceled.statusCode, 200, canceled.body)
    assert.equal((await other.call('POST', '/api/v1/keys', {})).statusCode, 201)
    const [waiting] = await db.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
       where datname = current_database() and application_name = 'small' and state <> 'idle'`,
    )
    assert.equal(waiting?.count, 2)
    assert.deepEqual(await queue(), [2, 48])
    // What takes the keys of a flood away is not behind it: it waits for the store alone, as the two do.
    return { changes, revoked: hostile.call('DELETE', `/api/v1/keys/${stolen.id}`) }
  })
  assert.equal((await busy.revoked).statusCode, 200)
  for (const answer of await Promise.all(busy.changes)) assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual(await queue(), [0, 0])
})

test('neither a flood of what is urgent nor creates that count take more than two connections of their own', async () => {
  // Six connections for transactions.
  const small = openDatabase({ url: urlAs('serve', farthing.databaseUrl), connections: 12, name: 'urgent' })
  const config = { ...farthing.ctx.config, keyRequestsPerSecond: 1_000 }
  const app = buildApp({ ...farthing.ctx, config, db: small }, { isDraining: false })
  atEnd(async () => {
    await app.close()
    await small.close()
  })
  const [hostile, other] = [await openStore(farthing, {}, app), await openStore(farthing, {}, app)]
  const { id: keyId } = (await hostile.call('POST', '/api/v1/keys', {})).json<ApiKeySecret>()
  await db.query("update stores set signed_up = true, admission = 'approved' where id = $1", [hostile.id])
  const { id } = await other.create()
  const busy = await db.transaction(async (tx) => {
    await tx.query('select 1 as held from stores where id = $1 for no key update', [hostile.id])
    await tx.query('select 1 as held from api_keys where id = $1 for update', [keyId])
    const sent = Array.from({ length: 30 }, (_, i) => [
      hostile.call('DELETE', `/api/v1/keys/${keyId}`),
      hostile.call('POST', '/api/v1/checkouts', { ...order, orderId: `order ${i}` }),
    ]).flat()
    await until('four wait for locks', async () => {
      const [row] = await db.query<{ count: number }>(
        `select count(*)::integer as count from pg_stat_activity
         where datname = current_database() and application_name = 'urgent' and wait_event_type = 'Lock'`,
      )
      assert((row?.count ?? 0) <= 4, String(row?.count))
      return row?.count === 4
    })
    const canceled = await other.call('POST', `/api/v1/checkouts/${id}/cancel`)
    assert.equal(canceled.statusCode, 200, canceled.body)
    return sent
  })
  const statuses = (await Promise.all(busy)).map(({ statusCode }) => statusCode)
  assert.deepEqual(
    statuses.filter((status) => status >= 500),
    [],
  )
})

test('a store without a proof makes as many changes per hour as checkouts, and can still prove its wallet and revoke keys', async () => {
  const shop = await openStore(farthing)
  await db.query('update stores set signed_up = true where id = $1', [shop.id])
  const perHour = farthing.ctx.config.unprovenCheckoutsPerHour
  const at = Date.now() + 3_600_000
  const logo = (i: number) => `data:image/png;base64,${Buffer.alloc(8_000, i).toString('base64')}`
  let made = 0
  for (let i = 0; i < perHour + 10; i++) {
    farthing.clock.now = new Date(at + i * 1_000)
    const { statusCode } = await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { logoUrl: logo(i) })
    if (statusCode === 200) made++
    else assert.equal(statusCode, 429)
  }
  // One more for each minute that has passed.
  assert(made >= perHour && made <= perHour + 2, String(made))
  const { id } =
    (await db.query<{ id: string }>('select id from wallets where store_id = $1', [shop.id]))[0] ?? {}
  const challenged = await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${id}/challenge`)
  assert.equal(challenged.statusCode, 201, challenged.body)
  const [{ bytes } = { bytes: 0 }] = await db.query<{ bytes: number }>(
    "select max(length(data::text)) as bytes from events where store_id = $1 and type = 'store.updated'",
    [shop.id],
  )
  assert(bytes > 0 && bytes < 2_000, `an event has ${bytes} bytes`)
  assert.equal((await shop.call('DELETE', `/api/v1/keys/${shop.key.split('_')[2]}`)).statusCode, 200)
  farthing.clock.now = null
})
