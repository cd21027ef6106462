/** Who may receive a refund, with a token that refuses some. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { batcher } from '../../src/chains/evm/batcher.ts'
import { scopeToStore } from '../../src/database/scope.ts'
import { insertSettler } from '../../src/payments/settlers/rows.ts'
import { registerWallet } from '../../src/stores/wallets.ts'
import { tokenAbi } from '../support/chain/evm.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { operator } from '../support/operator.ts'
import { openShop, payTo } from '../support/shop.ts'
import { assertRefuses, key, proveWallets, receiveByHand, refund } from './support/refunds.ts'

const shop = await openShop({ worker: false })
const { chain } = shop
const storeId = shop.store.id
const network = chain.network.caip2
await proveWallets(shop, storeId)
/** The console asks as a role of its own, which sees one store. */
const asConsole = {
  ...shop,
  ctx: { ...shop.ctx, db: scopeToStore(openAs('console', shop.databaseUrl), storeId) },
}

const received = (change: { payer?: string; nonce?: string } = {}) =>
  receiveByHand(shop, { network, asset: chain.token, payTo, ...change })

const block = async (account: string) =>
  await chain.perform({
    to: chain.token,
    data: encodeFunctionData({ abi: tokenAbi, functionName: 'blacklist', args: [account as Hex] }),
  })

test('whoever signed the payment receives by default, and nobody does if it was a plain transfer', async () => {
  const payer = newPayer().address
  const signed = await refund(shop, storeId, await received({ payer, nonce: `0x${'1'.repeat(64)}` }), {}, key)
  assert.equal(signed.recipient, payer)
  const plain = await refund(shop, storeId, await received({ payer }), {}, key)
  assert.equal(plain.recipient, null)
})

test('an address that is no wallet’s, the store’s own, ours, or blocked by the token is refused in words', async () => {
  const retired = newPayer().address
  const wallet = { walletAddress: retired, custodialType: 'NON_CUSTODIAL' } as const
  const { id } = await registerWallet(
    shop.ctx,
    storeId,
    operator,
    { family: 'EVM', ...wallet },
    shop.ctx.now(),
  )
  await shop.ctx.db.query('update wallets set retired_at = clock() where id = $1', [id])
  const settler = newPayer().address
  await insertSettler(shop.ctx.db, network, settler.toLowerCase(), 0)
  const blocked = newPayer().address
  await block(blocked)
  const paymentId = await received()
  const right = newPayer().address
  for (const [recipient, words] of [
    ['0x12', /40 hexadecimal digits/],
    [right.replace(/[a-f](?=[^a-f]*$)/, (letter) => letter.toUpperCase()), /checksum/],
    [`0x${'0'.repeat(40)}`, /zero address/],
    [chain.token, /address of a token/],
    [batcher, /address of a contract/],
    [payTo.toLowerCase(), /wallet of the store itself/],
    [retired, /wallet of the store itself/],
    [settler, /pays network fees/],
    [blocked, /issuer has blocked/],
    ['8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR', /40 hexadecimal digits/],
  ] as const) {
    await assertRefuses(refund(shop, storeId, paymentId, { recipient }), 'invalid_request', words)
    await assertRefuses(refund(asConsole, storeId, paymentId, { recipient }), 'invalid_request', words)
  }
  assert.equal((await refund(shop, storeId, paymentId, { recipient: ` ${right} ` })).recipient, right)
})

test('a payer whom the token has blocked since is refused too, and a key cannot choose another', async () => {
  const payer = newPayer().address
  const paymentId = await received({ payer, nonce: `0x${'2'.repeat(64)}` })
  await block(payer)
  await assertRefuses(refund(shop, storeId, paymentId, {}, key), 'invalid_request', /issuer has blocked/)
  const another = { recipient: newPayer().address }
  await assertRefuses(refund(shop, storeId, paymentId, another, key), 'recipient_needs_member')
})

test('while no node answers, nothing is created', async () => {
  const paymentId = await received({ nonce: `0x${'3'.repeat(64)}` })
  await chain.stop()
  await assertRefuses(refund(shop, storeId, paymentId, {}, key), 'unavailable', /Nothing was changed/)
  const made = await shop.ctx.db.query('select 1 from refunds where payment_id = $1', [paymentId])
  assert.equal(made.length, 0)
})
