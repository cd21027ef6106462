/** What happens to money sent by hand: right, nearly right, twice, too late, or in the wrong token. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData } from 'viem'
import { expireCheckouts } from '../../../src/checkouts/expire.ts'
import { tokenAbi } from '../../support/chain/evm.ts'
import { payTo } from '../../support/shop.ts'
import {
  assertPaid,
  assertProblem,
  decode,
  eventsOf,
  killWork,
  readLog,
  until,
  untilEvent,
  untilRead,
  untilStatus,
} from '../../support/watch.ts'
import { checkInvariants } from '../adversity/invariants.ts'
import {
  buyers,
  ledTo,
  openHandShop,
  paymentBy,
  post,
  reserve,
  sendUnits,
  transfer,
  view,
} from './support/hand-transfers.ts'

/** On this chain a block is safe with four blocks on top of it. */
const shop = await openHandShop()
let stopWork = shop.stopWork

async function story(id: string): Promise<string[]> {
  return (await eventsOf(shop, id)).map(({ type, checkoutVersion }) => `${checkoutVersion} ${type}`)
}

async function unmatchedEvents(transaction: string) {
  return (await readLog(shop)).filter(
    ({ type, data }) =>
      type === 'payment.unmatched' && 'payment' in data && data.payment.transaction === transaction,
  )
}

async function letExpireAt(id: string, seconds: bigint): Promise<void> {
  await shop.ctx.db.query(
    `update checkouts set created_at = $2::timestamptz - interval '1 day', expires_at = $2 where id = $1`,
    [id, new Date(Number(seconds) * 1_000)],
  )
}

// This test comes first, while the chain's time is still ours.
test('a transfer mined before the expiry but seen after it is on time, and until then the checkout does not become EXPIRED', async () => {
  const id = await shop.create()
  const amount = await reserve(shop, id)
  await stopWork()
  const transaction = await sendUnits(shop, amount)
  await shop.chain.setNextBlockTimestamp((await shop.chain.time()) + 1n)
  await shop.chain.mine()
  await letExpireAt(id, await shop.chain.time())
  await until(async () => (await view(shop, id)).isPastExpiry, 'the expiry')
  assert.equal(
    await expireCheckouts(shop.ctx, new Date()),
    0,
    'expired before the chain was read up to the expiry',
  )
  assert.equal((await shop.read(id)).status, 'OPEN')
  assertProblem(await shop.pay(id), 410, 'checkout_expired')
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?notice=closed')
  stopWork = shop.startWork()
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, transaction)
  assert.deepEqual(await story(id), ['1 checkout.created', '2 checkout.completed'])
})

test('an unpaid checkout with a reserved amount is EXPIRED once a block as late as its expiry has been read', async () => {
  const id = await shop.create()
  await reserve(shop, id)
  await letExpireAt(id, (await shop.chain.time()) + 1n)
  await shop.chain.setNextBlockTimestamp((await shop.chain.time()) + 2n)
  await until(async () => (await view(shop, id)).isPastExpiry, 'the expiry')
  await expireCheckouts(shop.ctx, new Date())
  assert.equal((await shop.read(id)).status, 'OPEN')
  await shop.chain.mine()
  await untilStatus(shop, id, 'EXPIRED')
})

test('a transfer of exactly the reserved amount, slightly above the price, completes the checkout', async () => {
  const id = await shop.create('12.50')
  const amount = await reserve(shop, id)
  assert(amount > 12_500_000n && amount <= 12_509_999n, String(amount))
  const transaction = await transfer(shop, amount)
  await untilStatus(shop, id, 'COMPLETED')
  const { payment } = await shop.read(id)
  assert.deepEqual(
    [payment.transaction, payment.payer, payment.amount],
    [transaction, buyers[0], String(amount)],
  )
  const answer = await shop.pay(id)
  assertPaid(answer)
  assert.equal(shop.settlementOf(answer).transaction, transaction)
  assert.deepEqual((await view(shop, id)).notes, [])
  assert.deepEqual(await story(id), ['1 checkout.created', '2 checkout.completed'])
})

