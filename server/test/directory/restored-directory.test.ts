/** A directory that was restored from a backup has forgotten owners: it grants nothing until every cell has adopted it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { directoryCommand } from '../../src/commands/directory.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { walletOwnership } from '../../src/directory/directory.ts'
import { keepHold, own } from '../../src/directory/own.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { openTestApp, type TestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openStore } from '../support/store.ts'
import { adoptAgain, isUnavailable, openCell, openDirectory, releaseIn, report } from './support/cells.ts'

const directory = await openDirectory()
const a = await openCell(directory.url, '0a', { LOG_LEVEL: 'info' })
const b = await openCell(directory.url, '0b', { LOG_LEVEL: 'info' })

const fresh = () => walletOwnership('live', 'EVM', newPayer().address.toLowerCase())

async function openWithWallet(cell: TestApp): Promise<ReturnType<typeof fresh>> {
  const wallet = fresh()
  await openStore(cell, { evmWallet: wallet.address })
  return wallet
}

async function ownerOf(ownership: ReturnType<typeof fresh>): Promise<string | undefined> {
  return (await listOwners(directory.db, [ownership]))[0]?.cell
}

/** A copy of all that the directory has, and what puts it back. */
async function backUp(): Promise<() => Promise<void>> {
  const tables = ['generation', 'cells', 'owners']
  const copies = await Promise.all(
    tables.map(async (table) => ({ table, rows: await directory.db.query(`select * from ${table}`) })),
  )
  return async () =>
    await directory.db.transaction(async (tx) => {
      for (const table of tables.toReversed()) await tx.query(`delete from ${table}`)
      for (const { table, rows } of copies)
        await tx.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [
          JSON.stringify(rows),
        ])
    })
}

async function assertClosed(...cells: readonly TestApp[]): Promise<void> {
  for (const cell of cells) {
    await assert.rejects(own(cell.ctx, fresh(), 'proof'), isUnavailable)
    await assert.rejects(own(cell.ctx, fresh(), 'operator'), isUnavailable)
  }
}

test('the first cell that sees the directory go back stops all grants until every cell has adopted it, and nothing is lost', async () => {
  await report(a)
  const restore = await backUp()
  const wallet = await openWithWallet(b)
  for (const cell of [a, b]) await report(cell)
  await restore()
  assert.equal(await ownerOf(wallet), undefined)
  // Neither may own anything, even before anybody has noticed: both have reported since the backup.
  await assertClosed(a, b)
  await report(a)
  assert.match(String(a.logged.at(-1)?.msg), /was restored.*0a, 0b.*directory adopt/)
  await adoptAgain(a)
  await assertClosed(a, b)
  assert.match(await directoryCommand(a.ctx, ['list'], {}), /^0b .*NOTHING IS GRANTED/m)
  for (const cell of [a, b, a, b]) await report(cell)
  await assertClosed(a, b)
  await adoptAgain(b)
  assert.equal(await ownerOf(wallet), '0b')
  assert.equal(await own(a.ctx, wallet, 'proof'), 'elsewhere')
  for (const cell of [a, b]) assert.notEqual(await own(cell.ctx, fresh(), 'proof'), 'elsewhere')
})

test('a cell that was granted nothing since the backup keeps the others waiting all the same', async () => {
  const wallet = await openWithWallet(b)
  for (const cell of [a, b]) await report(cell)
  const restore = await backUp()
  await report(b)
  await restore()
  await report(b)
  await adoptAgain(b)
  await assertClosed(a, b)
  assert.equal(await ownerOf(wallet), '0b')
  await adoptAgain(a)
  assert.equal(await own(a.ctx, wallet, 'proof'), 'elsewhere')
})

test('an owner in the backup gives way to the cell that owned it since, in whichever order they adopt', async () => {
  for (const order of [
    [a, b],
    [b, a],
  ]) {
    const wallet = fresh()
    await own(a.ctx, wallet, 'operator')
    for (const cell of [a, b]) await report(cell)
    const restore = await backUp()
    assert.deepEqual(await releaseIn(a, [wallet]), [])
    await openStore(b, { evmWallet: wallet.address })
    for (const cell of [a, b]) await report(cell)
    await restore()
    assert.equal(await ownerOf(wallet), '0a')
    await assert.rejects(own(a.ctx, wallet, null), isUnavailable, 'not even what it seems to own')
    for (const cell of order) await report(cell)
    for (const cell of order) await adoptAgain(cell)
    assert.equal(await ownerOf(wallet), '0b')
    assert.equal(await own(a.ctx, wallet, 'proof'), 'elsewhere')
  }
})

test('what was granted before the restore cannot be used after its cell has adopted', async () => {
  const hold = await own(a.ctx, fresh(), 'proof')
  assert(hold !== 'free' && hold !== 'elsewhere')
  await directoryCommand(a.ctx, ['restored'], { cells: '0a,0b' })
  for (const cell of [a, b]) await adoptAgain(cell)
  await assert.rejects(
    a.ctx.db.transaction((tx) => keepHold(tx, hold)),
    isUnavailable,
  )
})

test('what is registered while its cell adopts is adopted, or refused', async () => {
  for (let i = 0; i < 20; i++) {
    const wallet = fresh()
    const restore = await backUp()
    const hold = await own(a.ctx, wallet, 'operator')
    assert(hold !== 'free' && hold !== 'elsewhere')
    for (const cell of [a, b]) await report(cell)
    await restore()
    await report(a)
    const using = a.ctx.db
      .transaction(async (tx) => {
        await keepHold(tx, hold)
        await tx.query(
          "insert into settlers (network, address, next_nonce, mined_nonce) values ('x', $1, 0, 0)",
          [wallet.address],
        )
      })
      .then(
        () => true,
        (error) => {
          assert(isUnavailable(error), String(error))
          return false
        },
      )
    const [isUsed] = await Promise.all([using, adoptAgain(a)])
    await adoptAgain(b)
    const settler = { kind: 'settler', scope: 'x', address: wallet.address } as const
    assert.equal(await ownerOf(settler), isUsed ? '0a' : undefined)
  }
})

test('two cells that notice it at the same time raise the generation once, so that one adoption of each is enough', async () => {
  const restore = await backUp()
  for (const cell of [a, b]) await report(cell)
  await restore()
  await Promise.all([report(a), report(b), report(a), report(b)])
  await Promise.all([adoptAgain(a), adoptAgain(b)])
  for (const cell of [a, b]) assert.notEqual(await own(cell.ctx, fresh(), 'proof'), 'elsewhere')
})

test('a cell that the backup does not know is waited for once an operator has named it, and one that is not named may not start', async () => {
  const restore = await backUp()
  const c = await openCell(directory.url, '0c', { LOG_LEVEL: 'info' })
  const wallet = await openWithWallet(c)
  await report(c)
  await restore()
  await assert.rejects(checkCellJoined(c.ctx), /does not know cell 0c.*restored --cells/)
  await assert.rejects(own(c.ctx, fresh(), 'proof'), isUnavailable)
  await directoryCommand(a.ctx, ['restored'], { cells: '0a,0b,0c' })
  await checkCellJoined(c.ctx)
  for (const cell of [a, b]) await adoptAgain(cell)
  await assertClosed(a, b, c)
  const stranger = await openTestApp({ CELL: '0d', DIRECTORY_URL: directory.url })
  assert.deepEqual(await adopt(stranger.ctx, openUses(stranger.ctx.db)), { waitsFor: ['0c'] })
  await adoptAgain(c)
  assert.equal(await own(a.ctx, wallet, 'proof'), 'elsewhere')
})
