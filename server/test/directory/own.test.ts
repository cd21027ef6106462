/** One cell owns a wallet or a settler: whoever asks first, whatever dies in between. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { settlerOwnership, walletOwnership } from '../../src/directory/directory.ts'
import { own } from '../../src/directory/own.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { randomText } from '../../src/ids.ts'
import { openTestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { runs } from '../support/full.ts'
import { openStore } from '../support/store.ts'
import { isUnavailable, openCell, openDirectory } from './support/cells.ts'

const directory = await openDirectory()
const a = await openCell(directory.url, '0a')
const b = await openCell(directory.url, '0b')

const fresh = () => walletOwnership('live', 'EVM', newPayer().address.toLowerCase())

async function ownerOf(ownership: ReturnType<typeof fresh>): Promise<string | undefined> {
  return (await listOwners(directory.db, [ownership]))[0]?.cell
}

test('of two cells that ask for an address at the same time, one wins, and its repeats too', async (t) => {
  const { numRuns } = runs(300, 10_000)
  const wins = { '0a': 0, '0b': 0 }
  for (let done = 0; done < numRuns; done += 50) {
    const races = Array.from({ length: 50 }, async (_, i) => {
      const account = settlerOwnership('eip155:8453', `${done + i} ${randomText(8)}`)
      const cells = i % 2 === 0 ? [a, b, b, a] : [b, a, a, b]
      const outcomes = await Promise.all(cells.map(({ ctx }) => own(ctx, account, 'operator')))
      const owner = await ownerOf(account)
      assert(owner === '0a' || owner === '0b')
      wins[owner]++
      for (const [k, { ctx }] of cells.entries())
        assert.equal(outcomes[k] === 'elsewhere', ctx.config.cell !== owner, account.address)
    })
    await Promise.all(races)
  }
  t.diagnostic(JSON.stringify(wins))
  assert(wins['0a'] > 0 && wins['0b'] > 0, 'both cells take part')
})

test('a deployment is adopted with all that it uses, or not at all if another cell has some of it', async () => {
  const [shared, single] = [newPayer().address, newPayer().address]
  const taken = walletOwnership('live', 'EVM', shared.toLowerCase())
  await own(a.ctx, taken, 'operator')
  const old = await openTestApp({ CELL: '0c' })
  for (const evmWallet of [shared, single]) await openStore(old, { evmWallet })
  const config = { ...old.ctx.config, directoryUrl: directory.url }
  const joined = { ...old.ctx, config, directory: directory.db }
  const uses = openUses(old.ctx.db)
  await assert.rejects(checkCellJoined(joined), /has not adopted.*directory adopt/)
  assert.deepEqual(await adopt(joined, uses), { conflicts: [taken] })
  assert.equal(await ownerOf(walletOwnership('live', 'EVM', single.toLowerCase())), undefined)
  await checkCellJoined(old.ctx)
  await old.ctx.db.query("update wallets set retired_at = now() - interval '2 days' where pay_to = $1", [
    taken.address,
  ])
  assert.deepEqual(await adopt(joined, uses), { wallets: 1, settlers: 0, elsewhere: [] })
  assert.deepEqual(await adopt(joined, uses), { wallets: 1, settlers: 0, elsewhere: [] })
  await checkCellJoined(joined)
  await assert.rejects(checkCellJoined(old.ctx), /DIRECTORY_URL is required/)
  await assert.rejects(
    openStore(old, { evmWallet: newPayer().address }),
    isUnavailable,
    'a process without it',
  )
})

test('nothing but wallets, settlers, commands and one background loop asks the directory', () => {
  const folder = new URL('../../src/', import.meta.url).pathname
  const importers = globSync('**/*.ts', { cwd: folder })
    .filter((path) => !path.startsWith('directory/') && !path.startsWith('commands/'))
    .filter((path) => /from '[./]+\/directory\//.test(readFileSync(folder + path, 'utf8')))
  const known = [
    'checkouts/uses.ts',
    'stores/prove.ts',
    'stores/sign-up.ts',
    'stores/wallets.ts',
    'worker.ts',
  ]
  assert.deepEqual(importers.sort(), known)
})

test('no cell is added while another has not adopted a restored directory', async () => {
  await directory.db.query("insert into cells (tag) values ('zz')")
  const { ctx } = await openTestApp({ CELL: '0d', DIRECTORY_URL: directory.url })
  assert.deepEqual(await adopt(ctx, openUses(ctx.db)), { waitsFor: ['zz'] })
  await directory.db.query("delete from cells where tag = 'zz'")
})
