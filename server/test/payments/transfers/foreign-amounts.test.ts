/** Reserved amounts, where a stranger or another store would profit from what somebody sends by itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { heldMax, insertReserved } from '../../../src/payments/transfers/reserve.ts'
import { registerWallet } from '../../../src/stores/wallets.ts'
import { makeStore } from '../../support/app.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { encodeTransfer, newPayer, signAuthorization } from '../../support/chain/evm-payment.ts'
import { openClient } from '../../support/client.ts'
import { operator } from '../../support/operator.ts'
import { payTo } from '../../support/shop.ts'
import { openDriven } from '../adversity/driven.ts'
import { ledTo, post } from './support/hand-transfers.ts'

const shop = await openDriven()
const { chain } = shop
const { db } = shop.ctx
const buyer: Hex = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'
await chain.mint(buyer, 10n ** 12n)
const limits = { range: 9_999n, cent: 10_000n, heldMax, headAgeSecondsMax: 30 }

const wantedBy = (checkoutId: string, price: bigint) => ({
  checkoutId,
  network: chain.network.caip2,
  asset: chain.token.toLowerCase(),
  payTo: payTo.toLowerCase(),
  price,
})
const reserve = (checkoutId: string, price: bigint, ...amounts: bigint[]) =>
  insertReserved(
    db,
    wantedBy(checkoutId, price),
    amounts.map((amount) => amount - price),
    limits,
  )

async function sendPlain(units: bigint): Promise<Hex> {
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, units] })
  const hash = await chain.send({ to: chain.token, data, from: buyer })
  await shop.mine()
  return hash
}
const listed = async (key: string, hash: Hex) =>
  (await shop.request({ url: `/api/v1/payments?transaction=${hash}`, headers: { 'x-api-key': key } })).json()
    .data

/** Another store that has registered the same wallet, and has not proven it. */
async function openOther() {
  const other = await makeStore(shop.ctx, { mode: 'test', evmWallet: null })
  const wallet = { walletAddress: payTo, custodialType: 'NON_CUSTODIAL' } as const
  await registerWallet(shop.ctx, other.store.id, operator, { family: 'EVM', ...wallet }, shop.ctx.now())
  return { ...other, client: openClient(shop, other.key) }
}

test('no amount of whole cents is reserved, so a bare price pays nobody else’s order', async () => {
  await shop.idle()
  const honest = await shop.create('10.00')
  const strangers = await shop.create('9.995')
  assert(!(await reserve(strangers, 9_995_000n, 10_000_000n)))
  await sendPlain(10_000_000n)
  assert.deepEqual(
    [await shop.read(honest), await shop.read(strangers)].map(({ status }) => status),
    ['OPEN', 'OPEN'],
  )
  assert(await reserve(strangers, 9_995_000n, 10_000_000n, 10_000_001n), 'another amount is')
})

test('nor is the price of an open order, although it has more digits', async () => {
  await shop.idle()
  const honest = await shop.create('50.001234')
  const strangers = await shop.create('50.00')
  assert(!(await reserve(strangers, 50_000_000n, 50_001_234n)))
  assert(await reserve(strangers, 50_000_000n, 50_001_234n, 50_001_235n))
  assert.equal((await shop.read(honest)).status, 'OPEN')
})

test('a signed transfer for another service at a wallet marked as shared becomes a hint, and completes nothing', async () => {
  await shop.idle()
  await db.query('update wallets set shared_elsewhere = true where pay_to = lower($1)', [payTo])
  const id = await shop.create('29.995')
  assert(await reserve(id, 29_995_000n, 30_000_001n))
  const customer = newPayer()
  await chain.mint(customer.address, 30_000_001n)
  const signed = await signAuthorization({
    key: customer.key,
    domain: chain.domain,
    to: payTo,
    value: 30_000_001n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 250),
  })
  const [hash = assert.fail()] = await shop.submit([{ to: chain.token, data: encodeTransfer(signed) }])
  await shop.mine(12)
  assert.equal((await shop.read(id)).status, 'OPEN')
  const [found] = await listed(shop.key, hash)
  assert.equal(found.disposition, 'unmatched')
  assert.deepEqual(
    found.hints.map(({ checkoutId }: { checkoutId: string }) => checkoutId),
    [id],
  )
  await db.query('update wallets set shared_elsewhere = false')
})

test('open orders of another store with the same wallet close no price', async () => {
  await shop.idle()
  const { client } = await openOther()
  const model = await client.create('40.00', { expiresInSeconds: 604_800 })
  await db.query(
    `with made as (insert into checkouts select (json_populate_record(c, json_build_object('id', 'ch_hostile' || i))).*
       from checkouts c, generate_series(1, 5000) i where c.id = $1 returning id)
     insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
     select id, $2, $3, $4, 40000000 + 2 * substr(id, 11)::integer - 1, 0, clock() - interval '2 hours' from made`,
    [model, chain.network.caip2, chain.token.toLowerCase(), payTo.toLowerCase()],
  )
  await shop.idle()
  assert.equal(ledTo(await post(shop, `${await shop.create('40.00')}/transfer`)), '?way=send')
})

test('once a store has proven the wallet, others get nothing by amount: what they reserved before goes to the owner’s list', async () => {
  await shop.idle()
  const other = await openOther()
  const before = await other.client.create('19.995')
  assert(await reserve(before, 19_995_000n, 20_000_001n))
  await db.query('update wallets set proven_at = clock() where store_id = $1', [shop.store.id])
  const hash = await sendPlain(20_000_001n)
  await shop.mine(12)
  assert.equal((await other.client.read(before)).status, 'OPEN')
  assert.equal((await listed(shop.key, hash)).length, 1)
  assert.equal((await listed(other.key, hash)).length, 0)

  const after = await other.client.create('21.00')
  assert(!(await reserve(after, 21_000_000n, 21_000_001n)))
  assert.notEqual(ledTo(await post(shop, `${after}/transfer`)), '?way=send')
  assert.equal(ledTo(await post(shop, `${await shop.create('21.00')}/transfer`)), '?way=send')
})
