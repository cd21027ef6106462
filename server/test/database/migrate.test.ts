import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { checkSchema, migrate } from '../../src/database/migrate.ts'
import { SchemaError } from '../../src/database/schema.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase, openAs } from '../support/database.ts'
import { until } from '../support/until.ts'

test('eight migrations that run at the same time apply each file once', async () => {
  const { db } = await freshDatabase('template0')
  const runs = await Promise.all(Array.from({ length: 8 }, () => migrate(db)))
  const applied = runs.flatMap((run) => run.applied).sort()
  const rows = await db.query<{ name: string }>('select name from schema_migrations order by version')
  assert.deepEqual(
    applied,
    rows.map(({ name }) => name),
  )
  assert(applied.length > 0)
})

test('an empty database is refused, with the command that fixes it', async () => {
  const { db } = await freshDatabase('template0')
  await assert.rejects(
    checkSchema(db),
    (error) => error instanceof SchemaError && /migrate/.test(error.message),
  )
})

test('a role that may not change the schema is told so, and which may', async () => {
  const { url } = await freshDatabase()
  await assert.rejects(
    migrate(openAs('serve', url)),
    (error) =>
      error instanceof SchemaError && /may not change the schema.*owns the tables/.test(error.message),
  )
})

test('a migration that was changed after it was applied is refused', async () => {
  const { db } = await freshDatabase()
  await db.query("update schema_migrations set sql = sql || ' ' where version = 1")
  await assert.rejects(checkSchema(db), /must not change/)
})

test('an older program works with a newer schema unless it contains a breaking migration', async () => {
  const { db } = await freshDatabase()
  await db.query(
    "insert into schema_migrations (version, name, sql, breaking) values (9998, '9998_more.sql', '', false)",
  )
  await checkSchema(db)
  await db.query(
    "insert into schema_migrations (version, name, sql, breaking) values (9999, '9999_new.sql', '', true)",
  )
  await assert.rejects(checkSchema(db), /Upgrade first/)
})

test('a running program keeps working when a newer one adds a column to a table it reads', async () => {
  const { db } = await freshDatabase()
  const everyConnection = Array.from({ length: 12 }, (_, i) => i)
  const read = () => db.query('select * from checkouts')
  const readInTransaction = () =>
    db.transaction((tx) => tx.query('select * from checkouts where id = $1', ['']))
  for (const add of ['first', 'second']) {
    await Promise.all(everyConnection.flatMap(() => [read(), readInTransaction()]))
    await db.transaction((tx) => tx.script(`alter table checkouts add column ${add} text`))
    for (const rows of await Promise.all(everyConnection.map(read))) assert.deepEqual(rows, [])
    // A transaction that hits the change is rolled back with "unavailable", and can be repeated.
    for (const outcome of await Promise.allSettled(everyConnection.map(readInTransaction)))
      if (outcome.status === 'rejected')
        assert.equal(outcome.reason.code, 'unavailable', String(outcome.reason))
    for (const rows of await Promise.all(everyConnection.map(readInTransaction))) assert.deepEqual(rows, [])
  }
})

/** A folder of migrations: 0001.sql, 0002.sql and so on. */
async function writeMigrations(...files: string[]): Promise<URL> {
  const path = await mkdtemp(join(tmpdir(), 'farthing-migrations-'))
  atEnd(() => rm(path, { recursive: true }))
  for (const [i, sql] of files.entries()) await writeFile(join(path, `000${i + 1}.sql`), sql)
  return pathToFileURL(`${path}/`)
}

test('a migration that cannot get a table gives up before the traffic that waits behind it, and says what to do', async () => {
  const { db } = await freshDatabase('template0')
  await migrate(db, { folder: await writeMigrations('create table orders (id text)') })
  const folder = await writeMigrations(
    'create table orders (id text)',
    'alter table orders add column paid text',
  )
  const isWaiting = async () =>
    (
      await db.query(
        "select 1 as one from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'alter'",
      )
    ).length > 0
  let read: Promise<object[]> | null = null
  let outcome: unknown = null
  await db.transaction(async (tx) => {
    await tx.query('select * from orders')
    const migrating = migrate(db, { folder }).catch((error) => {
      outcome = error
    })
    await until('the migration waits', isWaiting)
    // It waits behind the migration, with the usual limit of 5 seconds, while this transaction stays open.
    read = db.query('select * from orders')
    assert.deepEqual(await read, [])
    await migrating
  })
  assert(outcome instanceof SchemaError)
  assert.match(outcome.says, /^0002\.sql .* in use for 2 seconds\. Nothing was changed\.$/)
  assert.match(outcome.fix, /^Run it again\. .*pg_stat_activity/)
  assert.deepEqual((await migrate(db, { folder })).applied, ['0002.sql'])
})

test('a statement of a migration is stopped at its limit, changes nothing, and may be allowed more', async () => {
  const { db } = await freshDatabase('template0')
  const folder = await writeMigrations('create table orders (id text); select pg_sleep(1.2)')
  await assert.rejects(
    migrate(db, { folder, statementSeconds: 1 }),
    (error) =>
      error instanceof SchemaError &&
      /longer than 1 seconds\. Nothing was changed\. .*MIGRATION_STATEMENT_SECONDS=600/.test(error.message),
  )
  assert.deepEqual(await db.query("select to_regclass('orders')::text as found"), [{ found: null }])
  assert.deepEqual((await migrate(db, { folder })).applied, ['0001.sql'])
})
