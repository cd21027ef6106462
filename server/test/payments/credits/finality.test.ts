/** How final a payment is: the store's policy, chains that reorganise, and money that comes too late. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, FinalityRule } from '@farthing/sdk'
import { encodeFunctionData, type Hex } from 'viem'
import { expireCheckouts } from '../../../src/checkouts/expire.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { encodeTransfer, type Payer, type Signed } from '../../support/chain/evm-payment.ts'
import { openShop } from '../../support/shop.ts'
import {
  type Answer,
  assertPaid,
  assertProblem,
  assertRefused,
  decode,
  eventsOf,
  killWork,
  mineSent,
  until,
  untilEvent,
  untilRead,
  untilStatus,
} from '../../support/watch.ts'

/** On this chain a block is safe with four blocks on top of it, and final with eight. */
const shop = await openShop({ blockTimeSeconds: null })
let stopWork = shop.stopWork

async function setPolicy(...finalityPolicy: FinalityRule[]): Promise<void> {
  const answer = await shop.request({
    method: 'PATCH',
    url: `/api/v1/stores/${shop.store.id}`,
    headers: { 'x-api-key': shop.key, 'content-type': 'application/json' },
    payload: { finalityPolicy },
  })
  assert.equal(answer.statusCode, 200, answer.body)
}

type Started = {
  readonly id: string
  readonly header: string
  readonly answer: Promise<Answer>
  readonly payer: Payer
}

/** Presents a payment and returns once it is in the pool. */
async function start(price = '1.00', overrides: Parameters<typeof shop.sign>[2] = {}): Promise<Started> {
  const payer = await shop.fund()
  const id = await shop.create(price)
  const header = await shop.sign(id, payer, overrides)
  const answer = shop.pay(id, header)
  await until(async () => {
    const { nonce } = decode(header).payload.authorization
    return await shop.ctx.db
      .query<{ one: number }>(
        `select 1 as one from transaction_calls c join broadcasts b on b.network = c.network
           and b.settler = c.settler and b.nonce = c.settler_nonce
         where c.nonce = $1 and b.last_sent_at is not null`,
        [nonce],
      )
      .then(([row]) => row)
  }, 'a send')
  return { id, header, answer, payer }
}

async function complete(price?: string, overrides?: Parameters<typeof shop.sign>[2]): Promise<Started> {
  const started = await start(price, overrides)
  await shop.chain.mine()
  assertPaid(await started.answer)
  return started
}

/** The checkout's events in the log: each one's type and checkout version. */
async function story(id: string): Promise<string[]> {
  return (await eventsOf(shop, id)).map(({ type, checkoutVersion }) => `${checkoutVersion} ${type}`)
}

function paymentOf(event: Event) {
  assert('payment' in event.data)
  return event.data.payment
}

/** Soon, by our clock and by the chain's, which may be ahead of ours. */
async function soon(): Promise<bigint> {
  const [now, time] = [BigInt(Math.floor(Date.now() / 1_000)), await shop.chain.time()]
  return (now > time ? now : time) + 30n
}

/** Nodes forget transactions that a reorganisation removed, and lanes resend them after 3 s; this skips the wait. */
async function letResendComeDue(): Promise<void> {
  await shop.ctx.db.query(
    `update broadcasts set created_at = clock(), last_sent_at = clock() - interval '4 seconds'`,
  )
}

/** A checkout whose payment was rejected before it was sent; anyone who has the signature can still send it. */
async function makeRejected(): Promise<{ id: string; header: string; settle: () => Promise<Hex> }> {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  const list = async (functionName: 'blacklist' | 'unBlacklist') =>
    await shop.chain.perform({
      to: shop.chain.token,
      data: encodeFunctionData({ abi: tokenAbi, functionName, args: [payer.address] }),
    })
  await killWork(shop, stopWork)
  const answer = shop.pay(id, header)
  await untilStatus(shop, id, 'PROCESSING')
  await list('blacklist')
  stopWork = shop.startWork()
  assertRefused(shop, await answer, 'invalid_exact_evm_transaction_simulation_failed')
  await list('unBlacklist')
  const settle = async () => {
    const { authorization, signature } = decode(header).payload
    const data = encodeTransfer({ authorization, signature } as Signed)
    const { status, transactionHash } = await shop.chain.perform({ to: shop.chain.token, data })
    assert.equal(status, 'success')
    return transactionHash
  }
  return { id, header, settle }
}

