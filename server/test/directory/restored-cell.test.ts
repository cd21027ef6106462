/** A cell whose database was restored may have, in its backup, what another cell owns by now. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { directoryCommand } from '../../src/commands/directory.ts'
import { examine } from '../../src/commands/doctor.ts'
import { settlerCommand } from '../../src/commands/operator.ts'
import { settlerOwnership, walletOwnership } from '../../src/directory/directory.ts'
import { own } from '../../src/directory/own.ts'
import { lockForSending } from '../../src/payments/settlers/rows.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { assertProblem, openStore, order, type StoreClient } from '../support/store.ts'
import { adoptAgain, isUnavailable, openCell, openDirectory, report } from './support/cells.ts'

const chain = await openEvm()
const directory = await openDirectory()
const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: chain.url, LOG_LEVEL: 'info' }
const a = await openCell(directory.url, '0a', settings)
const b = await openCell(directory.url, '0b', settings)

/** Since the backup it was retired here, released, and owned by the other cell. */
async function moveAndRestore(address: string): Promise<void> {
  await report(a)
  const [backup] = await a.ctx.db.query<{ stamp: string }>('select stamp from directory_state')
  await report(a)
  await directory.db.query("update owners set cell = '0b' where address = $1", [address.toLowerCase()])
  await a.ctx.db.query('update directory_state set stamp = $1, next_stamp = null', [backup?.stamp])
}

async function giveUp(address: string): Promise<void> {
  await directory.db.query('delete from owners where address = $1', [address.toLowerCase()])
}

async function current(shop: StoreClient): Promise<Wallet | undefined> {
  const listed = await shop.call('GET', `/api/v1/stores/${shop.id}/wallets`)
  return listed.json<{ data: Wallet[] }>().data.find((each) => each.current)
}

test('a restored cell creates no checkout that pays to another cell’s wallet, until that cell gives it up', async () => {
  const address = newPayer().address
  const shop = await openStore(a, { mode: 'test', evmWallet: address })
  const neighbour = await openStore(a, { mode: 'test', evmWallet: address })
  const other = await openStore(a, { mode: 'test', evmWallet: newPayer().address })
  await shop.create()
  await moveAndRestore(address)
  const said = a.logged.length
  await report(a)
  assert.match(JSON.stringify(a.logged.slice(said)), /another cell owns/)
  for (const each of [shop, neighbour]) {
    const problem = assertProblem(await each.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
    assert.match(problem.detail, /GET its wallets for the reasons/)
    const wallet = await current(each)
    assert(wallet?.payable === false)
    assert.match(String(wallet.unpayableReason), /in use in another cell/)
  }
  await other.create()
  await report(a)
  assertProblem(await shop.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')

  await report(a)
  assertProblem(await shop.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
  await giveUp(address)
  await adoptAgain(a)
  await Promise.all([shop.create(), neighbour.create()])
  assert.equal((await current(shop))?.payable, true)
  const [owner] = await directory.db.query('select cell from owners where address = $1', [
    address.toLowerCase(),
  ])
  assert.deepEqual(owner, { cell: '0a' })
})

test('a retired wallet that another cell owns is still not paid when an owner undoes the change', async () => {
  const address = newPayer().address
  const shop = await openStore(a, { mode: 'test', evmWallet: address })
  await moveAndRestore(address)
  await report(a)
  const wallet = await current(shop)
  await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${wallet?.id}/retire`)
  await report(a)
  await a.ctx.db.query('update wallets set retired_at = null where id = $1', [wallet?.id])
  assertProblem(await shop.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
})

test('nothing new is sent from a settler that another cell owns, until that cell gives it up', async () => {
  const account = newPayer().address
  await adoptAgain(a)
  await settlerCommand(a.ctx, ['add', 'LOCAL', account], {}, async () => [])
  const [settler] = await a.ctx.db.query<{ network: string; address: string }>(
    "update settlers set lease_holder = 'lane', leased_until = now() + interval '1 hour', epoch = 1 where address = $1 returning *",
    [account.toLowerCase()],
  )
  assert(settler)
  const { network, address } = settler
  assert.equal(settlerOwnership(network, address).address, account.toLowerCase())
  const maySend = () =>
    a.ctx.db.transaction((tx) =>
      lockForSending(tx, { network, address, holder: 'lane', epoch: 1n }, []).then((each) => each !== null),
    )
  assert(await maySend())
  await moveAndRestore(account)
  await report(a)
  assert.equal(await maySend(), false)
  await giveUp(account)
  await adoptAgain(a)
  assert(await maySend())
})

test('a restored cell is granted nothing until an operator has adopted the directory there, and the others go on', async () => {
  const fresh = () => walletOwnership('test', 'EVM', newPayer().address.toLowerCase())
  await adoptAgain(a)
  await moveAndRestore(newPayer().address)
  await assert.rejects(own(a.ctx, fresh(), 'proof'), isUnavailable, 'even before it has reported')
  for (let minute = 0; minute < 3; minute++) {
    await report(a)
    await assert.rejects(own(a.ctx, fresh(), 'proof'), isUnavailable)
    await assert.rejects(own(a.ctx, fresh(), 'operator'), isUnavailable)
    assert.notEqual(await own(b.ctx, fresh(), 'proof'), 'elsewhere')
  }
  const [finding] = (await examine(a.ctx, async () => [])).filter(({ what }) => what === 'directory')
  assert.match(`${finding?.says} ${finding?.fix}`, /this one was restored.*directory adopt/)
  await directoryCommand(a.ctx, ['adopt'], {})
  for (let minute = 0; minute < 3; minute++) {
    await report(a)
    assert.notEqual(await own(a.ctx, fresh(), 'proof'), 'elsewhere')
  }
})

test('what an operator released after the backup is not used by the cell that is restored from it, even if its work never ran', async () => {
  const address = newPayer().address
  const shop = await openStore(a, { mode: 'test', evmWallet: address })
  await adoptAgain(a)
  const [backup] = await a.ctx.db.query<{ stamp: string }>('select stamp from directory_state')
  await a.ctx.db.query("update wallets set retired_at = now() - interval '2 days' where store_id = $1", [
    shop.id,
  ])
  assert.match(await directoryCommand(a.ctx, ['release', address], {}), /Released 1/)
  await openStore(b, { mode: 'test', evmWallet: address })
  // As it is in the backup.
  await a.ctx.db.query('update wallets set retired_at = null, released_at = null where store_id = $1', [
    shop.id,
  ])
  await a.ctx.db.query('update directory_state set stamp = $1, next_stamp = null', [backup?.stamp])
  await report(a)
  assertProblem(await shop.call('POST', '/api/v1/checkouts', order), 409, 'wallet_required')
})
