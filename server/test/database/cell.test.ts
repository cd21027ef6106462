import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkCell } from '../../src/database/cell.ts'
import { migrate } from '../../src/database/migrate.ts'
import { SchemaError } from '../../src/database/schema.ts'
import { freshDatabase, openAs } from '../support/database.ts'
import { startProcess } from '../support/process.ts'

test('the first migration stores the cell, and no later one changes it', async () => {
  const { db } = await freshDatabase('template0')
  await migrate(db, { cell: 'b7' })
  await checkCell(db, 'b7')
  await assert.rejects(
    migrate(db, { cell: '00' }),
    (error) => error instanceof SchemaError && /is cell b7, and CELL is 00.*Set CELL=b7/.test(error.message),
  )
  await checkCell(db, 'b7')
})

test('of migrations that run at the same time for different cells one decides', async () => {
  const { db } = await freshDatabase('template0')
  const runs = await Promise.allSettled(['01', '02', '03'].map((cell) => migrate(db, { cell })))
  assert.equal(runs.filter(({ status }) => status === 'fulfilled').length, 1)
})

test('no role that a process connects as can change the cell', async () => {
  const { url } = await freshDatabase()
  for (const role of ['serve', 'work', 'console'] as const)
    await assert.rejects(openAs(role, url).query("update cell set tag = '01'"), /permission denied/, role)
})

for (const command of ['serve', 'work'] as const) {
  test(`${command} with another CELL does not start, and says what to set`, async () => {
    const { url } = await freshDatabase()
    await assert.rejects(
      startProcess(command, { DATABASE_URL: url, CELL: '01' }),
      /This database is cell 00, and CELL is 01\. Set CELL=00, or correct DATABASE_URL\./,
    )
  })
}