for (const [name, difference, disposition] of [
  ['one unit less', -1n, 'underpaid'],
  ['one unit more', 1n, 'overpaid'],
] as const)
  test(`${name}: unmatched, with an event once it is safe; naming it only adds a hint, ${disposition}`, async () => {
    const id = await shop.create('3.00')
    const amount = (await reserve(shop, id)) + difference
    const transaction = await transfer(shop, amount)
    const payment = await paymentBy(shop, transaction)
    assert(payment)
    assert.deepEqual([payment.disposition, payment.checkoutId, payment.hints], ['unmatched', null, []])
    assert.deepEqual(
      await unmatchedEvents(transaction),
      [],
      'reported although its claim may still be on the way',
    )
    await shop.chain.mine(4)
    await until(async () => (await unmatchedEvents(transaction)).length === 1, 'payment.unmatched')
    assert.deepEqual((await view(shop, id)).notes, [])

    assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: transaction })), '?notice=unmatched')
    const hints = [{ checkoutId: id, disposition }]
    assert.deepEqual((await paymentBy(shop, transaction))?.hints, hints)
    const [note, ...others] = (await view(shop, id)).notes
    assert.deepEqual(others, [])
    assert.deepEqual(
      [note?.disposition, note?.amount, note?.transaction],
      [disposition, String(amount), transaction],
    )
    await shop.chain.mine()
    const told = await until(async () => (await unmatchedEvents(transaction))[1], 'the event with the hint')
    assert('payment' in told.data)
    assert.deepEqual(told.data.payment.hints, hints)
    assert.equal((await shop.read(id)).status, 'OPEN')
    assert.equal((await paymentBy(shop, transaction))?.disposition, 'unmatched')
  })

test('a transfer of the bare price matches no reserved amount and completes nothing', async () => {
  const id = await shop.create('4.00')
  await reserve(shop, id)
  const transaction = await transfer(shop, 4_000_000n)
  assert.equal((await paymentBy(shop, transaction))?.disposition, 'unmatched')
  assert.equal((await shop.read(id)).status, 'OPEN')
})

test('sent twice: the first completes, the second is overpaid, and the store and the page say so', async () => {
  const id = await shop.create()
  const amount = await reserve(shop, id)
  const first = await transfer(shop, amount)
  await untilStatus(shop, id, 'COMPLETED')
  const second = await transfer(shop, amount, buyers[1])
  const event = await untilEvent(shop, id, 'payment.overpaid')
  assert('payment' in event.data)
  assert.equal(event.data.payment.transaction, second)
  assert.equal((await shop.read(id)).payment.transaction, first)
  const notes = (await view(shop, id)).notes.map(({ disposition, transaction }) => [disposition, transaction])
  assert.deepEqual(notes, [['overpaid', second]])
})

for (const status of ['EXPIRED', 'CANCELED'] as const)
  test(`sent when the checkout is ${status}: late; the store and the page say so, and nothing is completed`, async () => {
    const id = await shop.create()
    const amount = await reserve(shop, id)
    if (status === 'CANCELED')
      await shop.request({
        method: 'POST',
        url: `/api/v1/checkouts/${id}/cancel`,
        headers: { 'x-api-key': shop.key },
      })
    else await letExpireAt(id, (await shop.chain.time()) - 1n)
    await untilStatus(shop, id, status)
    const transaction = await transfer(shop, amount)
    const event = await untilEvent(shop, id, 'payment.late')
    assert('payment' in event.data)
    assert.equal(event.data.payment.transaction, transaction)
    assert.equal((await shop.read(id)).status, status)
    assert.deepEqual(
      (await view(shop, id)).notes.map(({ disposition }) => disposition),
      ['late'],
    )
  })

test('the same amount of another token is ignored, and naming its transaction finds nothing', async () => {
  const id = await shop.create()
  const amount = await reserve(shop, id)
  const other = await shop.chain.deploy('Token')
  const mint = encodeFunctionData({ abi: tokenAbi, functionName: 'mint', args: [buyers[0], amount] })
  await shop.chain.perform({ to: other, data: mint })
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [payTo, amount] })
  const { transactionHash, status } = await shop.chain.perform({ to: other, data, from: buyers[0] })
  assert.equal(status, 'success')
  await untilRead(shop)
  assert.equal(await paymentBy(shop, transactionHash), undefined)
  assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: transactionHash })), '?notice=not_found')
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.deepEqual((await view(shop, id)).notes, [])
})

