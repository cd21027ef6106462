/** One cell owns a wallet or a settler: whoever asks first, whatever dies in between. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openUses } from '../../src/checkouts/uses.ts'
import { adopt, checkCellJoined } from '../../src/directory/adopt.ts'
import { claimHere, keepHold } from '../../src/directory/claim.ts'
import { settlerClaim, walletClaim } from '../../src/directory/directory.ts'
import { releaseClaims } from '../../src/directory/release.ts'
import { reportToDirectory } from '../../src/directory/report.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { randomText } from '../../src/ids.ts'
import { Problem } from '../../src/problems.ts'
import { openTestApp } from '../support/app.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { runs } from '../support/full.ts'
import { openStore } from '../support/store.ts'
import { later, openCell, openDirectory } from './support/cells.ts'

const directory = await openDirectory()
const a = await openCell(directory.url, '0a')
const b = await openCell(directory.url, '0b')

const fresh = () => walletClaim('live', 'EVM', newPayer().address.toLowerCase())
const isUnavailable = (error: unknown) => error instanceof Problem && error.code === 'unavailable'
const noLoad = async () => ({ stores: 0, paymentsPerHour: 0 })
const report = ({ ctx }: typeof a) => reportToDirectory(ctx, openUses(ctx.db), noLoad, { gaps: 0 })
/** Looks at all claims of a cell. */
async function release(ctx: typeof a.ctx): Promise<void> {
  const turn: Parameters<typeof releaseClaims>[2] = { after: null }
  do await releaseClaims(ctx, openUses(ctx.db), turn)
  while (turn.after !== null)
}

async function ownerOf(claim: ReturnType<typeof fresh>): Promise<string | undefined> {
  return (await listOwners(directory.db, [claim]))[0]?.cell
}

test('of two cells that claim an address at the same time, one wins, and its repeats too', async (t) => {
  const { numRuns } = runs(300, 10_000)
  const wins = { '0a': 0, '0b': 0 }
  for (let done = 0; done < numRuns; done += 50) {
    const races = Array.from({ length: 50 }, async (_, i) => {
      const claim = settlerClaim('eip155:8453', `${done + i} ${randomText(8)}`)
      const cells = i % 2 === 0 ? [a, b, b, a] : [b, a, a, b]
      const outcomes = await Promise.all(cells.map(({ ctx }) => claimHere(ctx, claim, 'operator')))
      const owner = await ownerOf(claim)
      assert(owner === '0a' || owner === '0b')
      wins[owner]++
      for (const [k, { ctx }] of cells.entries())
        assert.equal(outcomes[k] === 'elsewhere', ctx.config.cell !== owner, claim.address)
    })
    await Promise.all(races)
  }
  t.diagnostic(JSON.stringify(wins))
  assert(wins['0a'] > 0 && wins['0b'] > 0, 'both cells take part')
})

test('a claim that nothing uses is given up after a day, by its own cell only, and another may have it', async () => {
  const claim = fresh()
  assert.notEqual(await claimHere(a.ctx, claim, 'operator'), 'elsewhere')
  await release(a.ctx)
  await release(later(a.ctx, 24))
  assert.equal(await ownerOf(claim), '0a')
  await release(later(b.ctx, 26))
  assert.equal(await ownerOf(claim), '0a', 'another cell does not know what this one uses')
  await release(later(a.ctx, 26))
  assert.equal(await ownerOf(claim), undefined)
  assert.notEqual(await claimHere(b.ctx, claim, 'proof'), 'elsewhere')
})

test('whoever claimed, and slept while the claim was given up, cannot use it', async () => {
  const claim = fresh()
  const hold = await claimHere(a.ctx, claim, 'proof')
  assert(hold !== 'free' && hold !== 'elsewhere')
  await a.ctx.db.transaction((tx) => keepHold(tx, hold))
  await release(a.ctx)
  await release(later(a.ctx, 26))
  await assert.rejects(
    a.ctx.db.transaction((tx) => keepHold(tx, hold)),
    isUnavailable,
  )
})

test('a claim that is used while it is about to be given up stays', async () => {
  const claim = fresh()
  await claimHere(a.ctx, claim, 'proof')
  await release(a.ctx)
  const late = later(a.ctx, 26)
  const uses = openUses(a.ctx.db)
  const find: typeof uses.find = async (claims) => {
    const used = await uses.find(claims)
    await claimHere(a.ctx, claim, null)
    return used
  }
  await releaseClaims(late, { ...uses, find }, { after: null })
  assert.equal(await ownerOf(claim), '0a')
})

