/** A cell is one database: another that has its tag, or is a copy of it, is told so and gets nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { directoryCommand } from '../../src/commands/directory.ts'
import { examine } from '../../src/commands/doctor.ts'
import type { Database } from '../../src/database/db.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { walletOwnership } from '../../src/directory/directory.ts'
import { own } from '../../src/directory/own.ts'
import { openTestApp, type TestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { until } from '../support/until.ts'
import { adoptAgain, isUnavailable, openCell, openDirectory, releaseIn, report } from './support/cells.ts'

const settings = { LOG_LEVEL: 'info' }
const fresh = () => walletOwnership('live', 'EVM', newPayer().address.toLowerCase())
const lastSaid = ({ logged }: TestApp) => String(logged.at(-1)?.msg)

async function readCell(db: Database, tag: string) {
  const [row] = await db.query<{ identity: string | null; stamp: string; is_contested: boolean }>(
    'select identity, stamp, is_contested from cells where tag = $1',
    [tag],
  )
  assert(row)
  return row
}

async function examineDirectory({ ctx }: TestApp): Promise<string> {
  const [finding] = (await examine(ctx, async () => [])).filter(({ what }) => what === 'directory')
  return finding?.says ?? ''
}

/** The state of a cell's database, as a copy of that database has it. */
async function copyState(from: TestApp, to: TestApp): Promise<void> {
  const [state] = await from.ctx.db.query<Record<string, string>>('select * from directory_state')
  await to.ctx.db.query(
    'update directory_state set generation = $1, identity = $2, fence = $3, stamp = $4, next_stamp = $5',
    [state?.generation, state?.identity, state?.fence, state?.stamp, state?.next_stamp],
  )
}

async function assertGrantedNothing({ ctx }: TestApp): Promise<void> {
  for (const basis of ['proof', 'operator'] as const)
    await assert.rejects(own(ctx, fresh(), basis), isUnavailable)
}

test('a second database with the tag of a cell can neither adopt, start, own, report nor release', async () => {
  const directory = await openDirectory()
  const first = await openCell(directory.url, '0a', settings)
  const twin = await openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  assert.deepEqual(await adoptAgain(twin), { isTaken: true })
  await assert.rejects(directoryCommand(twin.ctx, ['adopt'], {}), /Nothing was changed.*CELL of its own/)
  await assert.rejects(checkCellJoined(twin.ctx), /has not adopted/)

  // It was in the directory before the other: removed there, or the directory was set up again.
  await copyState(first, twin)
  await twin.ctx.db.query("update directory_state set identity = 'another'")
  assert.deepEqual(await adoptAgain(twin), { isTaken: true })
  await assert.rejects(checkCellJoined(twin.ctx), /another database is cell 0a/)
  const wallet = fresh()
  await own(first.ctx, wallet, 'proof')
  const before = await readCell(directory.db, '0a')
  for (const basis of ['proof', null] as const)
    await assert.rejects(own(twin.ctx, wallet, basis), isUnavailable)
  await assertGrantedNothing(twin)
  await report(twin)
  assert.match(lastSaid(twin), /another database is cell 0a/)
  await assert.rejects(releaseIn(twin, [wallet]), isUnavailable)
  assert.equal((await directory.db.query('select 1 from owners')).length, 1)
  assert.deepEqual(await readCell(directory.db, '0a'), before)
  assert.match(await examineDirectory(twin), /another database is cell 0a/)
  await report(first)
  assert.notEqual(await own(first.ctx, fresh(), 'proof'), 'elsewhere')
})

test('of two databases with one tag that adopt at the same time, known to the directory or by name only, one is the cell', async () => {
  const directory = await openDirectory()
  const open = () => openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  const twins = [await open(), await open()]
  const race = async () => {
    const adopted = await Promise.all(twins.map(({ ctx }) => adopt(ctx, openUses(ctx.db))))
    assert.equal(adopted.filter((each) => 'isTaken' in each).length, 1)
    const outcomes = await Promise.allSettled(twins.map(({ ctx }) => own(ctx, fresh(), 'proof')))
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  }
  await race()
  await directory.db.query('update cells set identity = null, generation = 0, stamp = 0')
  await race()
})

