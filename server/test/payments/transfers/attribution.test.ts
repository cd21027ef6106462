/** Which checkout a transfer belongs to: by claim, by reserved amount, by the store's decision, and by nothing else. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Payment } from '@farthing/sdk'
import type { Hex } from 'viem'
import { makeBoundNonce } from '../../../src/payments/nonces.ts'
import { makeStore } from '../../support/app.ts'
import {
  encodeTransfer,
  newPayer,
  type Payer,
  paymentHeader,
  signAuthorization,
} from '../../support/chain/evm-payment.ts'
import { payTo } from '../../support/shop.ts'
import {
  assertPaid,
  assertProblem,
  eventsOf,
  until,
  untilEvent,
  untilRead,
  untilStatus,
} from '../../support/watch.ts'
import { checkInvariants } from '../adversity/invariants.ts'
import {
  buyers,
  call,
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
const { chain } = shop

/** A transfer by authorization that was never presented to us, sent by a stranger. */
async function settleElsewhere(payer: Payer, value: bigint, nonce?: Hex): Promise<Hex> {
  const signed = await signAuthorization({
    key: payer.key,
    domain: chain.domain,
    to: payTo,
    value,
    validBefore: (await chain.time()) + 10_000n,
    ...(nonce && { nonce }),
  })
  const { status, transactionHash } = await chain.perform({ to: chain.token, data: encodeTransfer(signed) })
  assert.equal(status, 'success')
  await untilRead(shop)
  return transactionHash
}

async function makeSafe(transaction: Hex): Promise<Payment> {
  await chain.mine(4)
  return await until(async () => {
    const payment = await paymentBy(shop, transaction)
    return payment?.safeAt ? payment : null
  }, `${transaction} safe`)
}

async function price(amount: bigint): Promise<string> {
  return await shop.create(`${amount / 1_000_000n}.${(amount % 1_000_000n).toString().padStart(6, '0')}`)
}

test('a settlement whose amount equals another checkout’s reserved amount still pays its own checkout', async () => {
  const waiting = await shop.create('20.00')
  const amount = await reserve(shop, waiting)
  const paid = await price(amount)
  const payer = await shop.fund()
  const answer = shop.pay(paid, await shop.sign(paid, payer))
  await until(async () => (await chain.client.getTxpoolStatus()).pending > 0, 'the settlement')
  await chain.mine()
  assertPaid(await answer)
  const transaction = (await shop.read(paid)).payment.transaction
  assert.equal((await shop.read(paid)).payment.amount, String(amount))
  await makeSafe(transaction)
  assert.equal((await shop.read(waiting)).status, 'OPEN')
  assert.equal((await shop.read(paid)).payment.transaction, transaction)
})

test('an unclaimed signed transfer counts by its amount once it is safe, and nobody can claim it afterwards', async () => {
  const id = await shop.create('21.00')
  const amount = await reserve(shop, id)
  const payer = await shop.fund()
  const other = await price(amount)
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const transaction = await settleElsewhere(payer, amount, nonce)
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.equal((await paymentBy(shop, transaction))?.checkoutId, null)
  await makeSafe(transaction)
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, transaction)
  const header = await paymentHeader(await shop.require(other), payer.key, { nonce })
  assertProblem(await shop.pay(other, header), 409, 'authorization_used')
})

test('a bound signature is left to the checkout that it names, whatever its amount', async () => {
  const id = await shop.create('22.00')
  const amount = await reserve(shop, id)
  const nonce = makeBoundNonce(await shop.create(), randomBytes(12))
  const transaction = await settleElsewhere(await shop.fund(), amount, nonce)
  const payment = await makeSafe(transaction)
  assert.deepEqual([payment.disposition, payment.checkoutId], ['unmatched', null])
  assert.equal((await shop.read(id)).status, 'OPEN')
})

