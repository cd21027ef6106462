/** What happens on the simulated network is what happens on a chain: the same events, answers and records. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Event, Payment, SimulatedCase } from '@farthing/sdk'
import { encodeFunctionData } from 'viem'
import { tokenAbi } from '../../support/chain/evm.ts'
import type { Payer } from '../../support/chain/evm-payment.ts'
import {
  type Answer,
  decode,
  eventsOf,
  killWork,
  until,
  untilEvent,
  untilRead,
  untilReady,
  untilSent,
  untilStatus,
} from '../../support/watch.ts'
import { buyers, openHandShop, post, transfer, view } from '../transfers/support/hand-transfers.ts'
import { comes } from './support/comes.ts'

/** One store with both networks. On the chain a block is safe with four blocks on top of it, and final with eight. */
const shop = await openHandShop({ NETWORKS: 'LOCAL,SIMULATED' })
const { chain } = shop
const price = '10.00'
const units = 10_000_000n

type Told = { readonly status: number; readonly error: string | null } | null

async function simulate(checkoutId: string, name: SimulatedCase): Promise<Told> {
  const answer = await shop.request({
    method: 'POST',
    url: '/api/v1/test/simulate',
    headers: { 'x-api-key': shop.key, 'content-type': 'application/json' },
    payload: { checkoutId, case: name },
  })
  assert.equal(answer.statusCode, 200, answer.body)
  return answer.json().answer
}

/** What the payer was told: the status, and the problem's code or why the payment was refused. */
function toldBy(answer: Answer): Told {
  const { statusCode: status } = answer
  if (status === 200) return { status, error: null }
  if (status !== 202 && status !== 402) return { status, error: answer.json().code }
  return { status, error: shop.settlementOf(answer).errorReason ?? null }
}

async function untilSome(id: string, type: Event['type']): Promise<void> {
  await until(async () => (await eventsAbout(id)).some((event) => event.type === type), `${type} of ${id}`)
}

async function paymentsOf(id: string): Promise<Payment[]> {
  const answer = await shop.request({
    url: `/api/v1/payments?checkoutId=${id}`,
    headers: { 'x-api-key': shop.key },
  })
  return answer.json().data
}

const isOver = ({ finality }: Payment) => finality === 'finalized' || finality === 'reversed'

/** Everything that the API says about a checkout, without what two networks cannot have in common. */
async function recordOf(id: string) {
  const payments = await paymentsOf(id)
  const log = (await eventsAbout(id)).map(({ type, checkoutVersion, data }) => ({
    ...{ type, checkoutVersion, data },
  }))
  return alike({ checkout: await shop.read(id), payments, log }, id)
}

/** Also of money that belongs to no checkout, but was meant for this one. */
async function eventsAbout(id: string): Promise<Event[]> {
  const all = await shop.request({ url: '/api/v1/events?limit=100', headers: { 'x-api-key': shop.key } })
  const { data } = all.json() as { data: Event[] }
  const hinted = data.filter((event) => JSON.stringify(event.data).includes(id) && event.checkoutId !== id)
  return [...(await eventsOf(shop, id)), ...hinted]
}

const different = new Set([
  'id',
  'checkoutId',
  'checkoutUrl',
  'transaction',
  'network',
  'asset',
  'payer',
  'payTo',
])

/** A reserved amount is the price and a part of a cent that is random. */
function alike(value: unknown, id: string, key = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => alike(each, id))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, alike(each, id, name)]))
  if (typeof value !== 'string') return value
  if (different.has(key) || key.endsWith('At')) return key
  if (key === 'amount' && BigInt(value) > units && BigInt(value) < units + 10_000n) return 'reserved'
  return value
}

type Chain = (id: string) => Promise<Told>

