/** Wallets in a cell's console: a session may prove them, and only a touch puts them to use. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Wallet } from '@farthing/sdk'
import { privateKeyToAccount } from 'viem/accounts'
import { openUses } from '../../src/checkouts/uses.ts'
import { adopt } from '../../src/directory/adopt.ts'
import { openConsole } from '../http/console/support/console.ts'
import { a, isStatus, openGuardedStore, read, withoutTags } from '../http/console/support/wallets.ts'
import { newPayer, type Payer } from '../support/chain/evm-payment.ts'
import { registerWallet } from '../support/store.ts'
import { openDirectory } from './support/cells.ts'

const directory = await openDirectory()
const console = await openConsole({ settings: { CELL: '0a', DIRECTORY_URL: directory.url } })
const { ctx } = console.farthing
await adopt(ctx, openUses(ctx.db))

test('a wallet is new to the cell: an owner adds it by a touch, proves it, and a touch puts it to use', async () => {
  const guarded = await openGuardedStore(console)
  const { store, owner } = guarded
  const { browser, authenticator } = owner
  const prove = async ({ id }: Pick<Wallet, 'id'>, holder: Payer) => {
    const path = `/stores/${store.id}/wallets/${id}`
    const { message } = (await browser.done(`${path}/challenge`)).json()
    const signature = await privateKeyToAccount(holder.key).signMessage({ message })
    const { to } = (await browser.done(`${path}/prove`, { signature })).json()
    assert.equal(to, `/stores/${store.id}/wallets`, 'where it waits')
  }
  const [own, theirs] = [newPayer(), newPayer()]
  const values = {
    ...{ storeId: store.id, family: 'EVM', address: own.address },
    ...{ custodialType: 'NON_CUSTODIAL', paidNow: a },
  }
  const touch = await browser.confirm(authenticator, 'wallet.use', values)
  await isStatus(browser.post(`/stores/${store.id}/wallets/use`, { ...values, touch }), 303)
  assert.equal(await guarded.paidTo(), a)
  const shown = withoutTags(await read(browser, `/stores/${store.id}/wallets`))
  assert.match(shown, new RegExp(`Waiting for a signature[\\s\\S]*${own.address}`))
  const added = (await guarded.list()).find(({ walletAddress }) => walletAddress === own.address)
  await prove(added ?? assert.fail(), own)
  assert.equal(await guarded.paidTo(), a, 'no session puts a wallet to use without a touch')

  // Nor one that a thief with a key asked for, and can sign for.
  await prove(await registerWallet(store, theirs.address), theirs)
  assert.equal(await guarded.paidTo(), a)
  await isStatus(guarded.refuse(await guarded.newest()), 303)

  await prove(await registerWallet(store, own.address), own)
  await isStatus(guarded.confirm(await guarded.newest()), 303)
  assert.equal(await guarded.paidTo(), own.address)
})