test('a wallet that a store has is not given up; once retired with nothing open, it is', async () => {
  const wallet = newPayer().address
  const shop = await openStore(a, { evmWallet: wallet })
  const claim = walletClaim('live', 'EVM', wallet.toLowerCase())
  const { id } = await shop.create()
  for (const hours of [0, 26]) await release(later(a.ctx, hours))
  assert.equal(await ownerOf(claim), '0a')
  const { data } = (await shop.call('GET', `/api/v1/stores/${shop.id}/wallets`)).json()
  await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${data[0].id}/retire`)
  for (const hours of [0, 26]) await release(later(a.ctx, hours))
  assert.equal(await ownerOf(claim), '0a', 'its checkout is open')
  await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
  await release(a.ctx)
  assert.equal(await ownerOf(claim), '0a', 'for a day after the last of it')
  await release(later(a.ctx, 26))
  assert.equal(await ownerOf(claim), undefined)
})

test('after a restore nothing is granted until every cell has told what it uses, and nothing is lost', async () => {
  const wallet = newPayer().address
  await openStore(b, { evmWallet: wallet })
  const claim = walletClaim('live', 'EVM', wallet.toLowerCase())
  await Promise.all([report(a), report(b)])
  // A backup in which cell 0a had the wallet, which it has given up since.
  await directory.db.query("update claims set cell = '0a' where address = $1", [claim.address])
  await directory.db.query('update epoch set number = number + 1')
  await assert.rejects(claimHere(a.ctx, claim, null), isUnavailable, 'not even what it seems to have')
  await report(a)
  await assert.rejects(claimHere(a.ctx, fresh(), 'proof'), isUnavailable)
  await report(b)
  assert.equal(await ownerOf(claim), '0b')
  assert.equal(await claimHere(a.ctx, claim, 'proof'), 'elsewhere')
  assert.notEqual(await claimHere(b.ctx, fresh(), 'proof'), 'elsewhere')
})

test('a claim from before a restore cannot be used after its cell has told what it uses', async () => {
  const hold = await claimHere(a.ctx, fresh(), 'proof')
  assert(hold !== 'free' && hold !== 'elsewhere')
  await directory.db.query('update epoch set number = number + 1')
  await Promise.all([report(a), report(b)])
  await assert.rejects(
    a.ctx.db.transaction((tx) => keepHold(tx, hold)),
    isUnavailable,
  )
})

test('a cell that sees the directory go back stops all grants until every cell has told what it uses', async () => {
  await Promise.all([report(a), report(b)])
  const wallet = newPayer().address
  await openStore(a, { evmWallet: wallet })
  const claim = walletClaim('live', 'EVM', wallet.toLowerCase())
  await report(a)
  // A backup from before the wallet was registered.
  await directory.db.query('delete from claims where address = $1', [claim.address])
  await directory.db.query("update cells set reports = reports - 2 where tag = '0a'")
  await report(a)
  assert.equal(await ownerOf(claim), '0a')
  await assert.rejects(claimHere(a.ctx, fresh(), 'proof'), isUnavailable)
  await report(b)
  assert.equal(await claimHere(b.ctx, claim, 'proof'), 'elsewhere')
})

test('a deployment is adopted with all that it uses, or not at all if another cell has some of it', async () => {
  const [shared, own] = [newPayer().address, newPayer().address]
  const taken = walletClaim('live', 'EVM', shared.toLowerCase())
  await claimHere(a.ctx, taken, 'operator')
  const old = await openTestApp({ CELL: '0c' })
  for (const evmWallet of [shared, own]) await openStore(old, { evmWallet })
  const config = { ...old.ctx.config, directoryUrl: directory.url }
  const joined = { ...old.ctx, config, directory: directory.db }
  const uses = openUses(old.ctx.db)
  await assert.rejects(checkCellJoined(joined), /has not adopted.*directory adopt/)
  assert.deepEqual(await adopt(joined, uses), { conflicts: [`wallet live EVM ${taken.address}`] })
  assert.equal(await ownerOf(walletClaim('live', 'EVM', own.toLowerCase())), undefined)
  await checkCellJoined(old.ctx)
  await old.ctx.db.query('update wallets set retired_at = now() where pay_to = $1', [taken.address])
  assert.deepEqual(await adopt(joined, uses), { wallets: 1, settlers: 0 })
  assert.deepEqual(await adopt(joined, uses), { wallets: 1, settlers: 0 })
  await checkCellJoined(joined)
  await assert.rejects(checkCellJoined(old.ctx), /DIRECTORY_URL is required/)
  await assert.rejects(
    openStore(old, { evmWallet: newPayer().address }),
    isUnavailable,
    'a process without it',
  )
})

test('nothing but wallets, settlers, commands and two background loops asks the directory', () => {
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

test('no cell is added while another has not told what it has', async () => {
  await directory.db.query("insert into cells (tag, asserted_epoch) values ('zz', 0)")
  const { ctx } = await openTestApp({ CELL: '0d', DIRECTORY_URL: directory.url })
  assert.deepEqual(await adopt(ctx, openUses(ctx.db)), { waitsFor: ['zz'] })
  await directory.db.query("delete from cells where tag = 'zz'")
})
