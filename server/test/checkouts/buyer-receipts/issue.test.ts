/** Receipts are numbered without gaps, whatever happens, and a number is never given twice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Payment } from '@farthing/sdk'
import fc from 'fast-check'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import { raiseEpoch } from '../../../src/events/rows.ts'
import { openTestApp } from '../../support/app.ts'
import { creditByHand } from '../../support/by-hand.ts'
import { openAs } from '../../support/database.ts'
import { openStore } from '../../support/store.ts'
import {
  assertConsecutive,
  bringBack,
  numberAll,
  payOne,
  receiptsOf,
  reverse,
  tell,
} from './support/receipts.ts'

const farthing = await openTestApp()
const { ctx, clock } = farthing
/** As in production: with the rights of `work`. */
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }

test('each paid checkout gets the next number of its store, with the seller as it was then', async () => {
  const shop = await openStore(farthing)
  const other = await openStore(farthing)
  const change = (legalName: string) => shop.call('PATCH', `/api/v1/stores/${shop.id}`, { legalName })
  await change('Before Ltd')
  const ids = [await payOne(farthing, shop), await payOne(farthing, shop)]
  await payOne(farthing, other)
  await numberAll({ ctx: work })
  await change('After Ltd')
  ids.push(await payOne(farthing, shop))
  await numberAll({ ctx: work })
  const rows = await receiptsOf(farthing, shop.id)
  assert.deepEqual(
    rows.map(({ checkoutId, number, legalName }) => [checkoutId, number, legalName]),
    ids.map((id, i) => [id, i + 1, i < 2 ? 'Before Ltd' : 'After Ltd']),
  )
  assert.deepEqual(
    (await receiptsOf(farthing, other.id)).map(({ number }) => number),
    [1],
  )
})

test('the API shows a payment’s receipt to its store, by the payment’s id', async () => {
  const shop = await openStore(farthing)
  clock.now = new Date('2026-05-04T12:00:00Z')
  const id = await payOne(farthing, shop)
  await numberAll({ ctx: work })
  const list = await shop.call('GET', `/api/v1/payments?checkoutId=${id}`)
  const [payment] = list.json<{ data: Payment[] }>().data
  assert(payment)
  const one = (await shop.call('GET', `/api/v1/payments/${payment.id}`)).json<Payment>()
  assert.deepEqual(one.receipt, {
    number: '2026-000001',
    issuedOn: '2026-05-04',
    voidAt: null,
    ...{ legalName: null, legalAddress: null, taxId: null },
  })
  assert.equal(payment.receipt, undefined)
  const checkout = (await shop.call('GET', `/api/v1/checkouts/${id}`)).json<{ payment: object }>()
  assert(!('receipt' in checkout) && !('receipt' in checkout.payment))
  await reverse(farthing, id)
  await numberAll({ ctx: work })
  const gone = (await shop.call('GET', `/api/v1/payments/${payment.id}`)).json<Payment>()
  assert.equal(gone.receipt?.number, '2026-000001')
  assert(gone.receipt.voidAt)
})

test('a receipt is void once its payment is taken back for good; the number is not given again', async () => {
  const shop = await openStore(farthing)
  const id = await payOne(farthing, shop)
  await numberAll({ ctx: work })
  await reverse(farthing, id)
  await numberAll({ ctx: work })
  await payOne(farthing, shop)
  await numberAll({ ctx: work })
  await bringBack(farthing, id)
  await numberAll({ ctx: work })
  const rows = await receiptsOf(farthing, shop.id)
  assert.deepEqual(
    rows.map(({ number, isVoid, checkoutId }) => [number, isVoid, checkoutId === id]),
    [
      [1, true, true],
      [2, false, false],
      [3, false, true],
    ],
  )
})

