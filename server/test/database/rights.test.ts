/** How the database roles come to be, and that `serve` and `work` need no other rights. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openSigner } from '../../src/chains/evm/signer.ts'
import { openDatabase } from '../../src/database/db.ts'
import { checkSchema, migrate } from '../../src/database/migrate.ts'
import { describeRights, listLacking, listTableMakers, rightsFolder } from '../../src/database/rights.ts'
import { SchemaError } from '../../src/database/schema.ts'
import { startCluster } from '../../src/dev/postgres.ts'
import { insertSettler } from '../../src/payments/settlers/rows.ts'
import { makeStore } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { fundedKey } from '../support/chain/evm.ts'
import { newPayer, paymentHeader } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { openShop } from '../support/shop.ts'
import { until, untilReady } from '../support/watch.ts'

const folder = await mkdtemp(join(tmpdir(), 'farthing-roles-'))
const cluster = await startCluster(folder)
atEnd(async () => {
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A new database in which a superuser has run the two files, as docs/deploying.md says, and nobody has migrated yet. */
async function openInstallation(name: string) {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 2, name: 'test' })
  await admin.query(`create database ${name}`)
  await admin.close()
  const superuser = openDatabase({ url: cluster.url(name), connections: 4, name: 'test' })
  atEnd(() => superuser.close())
  const runFile = async (file: string) => {
    const sql = await readFile(new URL(file, rightsFolder), 'utf8')
    await superuser.transaction((tx) => tx.script(sql))
  }
  await runFile('roles.sql')
  await runFile('owner.sql')
  for (const role of ['owner', 'serve', 'work', 'console', 'operator', 'audit'])
    await superuser.query(`alter role farthing_${role} login`)
  return {
    superuser,
    handOver: () => runFile('owner.sql'),
    as: (role: Parameters<typeof openAs>[0]) => openAs(role, cluster.url(name)),
  }
}

test('after the two files that a superuser runs, the owner migrates and every role finds the schema', async () => {
  const { as } = await openInstallation('least')
  const owner = as('owner')
  assert.equal((await migrate(owner)).rights, 'granted')
  assert.equal((await migrate(owner)).rights, 'unchanged')
  for (const role of ['serve', 'work', 'console', 'operator', 'audit'] as const) await checkSchema(as(role))
  assert.deepEqual(await listLacking(as('operator')), [])
  assert.deepEqual(await listTableMakers(as('operator')), [])
})

test('a role that may make temporary tables is found, and handing over again takes that away', async () => {
  const { superuser, handOver, as } = await openInstallation('temporary')
  await migrate(as('owner'))
  await superuser.query('grant temporary on database temporary to public')
  assert.deepEqual(await listTableMakers(as('operator')), [
    'farthing_audit',
    'farthing_console',
    'farthing_serve',
    'farthing_work',
  ])
  await handOver()
  assert.deepEqual(await listTableMakers(as('operator')), [])
})

test('a migration fails, with the file to run, while a role lacks what only a superuser can give; that file mends it', async () => {
  const { superuser, handOver, as } = await openInstallation('broken')
  const owner = as('owner')
  const ways = [
    [
      'revoke usage on schema public from farthing_serve, farthing_work, farthing_console, farthing_operator',
      /usage on schema public/,
    ],
    ['revoke usage on schema public from farthing_console', /farthing_console: usage on schema public/],
    ['revoke connect on database broken from farthing_work', /farthing_work: connect on database broken/],
    [
      'alter table checkouts owner to current_user; revoke all on checkouts from farthing_serve',
      /may not grant/,
    ],
    [
      'alter function delete_over owner to current_user; revoke execute on function delete_over from farthing_work',
      /may not grant|delete_over/,
    ],
  ] as const
  for (const [sabotage, says] of ways) {
    await superuser.transaction((tx) => tx.script(sabotage))
    await assert.rejects(migrate(owner), (error) => {
      assert(error instanceof SchemaError, String(error))
      assert.match(error.says, says, sabotage)
      assert.match(error.fix, /owner\.sql/)
      return true
    })
    await handOver()
    await migrate(owner)
    assert.deepEqual(await listLacking(owner), [], sabotage)
  }
})

test('a right that the owner can give again is given again by the next migration', async () => {
  const { superuser, as } = await openInstallation('revoked')
  const owner = as('owner')
  await migrate(owner)
  for (const sabotage of [
    'revoke select on checkouts from farthing_work',
    'revoke update (status) on checkouts from farthing_serve',
    'revoke execute on function delete_over from farthing_work',
    'revoke delete on members from farthing_operator',
  ]) {
    await superuser.query(sabotage)
    assert.equal((await listLacking(owner)).length, 1, sabotage)
    assert.equal((await migrate(owner)).rights, 'granted', sabotage)
    assert.deepEqual(await listLacking(owner), [], sabotage)
  }
})

