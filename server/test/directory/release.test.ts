/** An owner stays one until an operator releases it in its own cell, whatever happens there at the same moment. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { openUses } from '../../src/checkouts/uses.ts'
import { directoryCommand } from '../../src/commands/directory.ts'
import { settlerCommand } from '../../src/commands/operator.ts'
import { settlerOwnership, walletOwnership } from '../../src/directory/directory.ts'
import { keepHold, own, release } from '../../src/directory/own.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { isId } from '../../src/ids.ts'
import { readChange } from '../../src/stores/change.ts'
import { lockStore, renewWallet } from '../../src/stores/rows.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openStore, type StoreClient } from '../support/store.ts'
import {
  aDayLater,
  isUnavailable,
  later,
  openCell,
  openDirectory,
  register,
  releaseIn,
  report,
} from './support/cells.ts'

const chain = await openEvm()
const directory = await openDirectory()
const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: chain.url }
const a = await openCell(directory.url, '0a', settings)
const b = await openCell(directory.url, '0b', settings)
const inADay = aDayLater(a)

const fresh = () => walletOwnership('test', 'EVM', newPayer().address.toLowerCase())

async function ownerOf(ownership: ReturnType<typeof fresh>): Promise<string | undefined> {
  return (await listOwners(directory.db, [ownership]))[0]?.cell
}

async function openRetired(): Promise<{ shop: StoreClient; wallet: ReturnType<typeof fresh> }> {
  const wallet = fresh()
  const shop = await openStore(a, { mode: 'test', evmWallet: wallet.address })
  await retire(shop)
  return { shop, wallet }
}

async function retire(shop: StoreClient): Promise<void> {
  const { data } = (await shop.call('GET', `/api/v1/stores/${shop.id}/wallets`)).json<{ data: Wallet[] }>()
  const answer = await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${data[0]?.id}/retire`)
  assert.equal(answer.statusCode, 200, answer.body)
}

test('an owner that uses nothing stays the owner for years, until it is released, and then another cell can own it', async () => {
  const wallet = fresh()
  await own(a.ctx, wallet, 'operator')
  await report({ ctx: later(a.ctx, 30_000) })
  await report({ ctx: later(b.ctx, 30_000) })
  assert.equal(await ownerOf(wallet), '0a')
  assert.equal(await own(b.ctx, wallet, 'proof'), 'elsewhere')
  assert.match(await directoryCommand(a.ctx, ['release', wallet.address], {}), /Released 1/)
  assert.equal(await ownerOf(wallet), undefined)
  assert.notEqual(await own(b.ctx, wallet, 'proof'), 'elsewhere')
})

test('a cell releases nothing that another cell owns, whichever address an operator types', async () => {
  const wallet = fresh()
  await own(b.ctx, wallet, 'operator')
  await assert.rejects(directoryCommand(a.ctx, ['release', wallet.address], {}), /belongs to cell 0b.*there/)
  await assert.rejects(
    release(a.ctx, openUses(a.ctx.db), await listOwners(directory.db, [wallet])),
    isUnavailable,
  )
  assert.equal(await ownerOf(wallet), '0b')
  assert.match(await directoryCommand(a.ctx, ['release', fresh().address], {}), /owns nothing at/)
  await assert.rejects(directoryCommand(a.ctx, ['release', 'nonsense'], {}), /not an address/)
  for (const [words, options] of [
    [['release'], {}],
    [['release', wallet.address], { all: true }],
    [['release'], { all: true, mode: 'live' }],
    [['release', wallet.address], { mode: 'both' }],
  ] as const)
    await assert.rejects(directoryCommand(a.ctx, words, options), /Usage/)
})

test('a wallet is not released while a store uses it, an owner can undo its retirement, or a checkout is open', async () => {
  const wallet = fresh()
  const shop = await openStore(a, { mode: 'test', evmWallet: wallet.address })
  const { id } = await shop.create()
  const refused = async (cell: typeof a) => {
    await assert.rejects(directoryCommand(cell.ctx, ['release', wallet.address], {}), /Released 0.*test EVM/s)
    assert.equal(await ownerOf(wallet), '0a')
  }
  await refused(inADay)
  await retire(shop)
  await refused(inADay)
  await shop.call('POST', `/api/v1/checkouts/${id}/cancel`)
  await refused(a)
  assert.match(
    await directoryCommand(inADay.ctx, ['release', wallet.address], { mode: 'test' }),
    /Released 1/,
  )
  assert.equal(await ownerOf(wallet), undefined)
})

test('of an address that is used in one mode, the other is released if it is named', async () => {
  const wallet = fresh()
  const live = walletOwnership('live', 'EVM', wallet.address)
  await openStore(a, { mode: 'test', evmWallet: wallet.address })
  await own(a.ctx, live, 'operator')
  await assert.rejects(directoryCommand(a.ctx, ['release', wallet.address], {}), /Released 0/)
  assert.deepEqual([await ownerOf(wallet), await ownerOf(live)], ['0a', '0a'])
  await directoryCommand(a.ctx, ['release', wallet.address], { mode: 'live' })
  assert.deepEqual([await ownerOf(wallet), await ownerOf(live)], ['0a', undefined])
})

test('a settler is released once it is retired with nothing unmined', async () => {
  const account = newPayer().address
  const network = chain.network.caip2
  const add = ({ ctx }: typeof a) => settlerCommand(ctx, ['add', 'LOCAL', account], {}, async () => [])
  await add(a)
  const settler = settlerOwnership(network, account.toLowerCase())
  await assert.rejects(directoryCommand(a.ctx, ['release', account], {}), /Released 0/)
  await a.ctx.db.query(
    "update settlers set state = 'retired', next_nonce = mined_nonce + 1 where address = $1",
    [settler.address],
  )
  await assert.rejects(directoryCommand(a.ctx, ['release', account], {}), /Released 0/)
  await a.ctx.db.query('update settlers set mined_nonce = next_nonce where address = $1', [settler.address])
  assert.match(await directoryCommand(a.ctx, ['release', account], {}), /Released 1/)
  assert.match(await add(b), /now settles/)
  await assert.rejects(add(a), /belongs to cell 0b/)
})

test('whoever was granted something, and slept while it was released, cannot use it', async () => {
  const wallet = fresh()
  const hold = await own(a.ctx, wallet, 'proof')
  assert(hold !== 'free' && hold !== 'elsewhere')
  await a.ctx.db.transaction((tx) => keepHold(tx, hold))
  assert.deepEqual(await releaseIn(a, [wallet]), [])
  await assert.rejects(
    a.ctx.db.transaction((tx) => keepHold(tx, hold)),
    isUnavailable,
  )
})

for (const step of ['before the last look', 'after the last look'] as const)
  test(`what is granted again ${step} of a release stays`, async () => {
    const wallet = fresh()
    await own(a.ctx, wallet, 'proof')
    const uses = openUses(a.ctx.db)
    let looks = 0
    const interrupted: typeof uses = {
      ...uses,
      async find(some) {
        const isLast = ++looks === 2
        if (isLast && step === 'before the last look') await own(a.ctx, wallet, null)
        const used = await uses.find(some)
        if (isLast && step === 'after the last look') await own(a.ctx, wallet, null)
        return used
      },
    }
    await assert.rejects(releaseIn(a, [wallet], interrupted), isUnavailable)
    assert.equal(await ownerOf(wallet), '0a')
  })

test('of a registration and two releases at the same moment, a wallet in use is owned, and one without an owner is not used', async (t) => {
  const outcomes = { used: 0, released: 0 }
  for (let i = 0; i < 60; i++) {
    const { shop, wallet } = await openRetired()
    const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))
    const releasing = async (ms: number) => {
      await pause(ms)
      await releaseIn(inADay, [wallet]).catch((error) => assert(isUnavailable(error), String(error)))
    }
    const registering = pause(i % 4).then(() => register(shop, wallet.address))
    const [answer] = await Promise.all([registering, releasing(i % 3), releasing(i % 5)])
    const wire = answer.statusCode === 201 ? answer.json<Wallet>() : null
    const isUsed = wire !== null && !wire.proofRequired
    if (isUsed) assert.equal(await ownerOf(wallet), '0a')
    else if ((await ownerOf(wallet)) === undefined)
      assert.notEqual(await own(b.ctx, wallet, 'proof'), 'elsewhere')
    outcomes[isUsed ? 'used' : 'released']++
  }
  t.diagnostic(JSON.stringify(outcomes))
  assert.equal(outcomes.used + outcomes.released, 60)
})

test('an owner’s undo that arrives while the wallet is released keeps it, or is over', async () => {
  const { shop, wallet } = await openRetired()
  const { id: storeId } = shop
  assert(isId('st', storeId))
  const uses = openUses(inADay.ctx.db)
  const undo = () =>
    a.ctx.db.transaction(async (tx) => {
      await lockStore(tx, storeId)
      const [change] = await tx.query<{ id: string }>(
        "select id from wallet_changes where store_id = $1 and kind = 'retire' order by made desc limit 1",
        [shop.id],
      )
      const found = (await readChange(tx, storeId, change?.id ?? '')) ?? assert.fail('it was retired')
      if (found.isUndoable) await renewWallet(tx, found.wallet.id)
      return found.isUndoable
    })
  const early: typeof uses = {
    ...uses,
    async writeReleased(some) {
      assert.equal(await undo(), true)
      await uses.writeReleased(some)
    },
  }
  assert.deepEqual(await releaseIn(inADay, [wallet], early), [wallet])
  assert.equal(await ownerOf(wallet), '0a')
  await retire(shop)
  const late: typeof uses = {
    ...uses,
    async writeReleased(some) {
      await uses.writeReleased(some)
      assert.equal(await undo(), false)
    },
  }
  assert.deepEqual(await releaseIn(inADay, [wallet], late), [])
  assert.equal(await ownerOf(wallet), undefined)
})

test('a cell that dies after it has noted a release, or after the directory has done it, finishes it when it is repeated', async () => {
  const { wallet } = await openRetired()
  const uses = openUses(inADay.ctx.db)
  const dies: typeof uses = {
    ...uses,
    async writeReleased(some) {
      await uses.writeReleased(some)
      throw new Error('killed')
    },
  }
  await assert.rejects(releaseIn(inADay, [wallet], dies), /killed/)
  assert.equal(await ownerOf(wallet), '0a')
  assert.match(await directoryCommand(inADay.ctx, ['release', wallet.address], {}), /Released 1/)
  assert.match(await directoryCommand(inADay.ctx, ['release', wallet.address], {}), /owns nothing/)
})

test('`release --all` empties a cell in steps, and stops at what is used', async () => {
  const cell = await openCell(directory.url, '0c', settings)
  await directory.db.query(
    `insert into owners (kind, scope, address, cell, basis, owned_at, generation)
     select 'wallet', 'live EVM', 'x' || n, '0c', 'operator', now(), 1 from generate_series(1, 1001) n`,
  )
  assert.match(await directoryCommand(cell.ctx, ['release'], { all: true }), /Released 1001/)
  await openStore(cell, { mode: 'test', evmWallet: newPayer().address })
  await assert.rejects(directoryCommand(cell.ctx, ['release'], { all: true }), /Released 0.*test EVM/s)
})