test('a checkout has one valid receipt, however its payments change places: of the payment that completes it', async () => {
  const shop = await openStore(farthing)
  const id = await payOne(farthing, shop)
  const [{ first } = assert.fail()] = await ctx.db.query<{ first: string }>(
    'select payment_id as first from credits where checkout_id = $1',
    [id],
  )
  const second = await creditByHand(farthing, id)
  await ctx.db.query('update credits set checkout_id = $2 where payment_id = $1', [second, id])
  const valid = async () => {
    await numberAll({ ctx: work })
    const rows = await ctx.db.query<{ paymentId: string }>(
      'select payment_id as "paymentId" from buyer_receipts where checkout_id = $1 and void_at is null',
      [id],
    )
    return rows.map(({ paymentId }) => paymentId)
  }
  const change = async (paymentId: string, disposition: string, isOrphaned: boolean) => {
    await ctx.db.query(
      'update credits set disposition = $2, orphaned_at = case when $3 then clock() end where payment_id = $1',
      [paymentId, disposition, isOrphaned],
    )
  }
  await change(second, 'overpaid', false)
  assert.deepEqual(await valid(), [first])
  // A reorganisation takes the first out of the chain, and the second completes the checkout.
  await change(first, 'overpaid', true)
  await change(second, 'exact', false)
  await tell(farthing, id, 'checkout.completed')
  assert.deepEqual(await valid(), [second])
  // The first comes back, one too many now. Whatever is told about either, its receipt stays void.
  await change(first, 'overpaid', false)
  for (const type of ['payment.finalized', 'payment.reversed', 'checkout.completed'])
    await tell(farthing, id, type)
  assert.deepEqual(await valid(), [second])
  const page = (await farthing.request({ url: `/c/${id}/receipt` })).body
  const [{ hash } = assert.fail()] = await ctx.db.query<{ hash: string }>(
    'select transaction_hash as hash from credits where payment_id = $1',
    [second],
  )
  assert(page.includes(hash) && page.includes('-000002'))
  assertConsecutive(await receiptsOf(farthing, shop.id))
})

test('what happens before the events are numbered leaves what holds then, and the same events again change nothing', async () => {
  const shop = await openStore(farthing)
  const gone = await payOne(farthing, shop)
  await reverse(farthing, gone)
  const back = await payOne(farthing, shop)
  await reverse(farthing, back)
  await bringBack(farthing, back)
  await numberAll({ ctx: work })
  for (const type of ['checkout.completed', 'payment.finalized', 'payment.reversed'])
    await tell(farthing, back, type)
  await numberAll({ ctx: work })
  assert.deepEqual(
    (await receiptsOf(farthing, shop.id)).map(({ number, isVoid, checkoutId }) => [
      number,
      isVoid,
      checkoutId,
    ]),
    [[1, false, back]],
  )
})

test('the year is that of the store’s time zone, and begins at 1', async () => {
  const kiribati = await openStore(farthing)
  const hawaii = await openStore(farthing)
  for (const [shop, timeZone] of [
    [kiribati, 'Pacific/Kiritimati'],
    [hawaii, 'Pacific/Honolulu'],
  ] as const)
    assert.equal((await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { timeZone })).statusCode, 200)
  for (const now of ['2026-12-31T09:59:59Z', '2026-12-31T10:00:01Z', '2027-01-01T10:00:01Z']) {
    clock.now = new Date(now)
    await payOne(farthing, kiribati)
    await payOne(farthing, hawaii)
    await numberAll({ ctx: work })
  }
  const shown = async (id: string) =>
    (await receiptsOf(farthing, id)).map(({ year, number, day }) => `${year}-${number} ${day}`)
  assert.deepEqual(await shown(kiribati.id), ['2026-1 2026-12-31', '2027-1 2027-01-01', '2027-2 2027-01-02'])
  assert.deepEqual(await shown(hawaii.id), ['2026-1 2026-12-30', '2026-2 2026-12-31', '2027-1 2027-01-01'])
})

