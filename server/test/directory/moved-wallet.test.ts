/** A wallet that moved to another cell: what its former store may still do with money that comes there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Payment, Wallet } from '@farthing/sdk'
import { applyDecisions } from '../../src/checkouts/payments/apply-decisions.ts'
import { openUses } from '../../src/checkouts/uses.ts'
import { walletOwnership } from '../../src/directory/directory.ts'
import { listOwners } from '../../src/directory/rows.ts'
import { newId } from '../../src/ids.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { type Answer, assertProblem, openStore, type StoreClient } from '../support/store.ts'
import { until } from '../support/until.ts'
import { aDayLater, openCell, openDirectory, register, releaseIn } from './support/cells.ts'

const directory = await openDirectory()
const a = await openCell(directory.url, '0a')
const b = await openCell(directory.url, '0b')
const newHash = () => `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`

/** Money that matches no checkout, as the follower writes it for every address that a store has ever registered. */
async function receive(address: string): Promise<string> {
  const id = newId('pay', '0a', new Date())
  await a.ctx.db.query(
    `insert into credits (network, block_hash, log_index, payment_id, block_number, block_time, transaction_hash, position,
       asset, payer, nonce, pay_to, amount, disposition, first_seen_block_time, included_at, safe_at, finalized_at,
       witnessed_at, counts)
     values ('eip155:8453', $1, 0, $2, 9, clock(), $3, 0, '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
       '0x15d34aaf54267db7d7c367839aaf71a00a2c6a65', $4, $5, 25000000, 'unmatched', clock(), clock(), clock(), clock(),
       clock(), true)`,
    [newHash(), id, newHash(), newHash(), address.toLowerCase()],
  )
  return id
}

async function openWith(address: string): Promise<StoreClient> {
  const shop = await openStore(a, { evmWallet: address })
  await a.ctx.db.query('update wallets set proven_at = clock() where store_id = $1', [shop.id])
  return shop
}

async function retire(shop: StoreClient): Promise<void> {
  const { data } = (await shop.call('GET', `/api/v1/stores/${shop.id}/wallets`)).json<{ data: Wallet[] }>()
  await shop.call('POST', `/api/v1/stores/${shop.id}/wallets/${data[0]?.id}/retire`)
}

const inADay = aDayLater(a)
const walletOf = (address: string) => walletOwnership('live', 'EVM', address.toLowerCase())

/** A day after it was retired. */
async function release(address: string, uses = openUses(inADay.ctx.db)): Promise<void> {
  assert.deepEqual(await releaseIn(inADay, [walletOf(address)], uses), [])
  // What comes from then on comes at the present time of the other clock.
  await a.ctx.db.query('update wallets set released_at = clock() where released_at > clock()')
}

/** Asks, and applies decisions as `work` does until there is an answer. */
async function dismiss(shop: StoreClient, id: string): Promise<Answer> {
  let isAnswered = false
  const asked = shop.call('POST', `/api/v1/payments/${id}/dismiss`).finally(() => {
    isAnswered = true
  })
  await until('the decision is answered', async () => {
    await applyDecisions(a.ctx, a.ctx.now())
    return isAnswered
  })
  return await asked
}

const refund = (shop: StoreClient, id: string) =>
  shop.call('POST', `/api/v1/payments/${id}/refunds`, {}, { 'idempotency-key': id })
const owner = async (address: string) => (await listOwners(directory.db, [walletOf(address)]))[0]?.cell

test('of money that comes after its cell released the wallet, a store sees all and decides nothing', async () => {
  const address = newPayer().address
  const shop = await openWith(address)
  const [first, second] = [await receive(address), await receive(address)]
  await retire(shop)
  const retired = await receive(address)
  assert.equal((await dismiss(shop, first)).statusCode, 200)
  await release(address)
  assert.equal(await owner(address), undefined)
  await openStore(b, { evmWallet: address })

  const late = await receive(address)
  const { data } = (await shop.call('GET', '/api/v1/payments')).json<{ data: Payment[] }>()
  assert.deepEqual(data.map(({ id }) => id).sort(), [first, second, retired, late].sort())
  const problem = assertProblem(await dismiss(shop, late), 409, 'wallet_unproven')
  assert.match(problem.detail, /released to other cells before the money came/)
  assert.match(assertProblem(await refund(shop, late), 409, 'wallet_unproven').detail, /released/)
  for (const id of [second, retired])
    assert.equal((await dismiss(shop, id)).statusCode, 200, 'it came before')
})

test('a store that registers the wallet again decides about what comes from then on', async () => {
  const address = newPayer().address
  const shop = await openWith(address)
  await retire(shop)
  await release(address)
  const between = await receive(address)
  const again = await openStore(a, { evmWallet: address })
  const since = await receive(address)
  assert.equal((await dismiss(again, since)).statusCode, 200)
  assertProblem(await dismiss(shop, between), 409, 'wallet_unproven')
})

test('a store that registers the wallet again, but may not use it, decides nothing about what comes to its new cell', async () => {
  const address = newPayer().address
  const shop = await openWith(address)
  await retire(shop)
  await release(address)
  const again = (await register(shop, address)).json<Wallet>()
  assert.equal(again.proofRequired, true)
  await openStore(b, { evmWallet: address })
  const late = await receive(address)
  const { data } = (await shop.call('GET', '/api/v1/payments')).json<{ data: Payment[] }>()
  assert.deepEqual(
    data.map(({ id }) => id),
    [late],
  )
  assertProblem(await dismiss(shop, late), 409, 'wallet_unproven')
  assertProblem(await refund(shop, late), 409, 'wallet_unproven')
})

test('a wallet that its store may not use gives it no say, even if it was proven after it was retired', async () => {
  const address = newPayer().address
  const shop = await openStore(a)
  const asked = (await register(shop, address)).json<Wallet>()
  await openStore(b, { evmWallet: address })
  await a.ctx.db.query('update wallets set retired_at = clock(), proven_at = clock() where id = $1', [
    asked.id,
  ])
  const late = await receive(address)
  const { data } = (await shop.call('GET', '/api/v1/payments')).json<{ data: Payment[] }>()
  assert.deepEqual(data, [])
  assertProblem(await dismiss(shop, late), 404, 'not_found')
})

test('a wallet that is put to use again while it is about to be released is its store’s as before', async () => {
  const address = newPayer().address
  const shop = await openWith(address)
  await retire(shop)
  const uses = openUses(inADay.ctx.db)
  const interrupted: typeof uses = {
    ...uses,
    async writeReleased(some) {
      await uses.writeReleased(some)
      assert.equal((await register(shop, address)).statusCode, 201)
    },
  }
  assert.deepEqual(await releaseIn(inADay, [walletOf(address)], interrupted), [walletOf(address)])
  assert.equal(await owner(address), '0a')
  assert.equal((await dismiss(shop, await receive(address))).statusCode, 200)
})
