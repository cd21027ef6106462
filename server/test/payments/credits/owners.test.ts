/** Who sees money that matches no checkout, who is told of it, and who decides about it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Payment } from '@farthing/sdk'
import type { Address, Hex } from 'viem'
import { assignWaitingSequences } from '../../../src/events/assign-sequence.ts'
import { registerWallet, retireWallet } from '../../../src/stores/wallets.ts'
import { makeStore } from '../../support/app.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { operator } from '../../support/operator.ts'
import { type Answer, until } from '../../support/watch.ts'
import {
  buyers,
  call,
  ledTo,
  openHandShop,
  paymentBy,
  post,
  transfer,
} from '../transfers/support/hand-transfers.ts'

const shop = await openHandShop()
const { ctx } = shop
type Neighbour = { readonly id: `st_${string}`; readonly key: string }

async function openNeighbour(mode: 'live' | 'test' = 'test'): Promise<Neighbour> {
  const { store, key } = await makeStore(ctx, { mode, evmWallet: null })
  return { id: store.id, key }
}

async function register({ id }: Neighbour, walletAddress: Address) {
  const input = { walletAddress, custodialType: 'NON_CUSTODIAL' } as const
  return await registerWallet(ctx, id, operator, { family: 'EVM', ...input }, ctx.now())
}

/** What a signature does, without one. */
async function prove({ id }: Neighbour, address: Address): Promise<void> {
  const proven = await ctx.db.query(
    'update wallets set proven_at = clock() where store_id = $1 and address = $2 returning id',
    [id, address],
  )
  assert.equal(proven.length, 1)
}

const see = ({ key }: Neighbour, hash: Hex) => paymentBy({ ...shop, key }, hash)
const decide = (
  { key }: Neighbour,
  { id }: Pick<Payment, 'id'>,
  verb: string,
  body?: object,
): Promise<Answer> => call({ ...shop, key }, 'POST', `/${id}/${verb}`, body)

async function seen(hash: Hex, ...stores: Neighbour[]): Promise<boolean[]> {
  return await Promise.all(stores.map(async (store) => Boolean(await see(store, hash))))
}

/** The events of a store about this transaction. */
async function told({ key }: Neighbour, hash: Hex): Promise<Event[]> {
  while (await assignWaitingSequences(ctx));
  const answer = await shop.request({
    method: 'GET',
    url: '/api/v1/events?limit=100&type=payment.unmatched',
    headers: { 'x-api-key': key },
  })
  const { data } = answer.json() as { data: Event[] }
  return data.filter((event) => 'payment' in event.data && event.data.payment.transaction === hash)
}

async function createCheckout({ key }: Neighbour): Promise<string> {
  const answer = await shop.request({
    method: 'POST',
    url: '/api/v1/checkouts',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    payload: JSON.stringify({ orderId: 'x', priceAmount: '1', priceCurrency: 'USD' }),
  })
  assert.equal(answer.statusCode, 201, answer.body)
  return (answer.json() as { id: string }).id
}

test('stores that share a wallet all see and hear of its money, and none decides until one has proven the wallet', async () => {
  const wallet = newPayer().address
  const [one, two] = [await openNeighbour(), await openNeighbour()]
  await register(one, wallet)
  await register(two, wallet)
  const hash = await transfer(shop, 7_000_001n, buyers[0], wallet)
  assert.deepEqual(await seen(hash, one, two), [true, true])
  await shop.chain.mine(4)
  await until(async () => (await told(one, hash)).length > 0, 'the payment is announced')
  assert.deepEqual([(await told(one, hash)).length, (await told(two, hash)).length], [1, 1])

  const payment = await see(one, hash)
  assert(payment)
  const checkoutId = await createCheckout(one)
  for (const [verb, body] of [['accept', { checkoutId }], ['dismiss']] as const) {
    const refused = await decide(one, payment, verb, body)
    assert.equal(refused.statusCode, 409, refused.body)
    assert.equal((refused.json() as { code: string }).code, 'wallet_unproven')
  }
  await prove(one, wallet)
  assert.deepEqual(await seen(hash, one, two), [true, false])
  assert.equal(
    (await decide(two, payment, 'accept', { checkoutId: await createCheckout(two) })).statusCode,
    404,
  )
  const accepted = await decide(one, payment, 'accept', { checkoutId })
  assert.equal(accepted.statusCode, 200, accepted.body)
  assert.deepEqual(await seen(hash, one, two), [true, false])
  assert.equal((await see(one, hash))?.checkoutId, checkoutId)
})