// This test comes first, while the chain's time is still ours; later tests move the chain's ahead.
test('a payment that was on time but is found only after the checkout has EXPIRED completes it', async () => {
  const { id, settle } = await makeRejected()
  await stopWork()
  const transaction = await settle()
  const { timestamp } = await shop.chain.client.getBlock()
  await shop.ctx.db.query(
    `update checkouts set created_at = $2::timestamptz - interval '1 day', expires_at = $2 where id = $1`,
    [id, new Date(Number(timestamp) * 1_000)],
  )
  await until(async () => (await expireCheckouts(shop.ctx, new Date())) > 0, 'the sweep')
  assert.equal((await shop.read(id)).status, 'EXPIRED')
  stopWork = shop.startWork()
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, transaction)
})

test('by default a payment completes its checkout when it is included; safe and finalized follow, with their times', async () => {
  const { id, answer } = await complete()
  const { transaction } = shop.settlementOf(await answer)
  assert.equal((await shop.read(id)).payment.finality, 'included')
  await shop.chain.mine(4)
  await until(async () => (await shop.read(id)).payment.finality === 'safe', 'safe')
  await shop.chain.mine(4)
  const event = await untilEvent(shop, id, 'payment.finalized')
  const payment = paymentOf(event)
  assert.deepEqual(
    [payment.transaction, payment.finality, payment.disposition, payment.checkoutId],
    [transaction, 'finalized', 'exact', id],
  )
  assert(payment.safeAt && payment.finalizedAt)
  assert(payment.includedAt < payment.safeAt && payment.safeAt < payment.finalizedAt)
  assert.equal((await shop.read(id)).payment.finality, 'finalized')
  assert.deepEqual(await story(id), [
    '1 checkout.created',
    '2 checkout.processing',
    '3 checkout.completed',
    '3 payment.finalized',
  ])
})

test('above an amount for which the store asks for safe or finalized: 202 first, 200 once it is; smaller amounts at once', async () => {
  await setPolicy(
    { minAmount: '0', finality: 'included' },
    { minAmount: '10', finality: 'safe' },
    { minAmount: '100', finality: 'finalized' },
  )
  const small = await start('9.999999')
  const middle = await start('10')
  const large = await start('250.00')
  await setPolicy({ minAmount: '0', finality: 'included' })
  await shop.chain.mine()
  assertPaid(await small.answer)
  for (const { id, header, answer } of [middle, large]) {
    for (const told of [await answer, await shop.pay(id, header)]) {
      assert.equal(told.statusCode, 202, told.body)
      assert.equal(told.json().status, 'PROCESSING')
      assert.match(String(told.headers['retry-after']), /^[1-9]\d*$/)
      assert.equal(told.headers['payment-required'], undefined)
      const { success, errorReason, transaction } = shop.settlementOf(told)
      assert.deepEqual([success, errorReason], [false, 'settlement_pending'])
      assert.equal((await shop.read(id)).payment.transaction, transaction)
    }
    assertProblem(await shop.pay(id), 409, 'payment_in_progress')
  }
  await shop.chain.mine(4)
  await untilStatus(shop, middle.id, 'COMPLETED')
  assertPaid(await shop.pay(middle.id, middle.header))
  assert.equal((await shop.read(large.id)).status, 'PROCESSING')
  await shop.chain.mine(4)
  await untilStatus(shop, large.id, 'COMPLETED')
  assertPaid(await shop.pay(large.id, large.header))
  await untilEvent(shop, large.id, 'payment.finalized')
  assert.deepEqual(await story(large.id), [
    '1 checkout.created',
    '2 checkout.processing',
    '3 checkout.completed',
    '3 payment.finalized',
  ])
})

test('a payment that the chain takes back is sent again with the same bytes, and completes the checkout again', async () => {
  const { id, header, answer } = await complete()
  const first = await shop.read(id)
  await shop.chain.reorg(1)
  const reorged = await untilEvent(shop, id, 'payment.reorged')
  assert.equal(paymentOf(reorged).transaction, first.payment.transaction)
  assert.equal((await shop.read(id)).status, 'PROCESSING')
  assert.equal((await shop.read(id)).payment, null)
  assertProblem(await shop.pay(id), 409, 'payment_in_progress')
  const again = shop.pay(id, header)
  await letResendComeDue()
  await until(
    async () =>
      (await shop.chain.client.getTransaction({ hash: first.payment.transaction }).catch(() => null)) !==
      null,
    'the same transaction in the pool',
  )
  await shop.chain.mine()
  assertPaid(await again)
  assert.equal((await again).headers['payment-response'], (await answer).headers['payment-response'])
  await shop.chain.mine(8)
  const final = paymentOf(await untilEvent(shop, id, 'payment.finalized'))
  assert.equal(final.id, paymentOf(reorged).id, 'the id of the payment')
  assert.deepEqual(await story(id), [
    '1 checkout.created',
    '2 checkout.processing',
    '3 checkout.completed',
    '4 checkout.processing',
    '4 payment.reorged',
    '5 checkout.completed',
    '5 payment.finalized',
  ])
  const sequences = (await eventsOf(shop, id)).map(({ sequence }) => sequence)
  assert.deepEqual(
    sequences,
    sequences.toSorted((a, b) => a - b),
  )
})

