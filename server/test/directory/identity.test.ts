/** A cell is one database: another that has its tag, or is a copy of it, is told so and gets nothing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { directoryCommand } from '../../src/commands/directory.ts'
import { examine } from '../../src/commands/doctor.ts'
import { type Database, openDatabase } from '../../src/database/db.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { claimHere } from '../../src/directory/claim.ts'
import { quietMinutes, walletClaim } from '../../src/directory/directory.ts'
import { releaseClaims } from '../../src/directory/release.ts'
import { reportToDirectory } from '../../src/directory/report.ts'
import { Problem } from '../../src/problems.ts'
import { listLoops } from '../../src/worker.ts'
import { openTestApp, type TestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { until } from '../support/until.ts'
import { later, openCell, openDirectory } from './support/cells.ts'

const settings = { LOG_LEVEL: 'info' }
const fresh = () => walletClaim('live', 'EVM', newPayer().address.toLowerCase())
const isUnavailable = (error: unknown) => error instanceof Problem && error.code === 'unavailable'
const noLoad = async () => ({ stores: 0, paymentsPerHour: 0 })
const report = ({ ctx }: TestApp, turn = { gaps: 0 }) =>
  reportToDirectory(ctx, openUses(ctx.db), noLoad, turn)
const lastSaid = ({ logged }: TestApp) => String(logged.at(-1)?.msg)

async function readCell(db: Database, tag: string) {
  const [row] = await db.query<{ identity: string | null; reports: string; is_doubled: boolean }>(
    'select identity, reports, is_doubled from cells where tag = $1',
    [tag],
  )
  assert(row)
  return row
}

/** The state of a cell's database, as a copy of that database has it. */
async function copyState(from: TestApp, to: TestApp): Promise<void> {
  const [state] = await from.ctx.db.query<Record<string, string>>('select * from directory_state')
  await to.ctx.db.query('update directory_state set epoch = $1, identity = $2, reports = $3', [
    state?.epoch,
    state?.identity,
    state?.reports,
  ])
}

test('a second database with the tag of a cell can neither adopt, start, claim, report nor give up', async () => {
  const directory = await openDirectory()
  const first = await openCell(directory.url, '0a', settings)
  const twin = await openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  assert.deepEqual(await adopt(twin.ctx, openUses(twin.ctx.db)), { isTaken: true })
  await assert.rejects(directoryCommand(twin.ctx, ['adopt'], {}), /Nothing was changed.*CELL of its own/)
  await assert.rejects(checkCellJoined(twin.ctx), /has not adopted/)

  // It was in the directory before the other: removed there, or the directory was set up again.
  await twin.ctx.db.query('update directory_state set epoch = 1')
  await assert.rejects(checkCellJoined(twin.ctx), /Another database is cell 0a/)
  const claim = fresh()
  await claimHere(first.ctx, claim, 'proof')
  const before = await readCell(directory.db, '0a')
  for (const basis of ['proof', null] as const)
    await assert.rejects(claimHere(twin.ctx, claim, basis), isUnavailable)
  await assert.rejects(claimHere(twin.ctx, fresh(), 'operator'), isUnavailable)
  await report(twin)
  assert.match(lastSaid(twin), /Another database is cell 0a/)
  for (const hours of [0, 26])
    await releaseClaims(later(twin.ctx, hours), openUses(twin.ctx.db), { after: null })
  assert.deepEqual(await directory.db.query('select address, idle_at from claims'), [
    { address: claim.address, idle_at: null },
  ])
  assert.deepEqual(await readCell(directory.db, '0a'), before)
  const [finding] = (await examine(twin.ctx, async () => [])).filter(({ what }) => what === 'directory')
  assert.match(finding?.says ?? '', /another database is cell 0a/)
  await report(first)
  assert.notEqual(await claimHere(first.ctx, fresh(), 'proof'), 'elsewhere')
})

