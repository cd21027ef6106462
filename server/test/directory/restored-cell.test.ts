/** A cell whose database was restored may have, in its backup, what another cell owns by now. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { openUses } from '../../src/checkouts/uses.ts'
import { settlerCommand } from '../../src/commands/operator.ts'
import { settlerClaim } from '../../src/directory/directory.ts'
import { reportToDirectory } from '../../src/directory/report.ts'
import { lockForSending } from '../../src/payments/settlers/rows.ts'
import { openEvm } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { assertProblem, openStore, order, type StoreClient } from '../support/store.ts'
import { openCell, openDirectory } from './support/cells.ts'

const chain = await openEvm()
const directory = await openDirectory()
const settings = { NETWORKS: 'LOCAL', LOCAL_RPC_URLS: chain.url, LOG_LEVEL: 'info' }
const a = await openCell(directory.url, '0a', settings)
await openCell(directory.url, '0b', settings)
const report = ({ ctx }: typeof a) =>
  reportToDirectory(ctx, openUses(ctx.db), async () => ({ stores: 0, paymentsPerHour: 0 }), { gaps: 0 })

/** Since the backup it was retired here, given up, and claimed by the other cell. */
async function moveAndRestore(address: string): Promise<void> {
  await report(a)
  await directory.db.query("update claims set cell = '0b' where address = $1", [address.toLowerCase()])
  await a.ctx.db.query('update directory_state set reports = 0')
}

async function giveUp(address: string): Promise<void> {
  await directory.db.query('delete from claims where address = $1', [address.toLowerCase()])
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

  await giveUp(address)
  await report(a)
  await Promise.all([shop.create(), neighbour.create()])
  assert.equal((await current(shop))?.payable, true)
  const [claim] = await directory.db.query('select cell from claims where address = $1', [
    address.toLowerCase(),
  ])
  assert.deepEqual(claim, { cell: '0a' })
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
  await settlerCommand(a.ctx, ['add', 'LOCAL', account], {}, async () => [])
  const [settler] = await a.ctx.db.query<{ network: string; address: string }>(
    "update settlers set lease_holder = 'lane', leased_until = now() + interval '1 hour', epoch = 1 where address = $1 returning *",
    [account.toLowerCase()],
  )
  assert(settler)
  const { network, address } = settler
  assert.equal(settlerClaim(network, address).address, account.toLowerCase())
  const maySend = () =>
    a.ctx.db.transaction((tx) =>
      lockForSending(tx, { network, address, holder: 'lane', epoch: 1n }, []).then((each) => each !== null),
    )
  assert(await maySend())
  await moveAndRestore(account)
  await report(a)
  assert.equal(await maySend(), false)
  await giveUp(account)
  await report(a)
  assert(await maySend())
})
