/** The table of answers to a payer, row by row, with real payments. Each test name starts with its row's number. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, type Hex } from 'viem'
import { openChain } from '../../src/chains/evm/chain.ts'
import { nodesOf } from '../../src/config/settings.ts'
import { buildApp } from '../../src/http/app.ts'
import { openVerifier } from '../../src/payments/evm/rail.ts'
import { readPaymentHeader } from '../../src/payments/payload.ts'
import { atEnd } from '../support/at-end.ts'
import { tokenAbi } from '../support/chain/evm.ts'
import { encodeTransfer, newNonce, type Payer } from '../support/chain/evm-payment.ts'
import { openShop, payTo } from '../support/shop.ts'
import {
  type Answer,
  assertPaid,
  assertProblem,
  assertRefused,
  decode,
  eventsOf,
  killWork,
  letExpire,
  untilEvent,
  untilRead,
  untilSent,
  untilStatus,
} from '../support/watch.ts'

/** A chain that mines by itself. */
const shop = await openShop()
/** A chain that mines only when the test says so. */
const held = await openShop({ blockTimeSeconds: null })
let stopWork = shop.stopWork

async function setBlacklisted(payer: Payer, isListed: boolean): Promise<void> {
  const functionName = isListed ? 'blacklist' : 'unBlacklist'
  const data = encodeFunctionData({ abi: tokenAbi, functionName, args: [payer.address] })
  await shop.chain.perform({ to: shop.chain.token, data })
}

/** Claims while no settler runs; then the token refuses the payer, and the lane notices. Returns the header. */
async function makeRejected(id: string, payer: Payer): Promise<string> {
  const header = await shop.sign(id, payer)
  await killWork(shop, stopWork)
  const waiting = shop.pay(id, header)
  await untilStatus(shop, id, 'PROCESSING')
  await setBlacklisted(payer, true)
  stopWork = shop.startWork()
  assertRefused(shop, await waiting, 'invalid_exact_evm_transaction_simulation_failed')
  await setBlacklisted(payer, false)
  return header
}

/** Presents a payment while the chain mines nothing, and returns once the payment has been sent. */
async function startSent(id: string, header: string): Promise<{ answer: Promise<Answer>; hash: Hex }> {
  const answer = held.pay(id, header)
  const { hash } = await untilSent(held, header)
  return { answer, hash }
}

test('a signed payment is settled on the chain and answered with the completed checkout', async () => {
  const payer = await shop.fund()
  const id = await shop.create('12.34')
  const before = await shop.chain.balance(payTo)
  const answer = await shop.pay(id, await shop.sign(id, payer))
  assert.equal(answer.statusCode, 200, answer.body)
  assert.equal(answer.json().status, 'COMPLETED')
  assert.equal((await shop.chain.balance(payTo)) - before, 12_340_000n)
  const settlement = shop.settlementOf(answer)
  assert.equal(settlement.success, true)
  assert.equal(settlement.payer, payer.address)
  const receipt = await shop.chain.client.getTransactionReceipt({ hash: settlement.transaction })
  assert.equal(receipt.status, 'success')
  const seen = await shop.read(id)
  assert.equal(seen.payment.transaction, settlement.transaction)
  assert.equal(seen.payment.amount, '12340000')
})

test('1. no such checkout: 404, with or without a payment', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  for (const unknown of ['none', `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`]) {
    assertProblem(await shop.pay(unknown), 404, 'not_found')
    assertProblem(await shop.pay(unknown, header), 404, 'not_found')
  }
})

test('2. the payment that paid, presented again: 200 with the same settlement, every time', async () => {
  const payer = await shop.fund()
  const id = await shop.create('2.00')
  const header = await shop.sign(id, payer)
  const first = await shop.pay(id, header)
  assertPaid(first)
  for (const again of await Promise.all([shop.pay(id, header), shop.pay(id, header), shop.pay(id, header)])) {
    assertPaid(again)
    assert.equal(again.headers['payment-response'], first.headers['payment-response'])
  }
  assert.equal((await shop.chain.transferLogs({ from: payer.address })).length, 1)
})

test('2. the same payment ten times at once: one transfer, and ten 200s with the same settlement', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await shop.sign(id, payer)
  const answers = await Promise.all(Array.from({ length: 10 }, () => shop.pay(id, header)))
  for (const answer of answers) assertPaid(answer)
  assert.equal(new Set(answers.map(({ headers }) => headers['payment-response'])).size, 1)
  assert.equal((await shop.chain.transferLogs({ from: payer.address })).length, 1)
})