/** Runs a case on both networks, until the last event, and compares everything. */
async function compare(name: SimulatedCase, last: Event['type'], onChain: Chain): Promise<Told[]> {
  const [simulated, real] = [await shop.create(price), await shop.create(price)]
  const [toldSimulated, toldReal] = [await simulate(simulated, name), await onChain(real)]
  for (const id of [simulated, real]) {
    await untilSome(id, last)
    await until(async () => (await paymentsOf(id)).every(isOver), `everything about ${id} is final`)
  }
  assert.deepEqual(await recordOf(simulated), await recordOf(real))
  const types = (await eventsAbout(simulated)).map(({ type }) => type)
  assert.deepEqual(types.slice(1), comes[name], 'what the docs say')
  return [toldSimulated, toldReal]
}

async function present(id: string, payer?: Payer, overrides?: Parameters<typeof shop.sign>[2]) {
  const from = payer ?? (await shop.fund())
  const header = await shop.sign(id, from, overrides)
  return { header, answer: shop.pay(id, header) }
}

async function paid(id: string, overrides?: Parameters<typeof shop.sign>[2]) {
  const { header, answer } = await present(id, undefined, overrides)
  const { hash } = await untilSent(shop, header)
  await chain.mine()
  assert.deepEqual(toldBy(await answer), { status: 200, error: null })
  return { header, hash }
}

async function reserve(id: string): Promise<bigint> {
  await chain.mine()
  await untilRead(shop)
  const { statusCode } = await post(shop, `${id}/transfer`, { network: chain.network.caip2 })
  assert.equal(statusCode, 303)
  const [transfer] = (await view(shop, id)).transfers
  assert(transfer)
  return BigInt(transfer.amount)
}

/** Sends another amount than the reserved one, and names the transaction on the page. */
async function sendWrong(id: string, amount: bigint): Promise<void> {
  await reserve(id)
  const hash = await transfer(shop, amount, buyers[0])
  await post(shop, `${id}/transaction`, { hash })
  await chain.mine(4)
  await untilSome(id, 'payment.unmatched')
  await chain.mine(4)
}

test('paid: the events, the answer and the records of a payment on a chain', async () => {
  const [simulated] = await compare('payment.paid', 'payment.finalized', async (id) => {
    await paid(id)
    await chain.mine(8)
    return null
  })
  assert.deepEqual(simulated, { status: 202, error: 'settlement_pending' })
})

test('paid: who presents the payment itself waits for the same answer as on a chain', async () => {
  const [simulated, real] = [await shop.create(price), await shop.create(price)]
  const { accepts } = await shop.require(simulated)
  const payload = {
    simulated: { payer: 'sim_payer_2', nonce: `0x${'ab'.repeat(32)}`, case: 'payment.paid' },
  }
  const payment = { x402Version: 2, accepted: accepts.at(-1), payload }
  const answer = await shop.pay(simulated, Buffer.from(JSON.stringify(payment)).toString('base64'))
  const onChain = await present(real)
  await untilSent(shop, onChain.header)
  await chain.mine()
  assert.equal(answer.statusCode, 200, answer.body)
  assert.deepEqual(alike(answer.json(), simulated), alike((await onChain.answer).json(), real))
  const settlements = [answer, await onChain.answer].map((each) => alike(shop.settlementOf(each), ''))
  assert.deepEqual(settlements[0], settlements[1])
})

test('underpaid: the money is the store’s to decide about, with a hint', async () => {
  await compare('payment.underpaid', 'payment.unmatched', async (id) => {
    await sendWrong(id, units / 2n)
    return null
  })
})

test('overpaid: the money is the store’s to decide about, with a hint', async () => {
  await compare('payment.overpaid', 'payment.unmatched', async (id) => {
    await sendWrong(id, units * 2n)
    return null
  })
})

test('twice: the first completes the checkout, the second is announced as overpaid', async () => {
  await compare('payment.twice', 'payment.overpaid', async (id) => {
    const amount = await reserve(id)
    await transfer(shop, amount, buyers[0])
    await chain.mine(8)
    await untilEvent(shop, id, 'payment.finalized')
    await transfer(shop, amount, buyers[1])
    await untilEvent(shop, id, 'payment.overpaid')
    await chain.mine(8)
    return null
  })
})