test('while a copy runs beside its original, both say so, are granted nothing and release nothing', async () => {
  const directory = await openDirectory()
  const original = await openCell(directory.url, '0a', settings)
  const copy = await openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  await copyState(original, copy)
  const wallet = fresh()
  await own(original.ctx, wallet, 'proof')
  for (let minute = 0; minute < 2; minute++) {
    await report(original)
    await report(copy)
  }
  await report(original)
  for (const each of [original, copy]) {
    assert.match(lastSaid(each), /two databases report as this cell/)
    await assertGrantedNothing(each)
    await assert.rejects(own(each.ctx, wallet, null), isUnavailable)
    await assert.rejects(releaseIn(each, [wallet]), isUnavailable)
    assert.match(await examineDirectory(each), /two databases report as this cell/)
  }
  assert.equal((await directory.db.query('select 1 from owners')).length, 1)
  assert.match(await directoryCommand(original.ctx, ['list'], {}), /TWO DATABASES/)

  await adoptAgain(original)
  assert.notEqual(await own(original.ctx, wallet, null), 'free')
  await assertGrantedNothing(copy)
  await report(copy)
  await assertGrantedNothing(original)
  await assertGrantedNothing(copy)
  await adoptAgain(original)
  for (let minute = 0; minute < 3; minute++) await report(original)
  assert.notEqual(await own(original.ctx, wallet, null), 'free')
})

test('of a cell and its copy, never both are granted something, whoever reports and however often', async () => {
  const directory = await openDirectory()
  const original = await openCell(directory.url, '0a', settings)
  const copy = await openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  for (const reports of [
    [original],
    [copy],
    [copy, copy],
    [original, copy],
    [copy, original, copy],
    [original, original, copy],
  ]) {
    await adoptAgain(original)
    await copyState(original, copy)
    for (const each of reports) await report(each)
    const outcomes = await Promise.allSettled([original, copy].map(({ ctx }) => own(ctx, fresh(), 'proof')))
    assert(outcomes.filter(({ status }) => status === 'fulfilled').length <= 1)
  }
  await adoptAgain(original)
  await copyState(original, copy)
  await Promise.all([report(original), report(copy)])
  const outcomes = await Promise.allSettled([original, copy].map(({ ctx }) => own(ctx, fresh(), 'proof')))
  assert(outcomes.filter(({ status }) => status === 'fulfilled').length <= 1)
})

test('reports that fail after the directory has them are not taken for a copy', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const query = directory.db.query.bind(directory.db)
  const deaf: Database = {
    ...directory.db,
    async query(text, values) {
      await query(text, values)
      throw new Error('The connection was lost.')
    },
  }
  for (let minute = 0; minute < 4; minute++) {
    await assert.rejects(report({ ctx: { ...cell.ctx, directory: deaf } }), /lost/)
    assert.notEqual(await own(cell.ctx, fresh(), 'proof'), 'elsewhere')
    if (minute % 2 === 0) await report(cell)
  }
  await assert.rejects(report({ ctx: { ...cell.ctx, directory: deaf } }), /lost/)
  await adoptAgain(cell)
  await report(cell)
  assert.equal((await readCell(directory.db, '0a')).is_contested, false)
  assert.notEqual(await own(cell.ctx, fresh(), 'proof'), 'elsewhere')
})

test('reports of several processes, at once and in any order, are not taken for a copy', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>()
  let isAsked = false
  const query = directory.db.query.bind(directory.db)
  const slow: Database = {
    ...directory.db,
    async query(text, values) {
      isAsked = true
      await isOver
      return await query(text, values)
    },
  }
  const late = report({ ctx: { ...cell.ctx, directory: slow } })
  await until('it asks', async () => isAsked)
  for (let minute = 0; minute < 2; minute++) await report(cell)
  end()
  await late
  for (let minute = 0; minute < 5; minute++)
    await Promise.all([report(cell), report(cell), adoptAgain(cell), report(cell)])
  await report(cell)
  assert.equal((await readCell(directory.db, '0a')).is_contested, false)
  assert.notEqual(await own(cell.ctx, fresh(), 'proof'), 'elsewhere')
})
