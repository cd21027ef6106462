/** What settlements cost: what a settler must hold, who is told when it cannot pay, and what a store may spend. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, encodeFunctionData, pad, parseAbi, toHex } from 'viem'
import { stepLane } from '../../../src/payments/evm/lane.ts'
import { openRails } from '../../../src/payments/rails.ts'
import { openReadiness } from '../../../src/payments/settlers/readiness.ts'
import { describeRunway, measureRunways, readRunways } from '../../../src/payments/settlers/runway.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { assertProblem } from '../../support/watch.ts'
import { presentAny } from '../adversity/attacks/support/present.ts'
import { openDriven, type Prepared } from '../adversity/driven.ts'

/** Base charges for data, and its money counts. */
const shop = await openDriven({
  network: 'BASE_SEPOLIA',
  settings: { STORE_GAS_PER_DAY: '0.02', LOG_LEVEL: 'silent' },
})
const { client, network } = shop.chain
const { db } = shop.ctx
const [lane = assert.fail()] = shop.engine.lanes
const { address } = lane.signer
const rails = openRails(shop.ctx)
const rail = rails.get(network.caip2) ?? assert.fail()
const plenty = 10n ** 22n

async function setBalance(value: bigint): Promise<void> {
  await client.setBalance({ address, value })
  await db.query('update settlers set balance_at = null')
  await shop.send()
}

/** The stand-in answers every question with its argument times this. */
async function setDataFee(weiPerUnit: bigint): Promise<void> {
  const value = pad(toHex(weiPerUnit))
  await client.setStorageAt({ address: network.gasPriceOracle ?? assert.fail(), index: 0, value })
  await db.query('update settlers set balance_at = null')
  await shop.idle()
}

const whyNot = () => openReadiness(shop.ctx, rails)(network.caip2)

async function readSpent(): Promise<{ spent: bigint; payments: number; failures: number }> {
  const [row] = await db.query<{ spent: string; payments: number; failures: number }>(
    'select spent, payments::integer as payments, failures::integer as failures from store_gas',
  )
  return { ...(row ?? { payments: 0, failures: 0 }), spent: BigInt(row?.spent ?? 0) }
}

/** Pays and returns once the payment is settled. */
async function settle(payment: Prepared): Promise<void> {
  const [answer] = await shop.present([payment])
  await shop.send()
  await shop.mine()
  assert.equal((await answer)?.statusCode, 200)
}

test('a settler is ready only if it can pay a full batch up front, its data included', async () => {
  await shop.idle()
  assert.equal(await whyNot(), null)
  const { baseFeePerGas } = await client.getBlock()
  const needed = rail.reserveCost(baseFeePerGas ?? assert.fail(), 0n, 0) ?? assert.fail()
  await setBalance(needed - 1n)
  assert.match(String(await whyNot()), /enough money/)
  await setBalance(needed)
  assert.equal(await whyNot(), null)
  await setDataFee(10n ** 9n)
  assert.match(String(await whyNot()), /enough money/)
  await setBalance(plenty)
  assert.equal(await whyNot(), null)
  await setDataFee(0n)
})

test('a settler that is just ready pays for everything that is claimed, however it is batched', async () => {
  const payments = await shop.prepare(30)
  const { baseFeePerGas } = await client.getBlock()
  const single = (200_000n * 5n * (baseFeePerGas ?? assert.fail())) / 2n
  const claimed = await presentAny(shop, payments)
  assert.equal(claimed.length, payments.length)
  // Far less than a batch of all thirty demands up front.
  await setBalance(single * 10n)
  for (let i = 0; i < 8; i++) {
    await shop.mine()
    await shop.send()
  }
  const read = await Promise.all(claimed.map(({ checkoutId }) => shop.read(checkoutId)))
  assert.deepEqual(new Set(read.map(({ status }) => status)), new Set(['COMPLETED']))
  await setBalance(plenty)
})

test('what settlements cost is read from receipts and charged to the store and the settler', async () => {
  await shop.idle()
  const before = await readSpent()
  const held = await client.getBalance({ address })
  const [payment = assert.fail()] = await shop.prepare(1)
  await settle(payment)
  await shop.idle()
  const paid = held - (await client.getBalance({ address }))
  const after = await readSpent()
  assert(paid > 0n)
  assert.deepEqual(after, { spent: before.spent + paid, payments: before.payments + 1, failures: 0 })

  const [runway = assert.fail()] = await readRunways(shop.ctx, rail)
  // A store's share of a transaction is rounded down.
  const rounded = (runway.costPerPayment ?? 0n) - after.spent / BigInt(after.payments)
  assert(rounded === 0n || rounded === 1n, `${rounded}`)
  assert.match(
    describeRunway(network, runway),
    /ETH per payment in the last day, \d+ payments left, (\d+ hours|more than a year) at/,
  )
  await measureRunways(shop.ctx, [rail])
  const metrics = await shop.ctx.metrics.registry.metrics()
  for (const name of ['balance', 'payments_left', 'hours_left', 'unfunded'])
    assert.match(
      metrics,
      new RegExp(`farthing_settler_${name}{network="BASE_SEPOLIA",settler="${address}"} \\d`),
    )
})