test('reorganised and back: the checkout is being paid again, and completes again', async () => {
  await compare('payment.reorged', 'payment.finalized', async (id) => {
    const { hash } = await paid(id)
    await chain.reorg(1)
    await untilEvent(shop, id, 'payment.reorged')
    await letResendComeDue()
    await until(
      async () => (await chain.client.getTransaction({ hash }).catch(() => null)) !== null,
      'the same transaction in the pool',
    )
    await chain.mine()
    await untilStatus(shop, id, 'COMPLETED')
    await chain.mine(8)
    return null
  })
})

test('refused by the token: the payer is told why, and nothing happens to the checkout', async () => {
  const told = await compare('payment.refused', 'checkout.created', async (id) => {
    const payer = await shop.fund()
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'blacklist', args: [payer.address] })
    await chain.perform({ to: chain.token, data })
    return toldBy(await (await present(id, payer)).answer)
  })
  assert.deepEqual(told[0], told[1])
})

test('no gas: the payer is told that nothing was charged', async () => {
  const told = await compare('network.no_gas', 'checkout.created', async (id) => {
    await killWork(shop, shop.stopWork)
    await shop.ctx.db.query('update settlers set balance_wei = 0')
    const payment = await shop.sign(id, await shop.fund())
    // Whether a network is ready is remembered for half a second.
    shop.clock.now = new Date(Date.now() + 1_000)
    const answer = await shop.pay(id, payment)
    shop.clock.now = null
    shop.startWork()
    await untilReady(shop)
    return toldBy(answer)
  })
  assert.deepEqual(told[0], told[1])
})

// These move the chain's time ahead of the clock, so they come last.
test('late: the checkout expires, and the money that comes afterwards is announced', async () => {
  await compare('payment.late', 'payment.late', async (id) => {
    const amount = await reserve(id)
    assert.equal(await simulate(id, 'checkout.expired'), null)
    await chain.setNextBlockTimestamp((await soon()) - 28n)
    await chain.mine()
    await untilStatus(shop, id, 'EXPIRED')
    await transfer(shop, amount, buyers[0])
    await untilEvent(shop, id, 'payment.late')
    await chain.mine(8)
    return null
  })
})

test('reorganised and gone: the payment is reversed, and the checkout is open again', async () => {
  await compare('payment.reversed', 'payment.reversed', async (id) => {
    const { header } = await paid(id, { validBefore: await soon() })
    await chain.reorg(1)
    await untilEvent(shop, id, 'payment.reorged')
    await letDie(header)
    return null
  })
})

test('unknown, then dead: nobody knows for a while, then the checkout is open again', async () => {
  await compare('payment.unknown_then_dead', 'checkout.reopened', async (id) => {
    const { header } = await present(id, undefined, { validBefore: await soon() })
    const { hash } = await untilSent(shop, header)
    await chain.dropTransaction(hash)
    await letDie(header)
    return null
  })
})

/** Nodes forget transactions that a reorganisation removed, and lanes send them again after 3 s; this skips the wait. */
async function letResendComeDue(): Promise<void> {
  await shop.ctx.db.query(
    `update broadcasts set created_at = clock(), last_sent_at = clock() - interval '4 seconds'`,
  )
}

/** Soon, by our clock and by the chain's, which may be ahead of ours. */
async function soon(): Promise<bigint> {
  const [now, time] = [BigInt(Math.floor(Date.now() / 1_000)), await chain.time()]
  return (now > time ? now : time) + 30n
}

/** The authorization's time passes, so deep that no reorganisation brings it back. */
async function letDie(header: string): Promise<void> {
  const { validBefore } = decode(header).payload.authorization
  await chain.setNextBlockTimestamp(BigInt(validBefore ?? 0) + 1n)
  await chain.mine()
  await untilRead(shop)
  await chain.pass(chain.network.negativeSeconds + 1)
}