test('of several stores that have proven a wallet, the first to accept a payment has it', async () => {
  const wallet = newPayer().address
  const [one, two, late] = [await openNeighbour(), await openNeighbour(), await openNeighbour()]
  for (const store of [one, two]) {
    await register(store, wallet)
    await prove(store, wallet)
  }
  const hash = await transfer(shop, 7_000_002n, buyers[0], wallet)
  await register(late, wallet)
  assert.deepEqual(await seen(hash, one, two, late), [true, true, false])
  const payment = await see(one, hash)
  assert(payment)
  const answers = await Promise.all(
    [one, two].map(async (store) =>
      decide(store, payment, 'accept', { checkoutId: await createCheckout(store) }),
    ),
  )
  assert.deepEqual(answers.map(({ statusCode }) => statusCode).sort(), [200, 404])
})

test('a wallet that nobody has proven: who comes later does not see earlier money, who left does not see later money', async () => {
  const wallet = newPayer().address
  const [owner, early, late] = [await openNeighbour(), await openNeighbour(), await openNeighbour()]
  await register(owner, wallet)
  const { id } = await register(early, wallet)
  const first = await transfer(shop, 7_000_003n, buyers[0], wallet)
  await retireWallet(ctx, early.id, operator, id, ctx.now())
  const second = await transfer(shop, 7_000_004n, buyers[0], wallet)
  await register(late, wallet)
  assert.deepEqual(await seen(first, owner, early, late), [true, true, false])
  assert.deepEqual(await seen(second, owner, early, late), [true, false, false])
  const payment = await see(owner, second)
  assert(payment)
  assert.equal((await decide(owner, payment, 'dismiss')).statusCode, 200, 'alone, it may decide')
})

test('money to a wallet that its only store has retired still shows up there', async () => {
  const wallet = newPayer().address
  const owner = await openNeighbour()
  const { id } = await register(owner, wallet)
  await retireWallet(ctx, owner.id, operator, id, ctx.now())
  const hash = await transfer(shop, 7_000_005n, buyers[0], wallet)
  assert.deepEqual(await seen(hash, owner), [true])
  // Another store that comes later has no part in it, unless it proves the wallet.
  const late = await openNeighbour()
  await register(late, wallet)
  assert.deepEqual(await seen(hash, owner, late), [true, false])
  await prove(late, wallet)
  assert.deepEqual(await seen(hash, owner, late), [false, true])
})

test('a live store neither sees money on a test network nor takes it from a test store', async () => {
  const wallet = newPayer().address
  const [owner, live] = [await openNeighbour(), await openNeighbour('live')]
  await register(live, wallet)
  await prove(live, wallet)
  await register(owner, wallet)
  const hash = await transfer(shop, 7_000_006n, buyers[0], wallet)
  assert.deepEqual(await seen(hash, owner, live), [true, false])
  const payment = await see(owner, hash)
  assert(payment)
  assert.equal((await decide(live, payment, 'dismiss')).statusCode, 404)
  assert.equal((await decide(owner, payment, 'dismiss')).statusCode, 200)
})

test('a hint names a checkout to that checkout’s store only', async () => {
  const wallet = newPayer().address
  const [one, two] = [await openNeighbour(), await openNeighbour()]
  await register(one, wallet)
  await register(two, wallet)
  const checkoutId = await createCheckout(one)
  const hash = await transfer(shop, 500_000n, buyers[0], wallet)
  ledTo(await post(shop, `${checkoutId}/transaction`, { hash }))
  await until(async () => ((await see(one, hash))?.hints.length ?? 0) > 0, 'the hint is written')
  assert.deepEqual((await see(one, hash))?.hints, [{ checkoutId, disposition: 'underpaid' }])
  assert.deepEqual((await see(two, hash))?.hints, [])
})