test('a transfer from before the amount was reserved is not its payment, even when its block is read again', async () => {
  const id = await shop.create('23.00')
  const early = await transfer(shop, 23_000_777n)
  await shop.ctx.db.query(
    `insert into reserved_amounts (checkout_id, network, asset, pay_to, amount, after_block, reserved_at)
     select $1, network, $2, $3, 23000777, head_number, clock() from followers`,
    [id, chain.token.toLowerCase(), payTo.toLowerCase()],
  )
  assert.equal((await makeSafe(early)).disposition, 'unmatched')
  assert.equal((await shop.read(id)).status, 'OPEN')
  const own = await transfer(shop, 23_000_777n)
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment.transaction, own)
})

test('a signed transfer of zero stops nothing', async () => {
  const transaction = await settleElsewhere(await shop.fund(), 0n)
  await chain.mine()
  await untilRead(shop)
  assert.equal(await paymentBy(shop, transaction), undefined)
})

test('naming a stranger’s transfer gains nothing, whether it paid a checkout or belongs to another store', async () => {
  const strangers = await shop.create('24.00')
  const paid = await transfer(shop, await reserve(shop, strangers))
  await untilStatus(shop, strangers, 'COMPLETED')
  const id = await shop.create('24.00')
  await reserve(shop, id)
  assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: paid })), '?notice=not_found')
  const before = await paymentBy(shop, paid)
  assert.deepEqual([before?.checkoutId, before?.hints], [strangers, []])

  const wallet = newPayer().address
  await makeStore(shop.ctx, { mode: 'test', evmWallet: wallet })
  const foreign = await transfer(shop, 24_000_001n, buyers[0], wallet)
  assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: foreign })), '?notice=not_found')
  const hints = await shop.ctx.db.query('select 1 as one from payment_hints where checkout_id = $1', [id])
  assert.deepEqual(hints, [])
  assert.equal((await shop.read(id)).status, 'OPEN')
  assert.deepEqual((await view(shop, id)).notes, [])
})

test('an unmatched transfer that two buyers name is hinted to both and belongs to neither until the store decides', async () => {
  const [mine, theirs] = [await shop.create('25.00'), await shop.create('25.00')]
  const transaction = await transfer(shop, 25_000_000n)
  for (const id of [mine, theirs])
    assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: transaction })), '?notice=unmatched')
  const payment = await paymentBy(shop, transaction)
  assert.deepEqual(payment?.hints.map(({ checkoutId }) => checkoutId).sort(), [mine, theirs].sort())
  for (const id of [mine, theirs]) assert.equal((await shop.read(id)).status, 'OPEN')
  const accepted = await call(shop, 'POST', `/${payment?.id}/accept`, { checkoutId: mine })
  assert.equal(accepted.statusCode, 200, accepted.body)
  assert.equal((await shop.read(mine)).status, 'COMPLETED')
  assert.deepEqual((await view(shop, theirs)).notes, [])
})

test('an invalid hash is refused, and one that is in no block is looked for until nobody waits for it', async () => {
  const id = await shop.create('26.00')
  for (const hash of ['', '0x12', 'x'.repeat(66), `0x${'zz'.repeat(32)}`])
    assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash })), '?notice=invalid_hash')
  const none = `0x${'ab'.repeat(32)}`
  const answer = post(shop, `${id}/transaction?lang=es`, { hash: none })
  assert.equal(ledTo(await answer), '?notice=looking&lang=es')
  await shop.ctx.db.query(
    "update pasted_transactions set pasted_at = clock() - interval '31 minutes', looked_at = null",
  )
  await until(async () => {
    const [row] = await shop.ctx.db.query<{ outcome: string }>(
      'select outcome from pasted_transactions where transaction_hash = $1',
      [none],
    )
    return row?.outcome === 'not_found'
  }, 'given up')
})

test('a transaction named before it is mined is found once it is', async () => {
  const id = await shop.create('26.50')
  const hash = await sendUnits(shop, 26_400_000n)
  assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash })), '?notice=looking')
  await chain.mine()
  const [note] = await until(async () => {
    const { notes } = await view(shop, id)
    return notes.length > 0 && notes
  }, 'the note')
  assert.deepEqual([note?.disposition, note?.transaction], ['underpaid', hash])
})

