/** A cell that was closed or lost keeps nobody waiting. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { directoryCommand } from '../../src/commands/directory.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { removeCell } from '../../src/directory/cells.ts'
import { walletOwnership } from '../../src/directory/directory.ts'
import { own } from '../../src/directory/own.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { openTestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { adoptAgain, isUnavailable, later, openCell, openDirectory, report } from './support/cells.ts'

const fresh = () => walletOwnership('live', 'EVM', newPayer().address.toLowerCase())

async function open() {
  const directory = await openDirectory()
  const here = await openCell(directory.url, '0a', { LOG_LEVEL: 'info' })
  const closed = await openCell(directory.url, '0c', { LOG_LEVEL: 'info' })
  return { directory, here, closed }
}

test('a cell that has released everything is removed, even while it reports; one that has something is not', async () => {
  const { directory, here, closed } = await open()
  const wallet = fresh()
  await own(closed.ctx, wallet, 'proof')
  await report(closed)
  for (const options of [{}, { lost: true }])
    await assert.rejects(
      directoryCommand(here.ctx, ['remove', '0c'], options),
      /1 wallets and 0 settlers.*reported \d+ seconds ago/,
    )
  assert.match(await directoryCommand(closed.ctx, ['release'], { all: true }), /Released 1/)
  await report(closed)
  assert.match(await directoryCommand(here.ctx, ['remove', '0c'], {}), /not in the directory any more/)
  assert.doesNotMatch(await directoryCommand(here.ctx, ['list'], {}), /^0c/m)
  assert.deepEqual(await listOwners(directory.db, [wallet]), [])
  await assert.rejects(directoryCommand(here.ctx, ['remove', '0c'], {}), /There is no cell 0c/)
  await assert.rejects(directoryCommand(here.ctx, ['remove'], {}), /Say which cell/)
})

test('a lost cell is removed once it is silent and somebody says that it is lost; then others can have what it had', async () => {
  const { here, closed } = await open()
  const wallet = fresh()
  await own(closed.ctx, wallet, 'proof')
  await report(closed)
  assert.equal(await own(here.ctx, wallet, 'proof'), 'elsewhere')
  const afterwards = later(here.ctx, 1)
  await assert.rejects(directoryCommand(afterwards, ['remove', '0c'], {}), /--lost.*two checkouts/)
  await assert.rejects(
    directoryCommand(later(closed.ctx, 1), ['remove', '0c'], { lost: true }),
    /This database is that cell/,
  )
  assert.match(await directoryCommand(afterwards, ['remove', '0c'], { lost: true }), /1 wallet and/)
  assert.notEqual(await own(here.ctx, wallet, 'proof'), 'elsewhere')

  await assert.rejects(checkCellJoined(closed.ctx), /does not know cell 0c.*must not be used/)
  await assert.rejects(own(closed.ctx, fresh(), 'proof'), isUnavailable)
  await report(closed)
  assert.match(String(closed.logged.at(-1)?.msg), /does not know cell 0c.*stop its serve and work/)
  const next = await openTestApp({ CELL: '0c', DIRECTORY_URL: here.ctx.config.directoryUrl })
  assert.deepEqual(await adopt(next.ctx, openUses(next.ctx.db)), { wallets: 0, settlers: 0, elsewhere: [] })
  await assert.rejects(checkCellJoined(closed.ctx), /another database is cell 0c.*directory remove 0c/)
})

test('a cell that is gone for good keeps a restored directory from granting only until it is removed', async () => {
  const { here, closed } = await open()
  await report(closed)
  await assert.rejects(
    directoryCommand(here.ctx, ['restored'], { cells: '0a' }),
    /leaves out 0c.*directory remove/,
  )
  await directoryCommand(here.ctx, ['restored'], { cells: '0a,0c,0d' })
  await adoptAgain(here)
  await assert.rejects(own(here.ctx, fresh(), 'proof'), isUnavailable)
  await assert.rejects(directoryCommand(here.ctx, ['remove', '0c'], {}), /has not adopted/)
  const afterwards = later(here.ctx, 1)
  await assert.rejects(directoryCommand(afterwards, ['remove', '0d'], {}), /has not adopted.*--lost/)
  for (const tag of ['0c', '0d']) await directoryCommand(afterwards, ['remove', tag], { lost: true })
  assert.notEqual(await own(here.ctx, fresh(), 'proof'), 'elsewhere')
})

test('a directory that had forgotten a cell learns from its adoption where it is and whether it takes stores', async () => {
  const { here, closed } = await open()
  await directoryCommand(here.ctx, ['drain', '0c'], {})
  await report(closed)
  // As if the backup were older than the cell.
  await here.ctx.directory?.query("delete from cells where tag = '0c'")
  await directoryCommand(here.ctx, ['restored'], { cells: '0a,0c' })
  const consoleUrl = 'https://console-0c.example'
  const moved = { ...closed, ctx: { ...closed.ctx, config: { ...closed.ctx.config, consoleUrl } } }
  await adoptAgain(moved)
  const line = async () => (await directoryCommand(here.ctx, ['list'], {})).match(/^0c.*$/m)?.[0] ?? ''
  assert.match(await line(), /drained .*https:\/\/console-0c\.example/)
  await directoryCommand(here.ctx, ['resume', '0c'], {})
  await report(moved)
  assert.match(await line(), /takes stores /)
  // What an operator drains before it adopts stays drained.
  await here.ctx.directory?.query("update cells set identity = null, generation = 0 where tag = '0c'")
  await directoryCommand(here.ctx, ['drain', '0c'], {})
  await adoptAgain(moved)
  assert.match(await line(), /drained /)
  await directoryCommand(here.ctx, ['resume', '0c'], {})
  // A process without the setting takes nothing away.
  await report(closed)
  assert.match(await line(), /takes stores .*https:\/\/console-0c\.example/)
})

test('a question that arrives while its cell is removed is granted, and the cell stays, or is refused', async () => {
  const directory = await openDirectory()
  const here = await openCell(directory.url, '0a')
  const closed = await openCell(directory.url, '0c')
  const outcomes = { stays: 0, removed: 0 }
  for (let i = 0; i < 60; i++) {
    await adopt(closed.ctx, openUses(closed.ctx.db))
    await directory.db.query('delete from owners')
    const wallet = fresh()
    const pause = i % 3
    const [granted, removed] = await Promise.all([
      own(closed.ctx, wallet, 'proof').then(
        (hold) => hold !== 'free' && hold !== 'elsewhere',
        (error) => {
          assert(isUnavailable(error), String(error))
          return false
        },
      ),
      new Promise((done) => setTimeout(done, pause)).then(() => removeCell(here.ctx, '0c', false)),
    ])
    const isRemoved = !('refusal' in removed)
    assert.equal(granted, !isRemoved)
    assert.equal((await listOwners(directory.db, [wallet])).length, granted ? 1 : 0)
    outcomes[isRemoved ? 'removed' : 'stays']++
  }
  assert.equal(outcomes.stays + outcomes.removed, 60)
})
