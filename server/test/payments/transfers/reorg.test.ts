/** Reorganisations that affect a transfer sent by hand. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event } from '@farthing/sdk'
import { type Hex, keccak256 } from 'viem'
import { assertProblem, eventsOf, until, untilEvent, untilRead, untilStatus } from '../../support/watch.ts'
import { checkInvariants } from '../adversity/invariants.ts'
import {
  buyers,
  call,
  openHandShop,
  paymentBy,
  reserve,
  sendUnits,
  transfer,
} from './support/hand-transfers.ts'

/** On this chain, three seconds are enough to prove that something did not happen. */
const shop = await openHandShop()
const { chain } = shop

async function story(id: string): Promise<string[]> {
  return (await eventsOf(shop, id)).map(({ type, checkoutVersion }) => `${checkoutVersion} ${type}`)
}

function paymentOf(event: Event) {
  assert('payment' in event.data)
  return event.data.payment
}

/** Pays by hand and has the chain take it back. Returns the raw transaction, which its wallet still has. */
async function takeBack(
  id: string,
  from: (typeof buyers)[number],
): Promise<{ hash: Hex; raw: Hex; amount: bigint }> {
  const amount = await reserve(shop, id)
  const hash = await transfer(shop, amount, from)
  await untilStatus(shop, id, 'COMPLETED')
  const request = chain.client.request as (call: { method: string; params: unknown[] }) => Promise<unknown>
  const raw = (await request({ method: 'eth_getRawTransactionByHash', params: [hash] })) as Hex
  await chain.reorg(1)
  await untilEvent(shop, id, 'payment.reorged')
  assert.equal((await shop.read(id)).status, 'PROCESSING')
  assertProblem(await shop.pay(id), 409, 'payment_in_progress')
  return { hash, raw, amount }
}

test('a transfer that the chain takes back and includes again is the same payment and completes the checkout again', async () => {
  const id = await shop.create()
  const { hash, amount } = await takeBack(id, buyers[0])
  // The same account nonce and the same call make the same transaction.
  const again = await sendUnits(shop, amount, buyers[0])
  await chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  const reorged = paymentOf(await untilEvent(shop, id, 'payment.reorged'))
  if (again === hash) assert.equal((await paymentBy(shop, again))?.id, reorged.id)
  assert.equal((await shop.read(id)).payment.transaction, again)
  assert.deepEqual(await story(id), [
    '1 checkout.created',
    '2 checkout.completed',
    '3 checkout.processing',
    '3 payment.reorged',
    '4 checkout.completed',
  ])
})

test('a transfer is gone once its sender’s nonce is used for something else, three seconds deep; a later one still counts', async () => {
  const id = await shop.create()
  const { amount } = await takeBack(id, buyers[1])
  await chain.mine(4)
  await untilRead(shop)
  assert.equal(
    (await shop.read(id)).status,
    'PROCESSING',
    'given up although its nonce is unused and it may come back',
  )
  await transfer(shop, 1n, buyers[1], buyers[0])
  await chain.pass(chain.network.negativeSeconds)
  const reversed = paymentOf(await untilEvent(shop, id, 'payment.reversed'))
  assert.equal(reversed.finality, 'reversed')
  await untilStatus(shop, id, 'OPEN')
  assert.deepEqual(await story(id), [
    '1 checkout.created',
    '2 checkout.completed',
    '3 checkout.processing',
    '3 payment.reorged',
    '4 checkout.reopened',
    '4 payment.reversed',
  ])
  const listed = await paymentBy(shop, reversed.transaction as Hex)
  assert.equal(listed?.finality, 'reversed')
  assertProblem(await call(shop, 'POST', `/${listed?.id}/accept`, {}), 409, 'payment_not_open')
  const later = await transfer(shop, amount, buyers[1])
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, later)
})

test('a transfer is gone after half an hour without it; if it lands after all, it completes the checkout', async () => {
  const id = await shop.create()
  const { hash, raw } = await takeBack(id, buyers[2])
  await chain.mine(4)
  await untilRead(shop)
  await shop.ctx.db.query(
    "update credits set orphaned_at = clock() - interval '31 minutes' where transaction_hash = $1",
    [hash],
  )
  await untilEvent(shop, id, 'payment.reversed')
  await untilStatus(shop, id, 'OPEN')
  assert.equal(keccak256(raw), hash)
  await chain.client.sendRawTransaction({ serializedTransaction: raw })
  await chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, hash)
})

test('a transfer taken back twice is reported as reversed once', async () => {
  const id = await shop.create()
  const { hash, raw } = await takeBack(id, buyers[2])
  await chain.client.sendRawTransaction({ serializedTransaction: raw })
  await chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  await chain.reorg(1)
  await untilStatus(shop, id, 'PROCESSING')
  await chain.mine(4)
  await untilRead(shop)
  await shop.ctx.db.query(
    "update credits set orphaned_at = clock() - interval '31 minutes' where transaction_hash = $1",
    [hash],
  )
  await untilEvent(shop, id, 'payment.reversed')
  await untilStatus(shop, id, 'OPEN')
  assert.equal((await story(id)).filter((line) => line.endsWith('payment.reversed')).length, 1)
})

test('the store’s decision survives a reorganisation: an accepted payment that comes back completes its checkout again', async () => {
  const id = await shop.create()
  const hash = await transfer(shop, 999_000n, buyers[0])
  const request = chain.client.request as (call: { method: string; params: unknown[] }) => Promise<unknown>
  const raw = (await request({ method: 'eth_getRawTransactionByHash', params: [hash] })) as Hex
  const payment = await paymentBy(shop, hash)
  assert.equal((await call(shop, 'POST', `/${payment?.id}/accept`, { checkoutId: id })).statusCode, 200)
  await chain.reorg(1)
  await untilStatus(shop, id, 'PROCESSING')
  await chain.client.sendRawTransaction({ serializedTransaction: raw })
  await chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  const again = await until(async () => await paymentBy(shop, hash), 'the payment')
  assert.deepEqual([again.id, again.checkoutId, again.acceptedAt !== null], [payment?.id, id, true])
})

test('after all this, the books match the chain', async () => {
  await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
})
