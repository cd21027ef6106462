/** The rights that `serve` and `work` have in a deployment, from the file that compose.yaml runs. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSigner } from '../../src/chains/evm/signer.ts'
import { type Database, openDatabase, sqlState } from '../../src/database/db.ts'
import { checkSchema, migrate } from '../../src/database/migrate.ts'
import { insertSettler } from '../../src/payments/settlers/rows.ts'
import { makeStore } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { fundedKey } from '../support/chain/evm.ts'
import { newPayer, paymentHeader } from '../support/chain/evm-payment.ts'
import { freshDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { openShop } from '../support/shop.ts'
import { until, untilReady } from '../support/watch.ts'

const roles = await readFile(new URL('../../roles.sql', import.meta.url), 'utf8')
const refused = '42501'

/** Runs the file as the superuser, twice: the second time must change nothing. */
async function applyRoles(db: Database): Promise<void> {
  for (let i = 0; i < 2; i++) await db.transaction((tx) => tx.script(roles))
}

function urlAs(role: string, url: string): string {
  return Object.assign(new URL(url), { username: role }).href
}

function openAs(role: string, url: string): Database {
  const db = openDatabase({ url: urlAs(role, url), connections: 4, name: 'test-roles' })
  atEnd(() => db.close())
  return db
}

test('the owner migrates an empty database, and the other role reads and writes every table but changes none', async () => {
  const { url, db } = await freshDatabase('template0')
  await applyRoles(db)
  await migrate(openAs('farthing_owner', url))
  const app = openAs('farthing_app', url)
  await checkSchema(app)
  const rights = await app.query<{ name: string; may: boolean; more: boolean }>(
    `select relname as name, has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')
       and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete') as may,
       has_table_privilege(oid, 'truncate') or has_table_privilege(oid, 'trigger')
       or has_table_privilege(oid, 'references') as more
     from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  )
  assert(rights.length > 20)
  for (const { name, may, more } of rights) assert.deepEqual([name, may, more], [name, true, false])
  for (const statement of [
    'create table more (id text)',
    'alter table checkouts add column more text',
    'drop table events',
    'truncate events',
    'create or replace function clock() returns timestamptz language sql as $$ select now() $$',
    'create role another',
    'set role farthing_owner',
    'select * from pg_authid',
    "copy checkouts to program 'true'",
  ])
    await assert.rejects(app.query(statement), (error) => sqlState(error) === refused, statement)
})

test('serve and work take an order and its payment with no other rights, on tables that a superuser had made', async () => {
  const shop = await openShop({ worker: false })
  const { db } = shop.ctx
  await applyRoles(db)
  const { key } = await makeStore(shop.ctx, { mode: 'test' })
  await insertSettler(db, shop.chain.network.caip2, openSigner(fundedKey(1)).address, 0)
  const folder = await mkdtemp(join(tmpdir(), 'farthing-roles-'))
  atEnd(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'keys'), fundedKey(1))
  const settings = {
    DATABASE_URL: urlAs('farthing_app', shop.databaseUrl),
    MIGRATE_ON_START: 'false',
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: shop.chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
  const [serve, work] = await Promise.all([
    startProcess('serve', settings),
    startProcess('work', { ...settings, SETTLER_KEYS_FILE: join(folder, 'keys') }),
  ])
  const created = await fetch(`${serve.started.address}/api/v1/checkouts`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ orderId: 'order-1', priceAmount: '1.00', priceCurrency: 'USD' }),
  })
  assert.equal(created.status, 201)
  const { id } = (await created.json()) as { id: string }
  const url = `${serve.started.address}/api/v1/checkouts/${id}`
  const payer = newPayer()
  await shop.chain.mint(payer.address, 5_000_000n)
  const header = await paymentHeader(await shop.require(id), payer.key)
  await untilReady(shop)
  // 503 while serve remembers that work was not ready, 202 until the payment is in a block.
  const paid = await until(async () => {
    const answer = await fetch(url, { method: 'POST', headers: { 'payment-signature': header } })
    assert([200, 202, 503].includes(answer.status), `${answer.status} ${await answer.clone().text()}`)
    return answer.status === 200 && answer
  }, 'the payment')
  assert.equal(((await paid.json()) as { status: string }).status, 'COMPLETED')
  const users = await db.query<{ usename: string }>(
    "select distinct usename from pg_stat_activity where application_name ~ '^farthing-(serve|work)' and datname = current_database()",
  )
  assert.deepEqual(users, [{ usename: 'farthing_app' }])
  // Every loop of work has run by now, and none of them was refused anything.
  for (const process of [serve, work])
    assert.doesNotMatch(process.output(), /permission denied|must be owner/)
})