test('a role that may not see the schema is told so, and not that the schema lacks something', async () => {
  const { superuser, as } = await openInstallation('unseen')
  await assert.rejects(checkSchema(as('serve')), /lacks 0001_foundation\.sql/)
  await migrate(as('owner'))
  for (const sabotage of [
    'revoke usage on schema public from farthing_serve',
    'grant usage on schema public to farthing_serve; revoke select on schema_migrations from farthing_serve',
  ]) {
    await superuser.transaction((tx) => tx.script(sabotage))
    await assert.rejects(checkSchema(as('serve')), /farthing_serve may not read the schema.*owner\.sql/)
  }
})

test('where the roles are missing, a migration says so with the SQL that makes them, and grants once they exist', async () => {
  const other = await mkdtemp(join(tmpdir(), 'farthing-roles-'))
  const empty = await startCluster(other)
  atEnd(async () => {
    await empty.stop()
    await rm(other, { recursive: true, force: true })
  })
  const admin = openDatabase({ url: empty.url('postgres'), connections: 4, name: 'test' })
  await admin.query('create role plain login')
  await admin.query('create database own owner plain')
  const url = Object.assign(new URL(empty.url('own')), { username: 'plain' }).href
  const plain = openDatabase({ url, connections: 4, name: 'test' })
  assert.equal((await migrate(plain)).rights, 'missing')
  const told = (await describeRights('missing')) ?? ''
  assert.match(told, /superuser, then migrate again/)
  // What it printed can be pasted as it is, and more than once.
  for (let i = 0; i < 2; i++) await admin.transaction((tx) => tx.script(told.slice(told.indexOf('\n\n--'))))
  assert.equal((await migrate(plain)).rights, 'granted')
  assert.equal((await migrate(plain)).rights, 'unchanged')
  const logins = await admin.query(
    "select 1 as one from pg_roles where rolname like 'farthing\\_%' and rolcanlogin",
  )
  assert.deepEqual(logins, [])
  await Promise.all([admin.close(), plain.close()])
})

test('a role that an upgrade needs and may not make is named before anything is changed', async () => {
  const other = await mkdtemp(join(tmpdir(), 'farthing-roles-'))
  const older = await startCluster(other)
  atEnd(async () => {
    await older.stop()
    await rm(other, { recursive: true, force: true })
  })
  const admin = openDatabase({ url: older.url('postgres'), connections: 4, name: 'test' })
  await admin.query('create role plain login')
  for (const role of ['serve', 'work', 'console', 'operator'])
    await admin.query(`create role farthing_${role}`)
  const refused = (error: unknown) =>
    error instanceof SchemaError &&
    /farthing_audit is missing, and this role may not create it\. Nothing was changed\./.test(error.says) &&
    /roles\.sql and then server\/rights\/owner\.sql/.test(error.fix)
  for (const isEmpty of [true, false]) {
    const name = isEmpty ? 'empty' : 'upgraded'
    await admin.query(`create database ${name} owner plain`)
    const url = Object.assign(new URL(older.url(name)), { username: 'plain' }).href
    const plain = openDatabase({ url, connections: 4, name: 'test' })
    if (!isEmpty)
      await plain.query(
        'create table schema_migrations (version integer primary key, name text, sql text, breaking boolean)',
      )
    await assert.rejects(migrate(plain), refused)
    const tables = await plain.query(
      "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
    )
    assert.deepEqual(tables, isEmpty ? [] : [{ name: 'schema_migrations' }])
    await plain.close()
  }
  await admin.close()
})

test('the owner hands over what an older installation made, and migrates; serve and work then take an order and its payment', async () => {
  const shop = await openShop({ worker: false })
  for (const file of ['roles.sql', 'owner.sql', 'roles.sql', 'owner.sql']) {
    const sql = await readFile(new URL(file, rightsFolder), 'utf8')
    await shop.ctx.db.transaction((tx) => tx.script(sql))
  }
  const owner = openAs('owner', shop.databaseUrl)
  await owner.query('update granted_rights set sql = $1', ['an older release'])
  assert.equal((await migrate(owner)).rights, 'granted')
  await checkSchema(openAs('serve', shop.databaseUrl))
  const { key } = await makeStore(shop.ctx, { mode: 'test' })
  await insertSettler(shop.ctx.db, shop.chain.network.caip2, openSigner(fundedKey(1)).address, 0)
  const keys = join(folder, 'settler.keys')
  await writeFile(keys, fundedKey(1))
  const settings = {
    DATABASE_URL: shop.databaseUrl,
    MIGRATE_ON_START: 'false',
    NETWORKS: 'LOCAL',
    LOCAL_RPC_URLS: shop.chain.url,
    ECB_RATES_URL: '',
    EXCHANGE_RATES_URL: '',
  }
  const [serve, work] = await Promise.all([
    startProcess('serve', settings),
    startProcess('work', { ...settings, SETTLER_KEYS_FILE: keys }),
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
  const users = await shop.ctx.db.query<{ usename: string }>(
    "select distinct usename from pg_stat_activity where application_name ~ '^farthing-(serve|work)' and datname = current_database()",
  )
  assert.deepEqual(users.map(({ usename }) => usename).toSorted(), ['farthing_serve', 'farthing_work'])
  // Every loop of work has run by now, and none of them was refused anything.
  for (const process of [serve, work])
    assert.doesNotMatch(process.output(), /permission denied|must be owner/)
})
