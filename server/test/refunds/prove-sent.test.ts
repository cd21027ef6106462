/** Refunds that the store pays by itself: which transaction proves which refund. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openRails } from '../../src/payments/rails.ts'
import { cancelRefund } from '../../src/refunds/cancel.ts'
import { readRefund } from '../../src/refunds/read.ts'
import { declareRefund, nameTransaction } from '../../src/refunds/self-sent.ts'
import { registerWallet } from '../../src/stores/wallets.ts'
import { makeStore } from '../support/app.ts'
import { fundedKey, multicallAbi, multicallAddress, tokenAbi } from '../support/chain/evm.ts'
import { operator } from '../support/operator.ts'
import { openShop, payTo } from '../support/shop.ts'
import { until } from '../support/watch.ts'
import { assertRefuses, key, member, proveWallets, receiveByHand, refund } from './support/refunds.ts'

/** On this chain a block is final with eight blocks on top of it. */
const shop = await openShop({ blockTimeSeconds: null })
const { ctx, chain } = shop
const storeId = shop.store.id
const network = chain.network.caip2
const rails = openRails(ctx)
/** An account of the chain that the store also holds, and one that it does not. */
const treasury = privateKeyToAccount(fundedKey(5)).address
const stranger = privateKeyToAccount(fundedKey(6)).address
const buyer = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'

before(async () => {
  const wallet = { walletAddress: treasury, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, storeId, operator, { family: 'EVM', ...wallet }, ctx.now())
  await proveWallets(shop, storeId)
  await chain.mint([treasury, stranger], 1_000_000_000n)
})

/** A refund of a payment that came by plain transfer, with the buyer's address named by a member. */
async function ask(amount: bigint, recipient: string = buyer) {
  const paymentId = await receiveByHand(shop, { network, asset: chain.token, payTo, amount: 100_000_000n })
  return await refund(shop, storeId, paymentId, { amount, recipient, way: 'self-sent' })
}

const transfer = (to: string, value: bigint): Hex =>
  encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to as Hex, value] })

/** Sends a plain transfer and mines it. Returns its transaction. */
async function send(to: string, value: bigint, from: Hex = treasury): Promise<Hex> {
  const { transactionHash, status } = await chain.perform({
    to: chain.token,
    data: transfer(to, value),
    from,
  })
  assert.equal(status, 'success')
  return transactionHash
}

const name = async (id: string, transaction: string) =>
  await nameTransaction(ctx, rails, storeId, id, { transaction, actor: key })

/** Makes everything so far final, also in the follower's eyes. */
async function finish(): Promise<void> {
  const number = await chain.client.getBlockNumber()
  await chain.mine(12)
  await until(async () => {
    const [row] = await ctx.db.query<{ head: string; final: string }>(
      'select head_number as head, finalized_number as final from followers where network = $1',
      [network],
    )
    if (row && BigInt(row.final) >= number) return true
    if (row && BigInt(row.head) === (await chain.client.getBlockNumber())) await chain.mine()
    return false
  }, 'finality')
}

async function judged(id: string, of = storeId) {
  return await until(async () => {
    const found = await readRefund(ctx, of, id)
    return found.status !== 'SENT' && found
  }, 'a verdict')
}

async function proves(id: string, transaction: string): Promise<void> {
  await name(id, transaction)
  assert.equal((await judged(id)).status, 'COMPLETED')
}

async function refuses(id: string, transaction: string, words: RegExp): Promise<void> {
  assert.equal((await name(id, transaction)).status, 'SENT')
  const found = await judged(id)
  assert.equal(found.status, 'REQUESTED')
  assert.match(found.failure ?? '', words)
  assert.equal(found.transaction, null)
}

test('a plain transfer of the exact amount from a proven wallet completes the refund, only once it is final', async () => {
  const { id } = await ask(5_000_000n)
  const transaction = await send(buyer, 5_000_000n)
  const named = await name(id, transaction.toUpperCase().replace('0X', '0x'))
  assert.equal(named.status, 'SENT')
  assert.equal(named.transaction, transaction)
  await assertRefuses(cancelRefund(ctx, storeId, member, id, ctx.now()), 'refund_in_progress')
  await assertRefuses(declareRefund(ctx, storeId, member, id, 'by bank'), 'refund_in_progress')
  await finish()
  const proven = await judged(id)
  assert.equal(proven.status, 'COMPLETED')
  assert.equal(proven.finality, 'finalized')
  assert.equal(proven.transaction, transaction)
  await assertRefuses(name(id, transaction), 'refund_in_progress', /COMPLETED/)
  const events = await ctx.db.query('select 1 from events where type = $1 and store_id = $2', [
    'refund.completed',
    storeId,
  ])
  assert.equal(events.length, 1)
})

test('what does not prove a refund says why, and another transaction can be named', async () => {
  const old = await send(buyer, 7_000_000n)
  await chain.mine()
  await chain.setNextBlockTimestamp((await chain.time()) + 5n)
  await chain.mine()
  const later = new Date(Number.parseInt(`${(await chain.time()) + 2n}`, 10) * 1_000)
  shop.clock.now = later
  const { id } = await ask(7_000_000n)
  shop.clock.now = null
  await chain.setNextBlockTimestamp(BigInt(later.getTime()) / 1_000n + 1n)
  const wrong = [
    [old, /older than the refund/],
    [await send(stranger, 7_000_000n), /did not pay the refund’s recipient/],
    [await send(buyer, 6_999_999n), /not the refund’s amount/],
    [await send(buyer, 7_000_000n, stranger), /not proven/],
    [
      (await chain.perform({ to: multicallAddress, data: '0x', from: treasury })).transactionHash,
      /moved none/,
    ],
  ] as const
  const right = await send(buyer, 7_000_000n)
  await finish()
  for (const [transaction, words] of wrong) await refuses(id, transaction, words)
  await proves(id, right)
})