test('a contract wallet whose payment failed on the chain is not sent again, and cannot sign for a month', async () => {
  const owner = newPayer()
  const wallet: Address = await shop.chain.deploy('OwnedWallet', [owner.address])
  await shop.chain.mint(wallet, 10_000_000n)
  await shop.idle()
  const before = await readSpent()
  const payments = await Promise.all([1, 2].map(() => shop.prepareOne(owner, { from: wallet })))
  await presentAny(shop, payments)
  await shop.send()
  // One is in the pool, the other has to wait for its outcome.
  assert.equal((await client.getTxpoolStatus()).pending, 1)
  const data = encodeFunctionData({ abi: parseAbi(['function setRefusing(bool)']), args: [true] })
  await shop.submit([{ to: wallet, data }], {
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 10n,
  })
  await shop.mine()
  await shop.send()
  const { failures } = await readSpent()
  assert.equal(failures, before.failures + 1)
  const reopen = encodeFunctionData({ abi: parseAbi(['function setRefusing(bool)']), args: [false] })
  await shop.chain.perform({ to: wallet, data: reopen })
  for (let i = 0; i < 3; i++) {
    await shop.mine()
    await shop.send()
  }
  const states = await db.query<{ state: string; reason: string | null }>(
    'select state, reason from authorizations where payer = $1 order by state',
    [wallet.toLowerCase()],
  )
  assert.deepEqual(states, [
    { state: 'rejected', reason: 'contract_wallet_failed_on_chain' },
    { state: 'sent', reason: null },
  ])
  assert.equal((await readSpent()).failures, failures, 'it was sent again')
  const refused = await shop.pay(await shop.prepareOne(owner, { from: wallet }))
  assertProblem(refused, 429, 'rate_limited')
})

test('a store sees what it has spent, and beyond its allowance its payments get 503 until the next day', async () => {
  const storeUrl = `/api/v1/stores/${shop.store.id}`
  const readStore = () => shop.request({ method: 'GET', url: storeUrl, headers: { 'x-api-key': shop.key } })
  const [shown] = (await readStore()).json().gas
  assert.equal(shown.network, network.caip2)
  assert.equal(shown.perDay, '0.02')
  assert(shown.spent.startsWith('0.00'))
  const [payment = assert.fail()] = await shop.prepare(1)
  await shop.idle()
  await db.query('update store_gas set spent = 20000000000000000')
  const refused = await shop.pay(payment)
  assertProblem(refused, 503, 'settlement_unavailable')
  assert.match(refused.json().detail, new RegExp(shown.resetsAt))
  assert.equal((await readStore()).json().gas[0].spent, '0.02')
  await db.query("update store_gas set day = day - interval '1 day'")
  await settle(payment)
})

test('a store that somebody signed up for has a smaller allowance until it has proven a wallet', async () => {
  const storeUrl = `/api/v1/stores/${shop.store.id}`
  const readStore = () => shop.request({ method: 'GET', url: storeUrl, headers: { 'x-api-key': shop.key } })
  const [payment = assert.fail()] = await shop.prepare(1)
  await shop.idle()
  await db.query('update stores set signed_up = true, revision = revision + 1')
  await db.query('update store_gas set spent = 2000000000000000')
  assertProblem(await shop.pay(payment), 503, 'settlement_unavailable')
  shop.clock.now = new Date(Date.now() + 2_000)
  assert.equal((await readStore()).json().gas[0].perDay, '0.002')
  await db.query('update stores set proven_at = clock()')
  await settle(payment)
  shop.clock.now = null
})

test('while nodes say that a settler cannot pay, its fee does not rise and it is not ready', async () => {
  const [payment = assert.fail()] = await shop.prepare(1)
  await shop.idle()
  const [answer] = await shop.present([payment])
  await client.setBalance({ address, value: 0n })
  await shop.send()
  for (let i = 0; i < 5; i++) {
    await db.query(
      "update broadcasts set created_at = created_at - interval '11 s', last_sent_at = last_sent_at - interval '11 s'",
    )
    await stepLane(shop.ctx, lane)
  }
  const unmined = await db.query<{ refusal: string | null; is_unfunded: boolean; is_taken: boolean }>(
    `select refusal, unfunded_at is not null as is_unfunded, taken_at is not null as is_taken
     from broadcasts b join transactions t using (network, settler, nonce) where t.mined_at is null`,
  )
  assert.equal(unmined.length, 1, 'bytes that no node took were signed again')
  assert.match(String(unmined[0]?.refusal), /(insufficient|enough) funds/i)
  assert(unmined[0]?.is_unfunded && !unmined[0].is_taken)
  const [runway = assert.fail()] = await readRunways(shop.ctx, rail)
  assert.match(describeRunway(network, runway), /cannot pay/)
  assert.match(String(await whyNot()), /enough money/)

  await setBalance(plenty)
  await db.query("update broadcasts set last_sent_at = last_sent_at - interval '11 s'")
  await shop.send()
  await shop.mine()
  assert.equal((await answer)?.statusCode, 200)
  assert.equal(await whyNot(), null)
})
