/** What happened to a store's money is booked once, in order, and never changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptPayment } from '../../src/checkouts/payments/decide.ts'
import { openTestApp } from '../support/app.ts'
import { refundByHand } from '../support/by-hand.ts'
import { newPayer } from '../support/chain/evm-payment.ts'
import { openAs } from '../support/database.ts'
import { operator as operatorActor } from '../support/operator.ts'
import { openStore } from '../support/store.ts'
import { bookAll, booksOf, inShort, payFinal, sendUnmatched, tellOf } from './support/books.ts'

const farthing = await openTestApp()
const { ctx } = farthing
/** As in production: with the rights of `work`. */
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }

test('a final payment is booked once, with what it paid for, however often it is told of', async () => {
  const shop = await openStore(farthing)
  const { paymentId, checkoutId } = await payFinal(farthing, shop, { orderId: 'A-1' })
  await tellOf(farthing, shop.id, 'payment.finalized', { payment: { id: paymentId } })
  await bookAll(work)
  await tellOf(farthing, shop.id, 'payment.finalized', { payment: { id: paymentId } })
  await bookAll(work)
  const lines = await booksOf(farthing, shop.id)
  assert.deepEqual(inShort(lines), ['payment 12500000 12.50'])
  const [line] = lines
  assert.deepEqual(
    [
      line?.orderId,
      line?.checkoutId,
      line?.priceAmount,
      line?.priceCurrency,
      line?.valueRateSource,
      line?.valueCurrency,
    ],
    ['A-1', checkoutId, '12.50', 'USD', 'price', 'USD'],
  )
})

test('a payment that the chain takes back for good is taken back in the books, and booked again if it returns', async () => {
  const shop = await openStore(farthing)
  const { paymentId } = await payFinal(farthing, shop)
  await bookAll(work)
  const set = (sql: string) => ctx.db.query(`update credits set ${sql} where payment_id = $1`, [paymentId])
  await set('orphaned_at = clock(), finalized_at = null')
  await tellOf(farthing, shop.id, 'payment.reorged', { payment: { id: paymentId } })
  await bookAll(work)
  assert.equal((await booksOf(farthing, shop.id)).length, 1, 'it may return')
  await set('reversed_at = clock()')
  await tellOf(farthing, shop.id, 'payment.reversed', { payment: { id: paymentId } })
  await bookAll(work)
  await set('orphaned_at = null, reversed_at = null, finalized_at = clock()')
  await tellOf(farthing, shop.id, 'payment.finalized', { payment: { id: paymentId } })
  await bookAll(work)
  assert.deepEqual(inShort(await booksOf(farthing, shop.id)), [
    'payment 12500000 12.50',
    'payment_reversed -12500000 -12.50 of 1',
    'payment 12500000 12.50',
  ])
})

test('money without a checkout is booked when it is final, by every store that shares the wallet', async () => {
  const [first, second] = [await openStore(farthing), await openStore(farthing)]
  const paymentId = await sendUnmatched(farthing, first)
  await bookAll(work)
  for (const shop of [first, second])
    assert.deepEqual(
      (await booksOf(farthing, shop.id))
        .filter((line) => line.paymentId === paymentId)
        .map(({ type }) => type),
      ['payment'],
    )
})

test('a final refund is booked once, as that part of the price, and a declared one moves no wallet', async () => {
  const shop = await openStore(farthing)
  const { checkoutId } = await payFinal(farthing, shop)
  for (const status of ['COMPLETED', 'DECLARED'] as const) {
    await refundByHand(farthing, checkoutId, status, 20)
    const [row] = await ctx.db.query<{ id: string }>(
      `update refunds set finality = case when $2 = 'COMPLETED' then 'finalized' end
       where checkout_id = $1 and status = $2 returning id`,
      [checkoutId, status],
    )
    assert(row)
    const type = status === 'COMPLETED' ? 'refund.finalized' : 'refund.declared'
    for (let i = 0; i < 2; i++) {
      await tellOf(farthing, shop.id, type, { refund: { id: row.id } })
      await bookAll(work)
    }
  }
  const lines = await booksOf(farthing, shop.id)
  assert.deepEqual(inShort(lines), [
    'payment 12500000 12.50',
    'refund -2500000 -2.50',
    'refund_declared -2500000 -2.50',
  ])
  assert.deepEqual(
    lines.map(({ wallet }) => wallet !== null),
    [true, true, false],
  )
  // Also of the first refund, which is booked in the same run as its payment.
  assert.deepEqual(
    lines.map(({ valueRateSource }) => valueRateSource),
    ['price', 'price', 'price'],
  )
})

test('a value is the amount at the day’s rate, cut after six decimals, and there is none without a rate', async () => {
  const priced = await openTestApp({ FIXED_RATES: 'EUR=0.86' })
  const working = { ...priced.ctx, db: openAs('work', priced.databaseUrl) }
  const shop = await openStore(priced)
  const report = (currency: string) =>
    priced.ctx.db.query('update stores set report_currency = $2 where id = $1', [shop.id, currency])
  await report('EUR')
  await payFinal(priced, shop, { priceAmount: '0.000007' })
  await payFinal(priced, shop, { priceAmount: '60.00', priceCurrency: 'EUR' })
  await bookAll(working)
  await report('JPY')
  await payFinal(priced, shop)
  await bookAll(working)
  const lines = await booksOf(priced, shop.id)
  assert.deepEqual(
    lines.map(({ value, valueCurrency, valueRate, valueRateSource }) => [
      value,
      valueCurrency,
      valueRate,
      valueRateSource,
    ]),
    [
      ['0.000006', 'EUR', '0.86', 'fixed'],
      ['60.00', 'EUR', null, 'price'],
      [null, 'JPY', null, null],
    ],
  )
  assert.deepEqual([lines[1]?.priceCurrency, lines[1]?.rateSource], ['EUR', 'fixed'])
})

test('money whose wallet another store proves later stays in the books until that store accepts it, and then moves', async () => {
  const [first, prover] = [await openStore(farthing), await openStore(farthing)]
  const { address } = newPayer()
  await ctx.db.query('update wallets set address = $2 where store_id = $1', [first.id, address])
  const paymentId = await sendUnmatched(farthing, first)
  await bookAll(work)
  const { id: checkoutId } = await prover.create()
  await ctx.db.query('update wallets set address = $2, proven_at = clock() where store_id = $1', [
    prover.id,
    address,
  ])
  await bookAll(work)
  const both = async () => [
    inShort(await booksOf(farthing, first.id)),
    inShort(await booksOf(farthing, prover.id)),
  ]
  const paid = 'payment 12500001 12.500001'
  assert.deepEqual(await both(), [[paid], []])
  const decision = {
    ...({ id: 'dec_1', kind: 'accept', note: null, actor: operatorActor, createdAt: ctx.now() } as const),
    ...{ storeId: prover.store.id, paymentId, checkoutId },
  }
  await work.db.transaction((tx) => acceptPayment(work, tx, decision, ctx.now()))
  await bookAll(work)
  assert.deepEqual(await both(), [
    [paid, 'payment_ceded -12500001 -12.500001 of 1'],
    ['acceptance 0 no value', 'payment 12500001 12.50'],
  ])
})