test('2. payments that are simulated together do not affect each other, neither duplicates nor rivals for one nonce', async () => {
  const payer = await shop.fund(1_000_000n)
  const [id, other] = [await shop.create(), await shop.create()]
  const { network } = shop.chain
  const verifier = openVerifier(
    shop.ctx,
    openChain(network, nodesOf(shop.ctx.config, network.id), shop.ctx.now),
  )
  const nonce = newNonce()
  const headers = [
    await shop.sign(id, payer, { nonce }),
    await shop.sign(other, payer, { nonce, validAfter: 1n }),
  ]
  const transfers = [...headers, ...headers, ...headers].map((header) => {
    const read = readPaymentHeader(header)
    assert(read.kind === 'present' && read.payment.family === 'EVM')
    return { ...read.payment, isContract: false }
  })
  for (const verdict of await Promise.all(transfers.map((transfer) => verifier.simulate(transfer)))) {
    const { isGood, isNonceUsed, balance } = verdict
    assert.deepEqual(
      { isGood, isNonceUsed, balance },
      { isGood: true, isNonceUsed: false, balance: 1_000_000n },
    )
  }
})

test('2. a payment in progress, presented again: it waits and gets the same 200', async () => {
  const payer = await held.fund()
  const id = await held.create()
  const header = await held.sign(id, payer)
  const { answer, hash } = await startSent(id, header)
  const twin = held.pay(id, header)
  await held.chain.mine()
  assertPaid(await answer)
  assertPaid(await twin)
  assert.equal(held.settlementOf(await answer).transaction, hash)
  assert.equal((await twin).headers['payment-response'], (await answer).headers['payment-response'])
})

test('2. a payment that arrived but did not complete the checkout: 409 payment_not_applied, with its disposition', async () => {
  const [early, other] = [await shop.fund(), await shop.fund()]
  const id = await shop.create()
  const rejected = await makeRejected(id, early)
  assertPaid(await shop.pay(id, await shop.sign(id, other)))
  // We rejected it, but someone else sends it anyway.
  const { authorization, signature } = decode(rejected).payload
  const data = encodeTransfer({ authorization, signature } as Parameters<typeof encodeTransfer>[0])
  assert.equal((await shop.chain.perform({ to: shop.chain.token, data })).status, 'success')
  await untilEvent(shop, id, 'payment.overpaid')
  const answer = await shop.pay(id, rejected)
  assertProblem(answer, 409, 'payment_not_applied')
  const { disposition, payer, checkoutId } = answer.json().payment
  assert.deepEqual([disposition, payer, checkoutId], ['overpaid', early.address, id])
})

test('2. a payment that is provably dead: 402 with the reason, for waiting requests and for later ones', async () => {
  const payer = await held.fund()
  const id = await held.create()
  const header = await held.sign(id, payer, { validBefore: BigInt(Math.floor(Date.now() / 1_000) + 20) })
  const { answer } = await startSent(id, header)
  await held.chain.setNextBlockTimestamp(BigInt(decode(header).payload.authorization.validBefore ?? 0))
  await held.chain.mine(3)
  assert.equal((await held.read(id)).status, 'PROCESSING', 'released before it was deep enough')
  await untilRead(held)
  await held.chain.pass(held.chain.network.negativeSeconds)
  assertRefused(held, await answer, 'authorization_expired')
  assertRefused(held, await held.pay(id, header), 'authorization_expired')
  assert.deepEqual(
    (await eventsOf(held, id)).map(({ type }) => type),
    ['checkout.created', 'checkout.processing', 'checkout.reopened'],
  )
  assert.equal((await held.chain.transferLogs({ from: payer.address })).length, 0)
})

test('2. a payment that was rejected before it was sent: 402, and 200 if it is good when presented again', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const header = await makeRejected(id, payer)
  assertPaid(await shop.pay(id, header))
  assert.equal((await shop.chain.transferLogs({ from: payer.address })).length, 1)
})

test('3. a payment claimed by another checkout: 409 authorization_used, before and after it has paid there', async () => {
  const payer = await held.fund()
  const [id, other] = [await held.create(), await held.create()]
  const header = await held.sign(id, payer)
  const { answer } = await startSent(id, header)
  assertProblem(await held.pay(other, header), 409, 'authorization_used')
  await held.chain.mine()
  assertPaid(await answer)
  assertProblem(await held.pay(other, header), 409, 'authorization_used')
  assert.equal((await held.read(other)).status, 'OPEN')
})