test('one transfer proves one refund, of whatever store, and a transaction with two equal transfers proves two', async () => {
  const first = await ask(3_000_000n)
  const second = await ask(3_000_000n)
  const third = await ask(3_000_000n)
  const neighbour = await makeStore(ctx, { mode: 'test', evmWallet: treasury })
  await proveWallets(shop, neighbour.store.id)
  const paymentId = await receiveByHand(shop, { network, asset: chain.token, payTo: treasury })
  const foreign = await refund(shop, neighbour.store.id, paymentId, {
    amount: 3_000_000n,
    recipient: buyer,
    way: 'self-sent',
  })
  // Money from a contract that the store has proven: Multicall3 stands for a wallet that pays many at once.
  const wallet = { walletAddress: multicallAddress, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(ctx, storeId, operator, { family: 'EVM', ...wallet }, ctx.now())
  await proveWallets(shop, storeId)
  await chain.mint(multicallAddress, 6_000_000n)
  const call = { target: chain.token, allowFailure: false, callData: transfer(buyer, 3_000_000n) }
  const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [[call, call]] })
  const { transactionHash } = await chain.perform({ to: multicallAddress, data, from: stranger })
  const taken = await send(buyer, 3_000_000n)
  await finish()
  await Promise.all([name(first.id, transactionHash), name(second.id, transactionHash)])
  assert.equal((await judged(first.id)).status, 'COMPLETED')
  assert.equal((await judged(second.id)).status, 'COMPLETED')
  await refuses(third.id, transactionHash, /proves another refund/)
  await proves(third.id, taken)
  await nameTransaction(ctx, rails, neighbour.store.id, foreign.id, { transaction: taken, actor: key })
  assert.match((await judged(foreign.id, neighbour.store.id)).failure ?? '', /proves another refund/)
})

test('a payment to another store is no refund, and neither is a transfer by signed authorization', async () => {
  const shopNextDoor = '0x976EA74026E726554dB657fA54763abd0C3a0aa9'
  await makeStore(ctx, { mode: 'test', evmWallet: shopNextDoor })
  const { id } = await ask(2_000_000n, shopNextDoor)
  const received = await send(shopNextDoor, 2_000_000n)
  const checkoutId = await shop.create('1.00')
  const paid = shop.pay(checkoutId, await shop.sign(checkoutId, await shop.fund()))
  const settled = await until(async () => {
    await chain.mine()
    return (await shop.read(checkoutId)).payment
  }, 'a payment')
  await paid
  await finish()
  await refuses(id, received, /payment to a store/)
  const { id: signed } = await ask(1_000_000n)
  await refuses(signed, settled.transaction, /signed authorization/)
})

test('a declared refund counts for good, is never completed, and cannot be taken back', async () => {
  const { id, paymentId } = await ask(60_000_000n)
  await assertRefuses(declareRefund(ctx, storeId, member, id, ''), 'invalid_request', /reference/)
  await assertRefuses(declareRefund(ctx, storeId, member, id, 'x'.repeat(501)), 'invalid_request')
  const declared = await declareRefund(ctx, storeId, member, id, 'exchange withdrawal 4711')
  assert.equal(declared.status, 'DECLARED')
  assert.equal(declared.declared, 'exchange withdrawal 4711')
  assert.equal((await declareRefund(ctx, storeId, member, id, 'exchange withdrawal 4711')).status, 'DECLARED')
  await assertRefuses(declareRefund(ctx, storeId, member, id, 'another'), 'refund_in_progress', /DECLARED/)
  await assertRefuses(name(id, await send(buyer, 60_000_000n)), 'refund_in_progress', /DECLARED/)
  await assertRefuses(cancelRefund(ctx, storeId, member, id, ctx.now()), 'refund_in_progress')
  await assertRefuses(
    refund(shop, storeId, paymentId, { amount: 40_000_001n, recipient: buyer, way: 'self-sent' }),
    'refund_exceeds_payment',
    /40\.00 is left/,
  )
})

test('only a refund of this way, with a recipient, takes a transaction, and only one of its network', async () => {
  const { id } = await ask(1_000_000n)
  await assertRefuses(name(id, '0x12'), 'invalid_request', /hash of a transaction/)
  const paymentId = await receiveByHand(shop, { network, asset: chain.token, payTo })
  const nobody = await refund(shop, storeId, paymentId, { amount: 1_000_000n, way: 'self-sent' })
  await assertRefuses(name(nobody.id, `0x${'ab'.repeat(32)}`), 'invalid_request', /no recipient yet/)
  const signed = await refund(shop, storeId, paymentId, { amount: 1_000_000n, recipient: buyer })
  await assertRefuses(name(signed.id, `0x${'ab'.repeat(32)}`), 'invalid_request', /way is "signed"/)
  await assertRefuses(declareRefund(ctx, storeId, key, signed.id, 'x'), 'invalid_request', /way is "signed"/)
  await cancelRefund(ctx, storeId, member, id, ctx.now())
  await assertRefuses(name(id, `0x${'ab'.repeat(32)}`), 'refund_canceled')
})