test('a transfer while a signature is claimed but unsent completes the checkout, and the signature is never sent', async () => {
  const id = await shop.create()
  const amount = await reserve(shop, id)
  const header = await shop.sign(id, await shop.fund())
  await killWork(shop, stopWork)
  const answer = shop.pay(id, header)
  await untilStatus(shop, id, 'PROCESSING')
  assert.equal(ledTo(await post(shop, `${id}/transfer`)), '?notice=in_progress')
  const transaction = await sendUnits(shop, amount)
  await shop.chain.mine()
  // A worker without keys follows the chain until the transfer is seen, and sends nothing.
  const { startWorker } = await import('../../../src/worker.ts')
  const follower = startWorker(shop.ctx)
  await untilStatus(shop, id, 'COMPLETED')
  await follower.stop()
  stopWork = shop.startWork()
  const [authorization] = await shop.ctx.db.query<{ state: string; reason: string }>(
    'select state, reason from authorizations where checkout_id = $1',
    [id],
  )
  assert.deepEqual(authorization, { state: 'rejected', reason: 'paid_otherwise' })
  assertProblem(await answer, 409, 'already_paid')
  assert.equal((await shop.read(id)).payment.transaction, transaction)
  const { nonce } = decode(header).payload.authorization
  const sent = await shop.ctx.db.query('select 1 as one from transaction_calls where nonce = $1', [nonce])
  assert.deepEqual(sent, [])
})

test('a transfer while a signature is in flight: the earlier of the two completes, the other is overpaid', async () => {
  const id = await shop.create()
  const amount = await reserve(shop, id)
  const header = await shop.sign(id, await shop.fund())
  const answer = shop.pay(id, header)
  const { nonce } = decode(header).payload.authorization
  await until(async () => {
    const [row] = await shop.ctx.db.query(
      `select 1 as one from transaction_calls c join broadcasts b on b.network = c.network and b.settler = c.settler
         and b.nonce = c.settler_nonce where c.nonce = $1 and b.last_sent_at is not null`,
      [nonce],
    )
    return row
  }, 'a send')
  const transaction = await sendUnits(shop, amount)
  await shop.chain.mine()
  await untilStatus(shop, id, 'COMPLETED')
  const overpaid = await untilEvent(shop, id, 'payment.overpaid')
  assert('payment' in overpaid.data)
  const { payment } = await shop.read(id)
  const both = [payment.transaction, overpaid.data.payment.transaction]
  assert(both.includes(transaction) && both[0] !== both[1])
  const told = await answer
  if (payment.transaction === transaction) assertProblem(told, 409, 'payment_not_applied')
  else assertPaid(told)
})

test('dust is recorded without an event, and a transfer of zero is not recorded at all', async () => {
  const dust = await transfer(shop, 9_999n)
  const nothing = await transfer(shop, 0n)
  const seen = await transfer(shop, 10_000n)
  await shop.chain.mine(4)
  await until(async () => (await unmatchedEvents(seen)).length === 1, 'payment.unmatched')
  assert.deepEqual(await unmatchedEvents(dust), [])
  assert.equal((await paymentBy(shop, dust))?.disposition, 'unmatched')
  assert.equal(await paymentBy(shop, nothing), undefined)
})

test('until a transfer reaches the store’s finality the checkout is PROCESSING, then COMPLETED', async () => {
  const policy = async (finality: string) =>
    await shop.request({
      method: 'PATCH',
      url: `/api/v1/stores/${shop.store.id}`,
      headers: { 'x-api-key': shop.key, 'content-type': 'application/json' },
      payload: { finalityPolicy: [{ minAmount: '0', finality }] },
    })
  await policy('safe')
  const id = await shop.create()
  await policy('included')
  const amount = await reserve(shop, id)
  await transfer(shop, amount)
  await untilStatus(shop, id, 'PROCESSING')
  assertProblem(await shop.pay(id), 409, 'payment_in_progress')
  await shop.chain.mine(4)
  await untilStatus(shop, id, 'COMPLETED')
  assert.deepEqual(await story(id), ['1 checkout.created', '2 checkout.processing', '3 checkout.completed'])
})

test('after all this, the books match the chain', async () => {
  await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
})