test('requests that query every node are rate-limited per address, and the page tells the buyer to wait', async () => {
  const id = await shop.create('26.60')
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => post(shop, `${id}/transaction`, { hash: 'x' }, {}, '10.9.9.9')),
  )
  const [wrong, wait] = ['?notice=invalid_hash', '?notice=unavailable']
  assert.deepEqual(answers.map(ledTo).sort(), [wrong, wrong, wait, wait])
})

test('naming the transfer that paid this checkout adds no notice, because the page already says so', async () => {
  const id = await shop.create('27.00')
  const transaction = await transfer(shop, await reserve(shop, id))
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal(
    ledTo(
      await post(shop, `${id}/transaction`, { hash: ` ${transaction.toUpperCase().replace('0X', '0x')} ` }),
    ),
    '',
  )
})

test('a checkout’s page accepts at most ten transactions', async () => {
  const id = await shop.create('28.00')
  for (let i = 0; i < 10; i++)
    await shop.ctx.db.query(
      `insert into pasted_transactions (checkout_id, network, transaction_hash, pasted_at, outcome)
       values ($1, 'eip155:31337', $2, clock(), 'not_found')`,
      [id, `0x${i.toString().repeat(64)}`],
    )
  const transaction = await transfer(shop, 28_000_000n)
  assert.equal(ledTo(await post(shop, `${id}/transaction`, { hash: transaction })), '?notice=not_found')
  assert.deepEqual((await paymentBy(shop, transaction))?.hints, [])
})

test('accept completes an OPEN, EXPIRED or CANCELED checkout with any payment of the store, once', async () => {
  for (const status of ['OPEN', 'EXPIRED', 'CANCELED']) {
    const id = await shop.create('30.00')
    if (status === 'CANCELED')
      await shop.request({
        method: 'POST',
        url: `/api/v1/checkouts/${id}/cancel`,
        headers: { 'x-api-key': shop.key },
      })
    if (status === 'EXPIRED')
      await shop.ctx.db.query(
        `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() where id = $1`,
        [id],
      )
    await untilStatus(shop, id, status)
    const transaction = await transfer(shop, 29_999_000n)
    const unmatched = await paymentBy(shop, transaction)
    const accept = () => call(shop, 'POST', `/${unmatched?.id}/accept`, { checkoutId: id })
    const answer = await accept()
    assert.equal(answer.statusCode, 200, answer.body)
    const payment = answer.json() as Payment
    assert.deepEqual([payment.disposition, payment.checkoutId, payment.id], ['exact', id, unmatched?.id])
    assert(payment.acceptedAt)
    const { status: now, payment: shown } = await shop.read(id)
    assert.deepEqual([now, shown.transaction], ['COMPLETED', transaction])
    assert.deepEqual((await accept()).json(), payment, 'accepting again changed something')
    assert.equal((await eventsOf(shop, id)).filter(({ type }) => type === 'checkout.completed').length, 1)
    assertProblem(await call(shop, 'POST', `/${payment.id}/dismiss`), 409, 'payment_not_open')
    const other = await shop.create()
    assertProblem(
      await call(shop, 'POST', `/${payment.id}/accept`, { checkoutId: other }),
      409,
      'payment_not_open',
    )
  }
})

test('a late payment can be accepted for its own checkout without naming it, and for no other', async () => {
  const id = await shop.create('31.00')
  const amount = await reserve(shop, id)
  await shop.ctx.db.query(
    `update checkouts set created_at = clock() - interval '1 day', expires_at = clock() - interval '5 seconds'
     where id = $1`,
    [id],
  )
  const transaction = await transfer(shop, amount)
  await untilEvent(shop, id, 'payment.late')
  await untilStatus(shop, id, 'EXPIRED')
  const late = await paymentBy(shop, transaction)
  const other = await shop.create()
  const foreign = await call(shop, 'POST', `/${late?.id}/accept`, { checkoutId: other })
  assertProblem(foreign, 409, 'payment_not_open')
  assert.equal((await call(shop, 'POST', `/${late?.id}/accept`, {})).statusCode, 200)
  assert.equal((await shop.read(id)).status, 'COMPLETED')
})

