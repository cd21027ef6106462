/** Wallets that nobody has proven may be somebody else's, and busy: they must not decide how much a follower has to do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findConcerns, findMatches } from '../../../src/payments/evm/credit-blocks.ts'
import { registerWallet, retireWallet } from '../../../src/stores/wallets.ts'
import { makeStore, openTestApp } from '../../support/app.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'

const network = 'eip155:84532'
const app = await openTestApp({ NETWORKS: 'BASE_SEPOLIA' })
const { db } = app.ctx
const key = { type: 'key', id: 'key_hostile', name: null } as const
const hostile = await makeStore(app.ctx, { mode: 'test', evmWallet: null })

async function register(): Promise<{ id: string; address: string }> {
  const { address } = newPayer()
  const wallet = { walletAddress: address, custodialType: 'CUSTODIAL' } as const
  const { id } = await registerWallet(
    app.ctx,
    hostile.store.id,
    key,
    { family: 'EVM', ...wallet },
    app.ctx.now(),
  )
  return { id, address: address.toLowerCase() }
}

const transfersTo = (to: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    asset: '0xa',
    payer: '0xb',
    to,
    value: 10_000n,
    transactionHash: `0x${to}${i}`,
    logIndex: i,
    position: 0,
    nonce: `0x${to}${i}`,
  }))

async function count(to: string, transfers: number) {
  return await db.transaction(async (tx) => {
    const plain = await findMatches(tx, network, 7, transfersTo(to, transfers))
    const signed = await findConcerns(tx, network, new Date(), transfersTo(to, transfers))
    assert.deepEqual([signed.found.length, signed.unrecorded], [plain.found.length, plain.unrecorded])
    return { recorded: plain.found.length, unrecorded: plain.unrecorded }
  })
}

test('of the transfers of a block to an unproven wallet, twenty that match nothing are recorded; to a proven one, all', async () => {
  const { id, address } = await register()
  assert.deepEqual(await count(address, 20), { recorded: 20, unrecorded: 0 })
  assert.deepEqual(await count(address, 500), { recorded: 20, unrecorded: 480 })
  await db.query('update wallets set proven_at = clock() where id = $1', [id])
  assert.deepEqual(await count(address, 500), { recorded: 500, unrecorded: 0 })
})

test('many busy wallets together get two hundred', async () => {
  const addresses = await Promise.all(Array.from({ length: 15 }, register))
  const transfers = addresses.flatMap(({ address }) => transfersTo(address, 30))
  const { found, unrecorded } = await db.transaction((tx) => findMatches(tx, network, 7, transfers))
  assert.deepEqual({ recorded: found.length, unrecorded }, { recorded: 200, unrecorded: 250 })
})

test('while a restore is reconciled, all are recorded: a payment whose claim was lost looks like that', async () => {
  const { address } = await register()
  await db.query('insert into restores (network, started_at, since) values ($1, clock(), clock())', [network])
  assert.deepEqual(await count(address, 100), { recorded: 100, unrecorded: 0 })
  await db.query('delete from restores')
})

test('nine days after an unproven wallet was retired, nothing is recorded for it; a proven one stays its store’s', async () => {
  const { id, address } = await register()
  await retireWallet(app.ctx, hostile.store.id, key, id, app.ctx.now())
  assert.equal((await count(address, 5)).recorded, 5)
  await db.query("update wallets set retired_at = clock() - interval '9 days 1 minute' where id = $1", [id])
  assert.deepEqual(await count(address, 5), { recorded: 0, unrecorded: 0 })
  await db.query('update wallets set proven_at = clock() where id = $1', [id])
  assert.equal((await count(address, 5)).recorded, 5)
})