test('a time zone that nobody knows any more stops neither the log nor the receipts', async () => {
  const shop = await openStore(farthing)
  await ctx.db.query("update stores set time_zone = 'Mars/Olympus' where id = $1", [shop.id])
  clock.now = new Date('2026-06-01T12:00:00Z')
  await payOne(farthing, shop)
  await numberAll({ ctx: work })
  assert.equal((await receiptsOf(farthing, shop.id))[0]?.day, '2026-06-01')
})

test('after a restore the numbers go on in a series of their own, also if the same backup is restored twice', async () => {
  const shop = await openStore(farthing)
  clock.now = new Date('2026-06-01T12:00:00Z')
  await payOne(farthing, shop)
  await numberAll({ ctx: work })
  for (const now of ['2026-06-02T12:00:00Z', '2026-06-02T12:00:01Z']) {
    clock.now = new Date(now)
    await ctx.db.transaction((tx) => raiseEpoch(tx, ctx.now()))
    await payOne(farthing, shop)
    await payOne(farthing, shop)
    await numberAll({ ctx: work })
  }
  const rows = await receiptsOf(farthing, shop.id)
  assert.equal(new Set(rows.map(({ series }) => series)).size, 3)
  assert.equal(rows.length, 5)
  assertConsecutive(rows)
  await ctx.db.query("update event_log set receipt_series = ''")
})

/** What may happen to one of a store's payments, and processes that number the events meanwhile. */
const step = fc.record({
  act: fc.constantFrom('pay' as const, 'reverse' as const, 'bring back' as const, 'number' as const),
  processes: fc.integer({ min: 1, max: 3 }),
  place: fc.nat(),
})

test('whatever happens in whatever order, the numbers are consecutive and each paid checkout has one valid receipt', async () => {
  clock.now = null
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const shop = await openStore(farthing)
      const paid: string[] = []
      const gone: string[] = []
      const take = (ids: string[], place: number) => ids.splice(place % Math.max(ids.length, 1), 1)[0]
      for (const { act, processes, place } of steps) {
        const numbering = Array.from({ length: processes }, () => numberEvents(work))
        if (act === 'pay') paid.push(await payOne(farthing, shop))
        const [from, to, change] =
          act === 'reverse' ? ([paid, gone, reverse] as const) : ([gone, paid, bringBack] as const)
        const id = act === 'reverse' || act === 'bring back' ? take(from, place) : undefined
        if (id !== undefined) {
          await change(farthing, id)
          to.push(id)
        }
        await Promise.all(numbering)
      }
      await numberAll({ ctx: work })
      const rows = await receiptsOf(farthing, shop.id)
      assertConsecutive(rows)
      const valid = rows.filter(({ isVoid }) => !isVoid).map(({ checkoutId }) => checkoutId)
      assert.deepEqual(valid.toSorted(), paid.toSorted())
    }),
    { numRuns: 25 },
  )
})

test('eight processes at once give each of 120 payments one number, and none is left out', async () => {
  const shop = await openStore(farthing)
  for (let i = 0; i < 120; i++) await payOne(farthing, shop, `order-${i}`)
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let i = 0; i < 3; i++) await numberEvents(work)
    }),
  )
  const rows = await receiptsOf(farthing, shop.id)
  assert.equal(rows.length, 120)
  assertConsecutive(rows)
  assert.equal(new Set(rows.map(({ checkoutId }) => checkoutId)).size, 120)
})

test('nobody but work makes a receipt, and nobody changes or deletes one', async () => {
  const shop = await openStore(farthing)
  await payOne(farthing, shop)
  await numberAll({ ctx: work })
  const denied = /permission denied/
  for (const role of ['serve', 'console', 'work'] as const) {
    const db = openAs(role, farthing.databaseUrl)
    for (const sql of [
      'update buyer_receipts set number = number + 1',
      "update buyer_receipts set legal_name = 'x'",
      'delete from buyer_receipts',
      ...(role === 'work'
        ? []
        : [
            'update buyer_receipts set void_at = clock()',
            'update buyer_receipt_counters set last_number = 0',
          ]),
    ])
      await assert.rejects(db.query(sql), denied, `${role}: ${sql}`)
  }
})