test('accept gets 409 for a PROCESSING or COMPLETED checkout; a dismissed payment stays closed', async () => {
  const transaction = await transfer(shop, 32_000_000n)
  const payment = await paymentBy(shop, transaction)
  const paid = await shop.create('32.00')
  await transfer(shop, await reserve(shop, paid))
  await untilStatus(shop, paid, 'COMPLETED')
  const busy = await shop.create('32.00')
  await shop.ctx.db.query("update checkouts set status = 'PROCESSING' where id = $1", [busy])
  const accept = (checkoutId: string) => call(shop, 'POST', `/${payment?.id}/accept`, { checkoutId })
  assertProblem(await accept(busy), 409, 'payment_in_progress')
  assertProblem(await accept(paid), 409, 'already_paid')
  await shop.ctx.db.query("update checkouts set status = 'OPEN' where id = $1", [busy])

  const dismissed = await call(shop, 'POST', `/${payment?.id}/dismiss`)
  assert.equal(dismissed.statusCode, 200, dismissed.body)
  assert((dismissed.json() as Payment).dismissedAt)
  assert.deepEqual((await call(shop, 'POST', `/${payment?.id}/dismiss`)).json(), dismissed.json())
  assertProblem(await accept(busy), 409, 'payment_not_open')
  assert.equal((await shop.read(busy)).status, 'OPEN')
})

test('a signed payment that the store accepted for one checkout cannot be presented for another', async () => {
  const [mine, other] = [await shop.create('33.00'), await shop.create('33.00')]
  const payer = await shop.fund()
  const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
  const transaction = await settleElsewhere(payer, 33_000_000n, nonce)
  const payment = await paymentBy(shop, transaction)
  const accepted = await call(shop, 'POST', `/${payment?.id}/accept`, { checkoutId: mine })
  assert.equal(accepted.statusCode, 200, accepted.body)
  const header = await paymentHeader(await shop.require(other), payer.key, { nonce })
  assertProblem(await shop.pay(other, header), 409, 'authorization_used')
  assert.equal((await shop.read(mine)).status, 'COMPLETED')
})

test('payments are listed newest first, by page, by checkout and by disposition', async () => {
  const all: Payment[] = []
  let cursor = ''
  for (;;) {
    const page = (await call(shop, 'GET', `?limit=3${cursor}`)).json() as {
      data: Payment[]
      nextCursor: string | null
    }
    all.push(...page.data)
    assert(page.data.length <= 3)
    if (page.nextCursor === null) break
    cursor = `&cursor=${page.nextCursor}`
  }
  const ids = all.map(({ id }) => id)
  assert.deepEqual(ids, ids.toSorted().toReversed())
  assert.equal(new Set(ids).size, ids.length)
  for (const disposition of ['exact', 'late', 'overpaid', 'unmatched']) {
    const { data } = (await call(shop, 'GET', `?limit=100&disposition=${disposition}`)).json() as {
      data: Payment[]
    }
    const expected = all.filter((payment) => payment.disposition === disposition)
    // Their finality goes on between the two readings.
    assert.deepEqual(
      data.map(({ id }) => id),
      expected.slice(0, 100).map(({ id }) => id),
    )
  }
  const withCheckout = all.find(({ checkoutId }) => checkoutId !== null)
  const { data } = (await call(shop, 'GET', `?checkoutId=${withCheckout?.checkoutId}`)).json() as {
    data: Payment[]
  }
  assert(data.length > 0 && data.every(({ checkoutId }) => checkoutId === withCheckout?.checkoutId))
})

test('after all this, the books match the chain', async () => {
  await checkInvariants({ db: shop.ctx.db, chain: shop.chain })
})