test('the first block that held a payment decides whether it is on time, even if it is reorganised and mined after expiry', async () => {
  const { id, answer } = await complete()
  const { transaction } = shop.settlementOf(await answer)
  const { timestamp } = await shop.chain.client.getBlock()
  await shop.ctx.db.query(
    `update checkouts set created_at = $2::timestamptz - interval '1 day', expires_at = $2 where id = $1`,
    [id, new Date(Number(timestamp) * 1_000)],
  )
  await shop.chain.reorg(1)
  await untilStatus(shop, id, 'PROCESSING')
  await letResendComeDue()
  await until(
    async () => (await shop.chain.client.getTransaction({ hash: transaction }).catch(() => null)) !== null,
    'the same transaction in the pool',
  )
  await shop.chain.setNextBlockTimestamp((await shop.chain.time()) + 15n)
  await shop.chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, transaction)
})

for (const isExpired of [false, true])
  test(`a payment that the chain took back for good is reversed, and the checkout is ${isExpired ? 'EXPIRED' : 'OPEN'}`, async () => {
    const { id, header } = await complete('1.00', { validBefore: await soon() })
    const authorization = decode(header).payload.authorization
    await shop.chain.reorg(1)
    await untilEvent(shop, id, 'payment.reorged')
    if (isExpired)
      await shop.ctx.db.query(
        `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() where id = $1`,
        [id],
      )
    const validBefore = BigInt(authorization.validBefore ?? 0)
    const now = await shop.chain.time()
    await shop.chain.setNextBlockTimestamp(validBefore > now ? validBefore : now + 1n)
    await shop.chain.mine()
    await untilRead(shop)
    await shop.chain.pass(shop.chain.network.negativeSeconds)
    const reversed = paymentOf(await untilEvent(shop, id, 'payment.reversed'))
    assert.equal(reversed.finality, 'reversed')
    assert.equal((await shop.read(id)).payment, null)
    if (isExpired) assertProblem(await shop.pay(id, header), 410, 'checkout_expired')
    else assertRefused(shop, await shop.pay(id, header), 'authorization_expired')
    const last = isExpired ? 'checkout.expired' : 'checkout.reopened'
    await untilEvent(shop, id, last)
    assert.deepEqual(await story(id), [
      '1 checkout.created',
      '2 checkout.processing',
      '3 checkout.completed',
      '4 checkout.processing',
      '4 payment.reorged',
      `5 ${last}`,
      '5 payment.reversed',
    ])
    await letResendComeDue()
    await until(async () => {
      await mineSent(shop)
      return (
        (await shop.ctx.db.query('select 1 as one from transactions where mined_at is null')).length === 0
      )
    }, 'the refilled nonce')
  })

test('a payment claimed before expiry and mined after it completes the checkout', async () => {
  const { id, answer } = await start()
  await shop.ctx.db.query(
    `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() - interval '1 minute' where id = $1`,
    [id],
  )
  await shop.chain.mine()
  assertPaid(await answer)
})

for (const status of ['CANCELED', 'EXPIRED'] as const)
  test(`money that arrives for a checkout that is ${status} is late: the store is notified, and nothing is completed`, async () => {
    const { id, header, settle } = await makeRejected()
    if (status === 'CANCELED')
      await shop.request({
        method: 'POST',
        url: `/api/v1/checkouts/${id}/cancel`,
        headers: { 'x-api-key': shop.key },
      })
    else
      await shop.ctx.db.query(
        `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() - interval '1 minute' where id = $1`,
        [id],
      )
    await untilStatus(shop, id, status)
    const transaction = await settle()
    const late = paymentOf(await untilEvent(shop, id, 'payment.late'))
    assert.deepEqual([late.transaction, late.disposition], [transaction, 'late'])
    assert.equal((await shop.read(id)).status, status)
    const answer = await shop.pay(id, header)
    assertProblem(answer, 409, 'payment_not_applied')
    assert.equal(answer.json().payment.disposition, 'late')
  })
