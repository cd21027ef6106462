import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSchema, migrate, SchemaError } from '../../src/database/migrate.ts'
import { freshDatabase } from '../support/database.ts'

test('eight migrations that run at the same time apply each file once', async () => {
  const { db } = await freshDatabase('template0')
  const runs = await Promise.all(Array.from({ length: 8 }, () => migrate(db)))
  const applied = runs.flat().sort()
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