test('4. COMPLETED, no payment sent: 200 with the settlement that paid', async () => {
  const payer = await shop.fund()
  const id = await shop.create()
  const paid = await shop.pay(id, await shop.sign(id, payer))
  const asked = await shop.pay(id)
  assertPaid(asked)
  assert.equal(asked.headers['payment-response'], paid.headers['payment-response'])
  assert.equal(asked.body, paid.body)
})

test('5. COMPLETED, another payment or an unreadable one: 409 already_paid, and it is not charged', async () => {
  const [payer, other] = [await shop.fund(), await shop.fund()]
  const id = await shop.create()
  const headers = [await shop.sign(id, payer), await shop.sign(id, other), 'nonsense'] as const
  assertPaid(await shop.pay(id, headers[0]))
  assertProblem(await shop.pay(id, headers[1]), 409, 'already_paid')
  assertProblem(await shop.pay(id, headers[2]), 409, 'already_paid')
  assert.equal(await shop.chain.balance(other.address), 1_000_000_000n)
})

test('6. PROCESSING: 409 with Retry-After at once; another payment first waits five seconds for the outcome', async () => {
  const [payer, other] = [await held.fund(), await held.fund()]
  const id = await held.create()
  const [first, second] = [await held.sign(id, payer), await held.sign(id, other)]
  const { answer } = await startSent(id, first)
  for (const header of [undefined, 'nonsense', second]) {
    const refused = await held.pay(id, header)
    assertProblem(refused, 409, 'payment_in_progress')
    assert.match(String(refused.headers['retry-after']), /^[1-9]\d*$/)
  }
  await held.chain.mine()
  assertPaid(await answer)
  assert.equal(await held.chain.balance(other.address), 1_000_000_000n)
})

test('6. PROCESSING: a second payment waits; it gets 409 if the first one pays, and is accepted if the first one fails', async () => {
  // Its clock is frozen, so that five seconds are enough on any machine.
  const now = new Date()
  const patient = buildApp({ ...shop.ctx, now: () => now }, { isDraining: false })
  atEnd(() => patient.close())
  for (const isFirstGood of [true, false]) {
    const [payer, other] = [await shop.fund(), await shop.fund()]
    const id = await shop.create()
    const [first, second] = [await shop.sign(id, payer), await shop.sign(id, other)]
    await killWork(shop, stopWork)
    const answers = [shop.pay(id, first)]
    await untilStatus(shop, id, 'PROCESSING')
    if (!isFirstGood) await setBlacklisted(payer, true)
    answers.push(
      patient.inject({
        method: 'POST',
        url: `/api/v1/checkouts/${id}`,
        headers: { 'payment-signature': second },
      }),
    )
    stopWork = shop.startWork()
    const [one, two] = await Promise.all(answers)
    assert(one && two)
    if (isFirstGood) {
      assertPaid(one)
      assertProblem(two, 409, 'already_paid')
    } else {
      // After its failure the first one checks again, and by then the second has been claimed or has paid.
      assert([402, 409].includes(one.statusCode), one.body)
      assertPaid(two)
    }
    const unpaid = isFirstGood ? other : payer
    assert.equal(await shop.chain.balance(unpaid.address), 1_000_000_000n)
  }
})

test('7. EXPIRED, CANCELED, or OPEN past its expiry: 410, with or without a payment, and never terms', async () => {
  const payer = await shop.fund()
  const make = async () => {
    const id = await shop.create()
    return { id, header: await shop.sign(id, payer) }
  }
  const [expired, canceled, late] = [await make(), await make(), await make()]
  await letExpire(shop, expired.id)
  await untilStatus(shop, expired.id, 'EXPIRED')
  await shop.request({
    method: 'POST',
    url: `/api/v1/checkouts/${canceled.id}/cancel`,
    headers: { 'x-api-key': shop.key },
  })
  await stopWork()
  await letExpire(shop, late.id)
  for (const [{ id, header }, code] of [
    [expired, 'checkout_expired'],
    [canceled, 'checkout_canceled'],
    [late, 'checkout_expired'],
  ] as const)
    for (const sent of [undefined, 'nonsense', header]) assertProblem(await shop.pay(id, sent), 410, code)
  stopWork = shop.startWork()
  assert.equal(await shop.chain.balance(payer.address), 1_000_000_000n)
})