test('of two databases with one tag that adopt, or report for a name, at the same time, one is the cell', async () => {
  const directory = await openDirectory()
  const open = () => openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  const twins = [await open(), await open()]
  const adopted = await Promise.all(twins.map(({ ctx }) => adopt(ctx, openUses(ctx.db))))
  assert.equal(adopted.filter((each) => 'isTaken' in each).length, 1)
  await directory.db.query('update cells set identity = null, adopted_at = null, asserted_epoch = 0')
  for (const { ctx } of twins) await ctx.db.query('update directory_state set epoch = 1')
  await Promise.all(twins.map((twin) => report(twin)))
  assert.equal((await readCell(directory.db, '0a')).reports, '1')
  const outcomes = await Promise.allSettled(twins.map(({ ctx }) => claimHere(ctx, fresh(), 'proof')))
  assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

test('a cell whose database was restored is the same cell, and is granted what it asks for', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const turn = { gaps: 0 }
  for (let i = 0; i < 5; i++) await report(cell, turn)
  await cell.ctx.db.query('update directory_state set reports = 1')
  for (let i = 0; i < 3; i++) {
    await report(cell, turn)
    assert.equal((await readCell(directory.db, '0a')).is_doubled, false)
    assert.notEqual(await claimHere(cell.ctx, fresh(), 'proof'), 'elsewhere')
  }
  await checkCellJoined(cell.ctx)
})

test('while a copy runs beside its original, both say so, are granted nothing and give nothing up', async () => {
  const directory = await openDirectory()
  const original = await openCell(directory.url, '0a', settings)
  const copy = await openTestApp({ CELL: '0a', DIRECTORY_URL: directory.url, ...settings })
  await copyState(original, copy)
  const turns = [{ gaps: 0 }, { gaps: 0 }] as const
  const claim = fresh()
  await claimHere(original.ctx, claim, 'proof')
  for (let minute = 0; minute < 3; minute++) {
    await report(original, turns[0])
    await report(copy, turns[1])
  }
  for (const each of [original, copy]) {
    assert.match(lastSaid(each), /a copy of this database runs beside it/)
    await assert.rejects(claimHere(each.ctx, fresh(), 'proof'), isUnavailable)
    await assert.rejects(claimHere(each.ctx, claim, null), isUnavailable)
    for (const hours of [0, 26])
      await releaseClaims(later(each.ctx, hours), openUses(each.ctx.db), { after: null })
  }
  assert.equal((await directory.db.query('select 1 from claims where idle_at is null')).length, 1)
  assert.match(await directoryCommand(original.ctx, ['list'], {}), /TWO DATABASES/)
  const [finding] = (await examine(original.ctx, async () => [])).filter(({ what }) => what === 'directory')
  assert.match(finding?.says ?? '', /a copy of this database/)

  await report(original)
  assert((await readCell(directory.db, '0a')).is_doubled, 'a process that was restarted sees one gap only')
  await report(original)
  assert.match(lastSaid(original), /only one database reports/)
  assert.notEqual(await claimHere(original.ctx, claim, null), 'free')
})

test('reports that fail after they were counted are not taken for a copy', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const turn = { gaps: 0 }
  const uses = openUses(cell.ctx.db)
  const broken: typeof uses = {
    ...uses,
    // biome-ignore lint/correctness/useYield: it fails before it has anything.
    async *pages() {
      throw new Error('The cell’s own database is away.')
    },
  }
  await directory.db.query('update cells set asserted_epoch = 0')
  for (let minute = 0; minute < 4; minute++) {
    await assert.rejects(reportToDirectory(cell.ctx, broken, noLoad, turn), /away/)
    await report(cell, turn)
    assert.equal((await readCell(directory.db, '0a')).is_doubled, false)
    await directory.db.query('update cells set asserted_epoch = 0')
  }
})

test('a report that ends after a later one of another process is not taken for a copy', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const uses = openUses(cell.ctx.db)
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>()
  const slow: typeof uses = {
    ...uses,
    async *pages() {
      await isOver
      yield* uses.pages()
    },
  }
  await directory.db.query('update cells set asserted_epoch = 0')
  const late = reportToDirectory(cell.ctx, slow, noLoad, { gaps: 0 })
  await until('it has reported', async () => (await readCell(directory.db, '0a')).reports !== '0')
  const turn = { gaps: 0 }
  await report(cell, turn)
  end()
  await late
  await report(cell, turn)
  assert.equal((await readCell(directory.db, '0a')).is_doubled, false)
})

test('while one `work` reports, which may take minutes, no other does; if it dies, one follows before the cell seems stopped', async () => {
  const directory = await openDirectory()
  const cell = await openCell(directory.url, '0a', settings)
  const { db } = cell.ctx
  const reportBy = async (own: Database) => {
    const loops = listLoops({ ...cell.ctx, db: own }, [])
    await loops.find(({ name }) => name === 'directory-report')?.run(() => {})
    return (await readCell(directory.db, '0a')).reports
  }
  const inMinutes = (minutes: number) => {
    const url = cell.databaseUrl
    const own = openDatabase({ url, connections: 4, name: 'test', clockOffset: `${minutes}min` })
    atEnd(() => own.close())
    return own
  }
  /** A process that does this once its turn is leased, and goes on. */
  const pausing = (then: () => Promise<unknown>): Database => ({
    ...db,
    async query(text, values) {
      if (!text.includes('schedules')) await then()
      return await db.query(text, values)
    },
  })
  const other = inMinutes(4)
  assert.equal(await reportBy(pausing(() => reportBy(other))), '1')
  assert.equal(await reportBy(other), '2')

  await db.query("update schedules set run_at = clock() where name = 'directory-report'")
  await assert.rejects(reportBy(pausing(async () => assert.fail('killed'))), /killed/)
  assert.equal(await reportBy(inMinutes(quietMinutes / 2)), '3')
})
