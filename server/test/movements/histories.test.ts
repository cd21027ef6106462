/** Whatever happens to payments and refunds, in whatever order: the books say what is, and each line was written once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { numberEvents } from '../../src/checkouts/number-events.ts'
import { newId } from '../../src/ids.ts'
import { bookDue } from '../../src/movements/book-due.ts'
import { listQuarterSums } from '../../src/movements/rows.ts'
import { readWallets } from '../../src/movements/statement.ts'
import { openTestApp } from '../support/app.ts'
import { refundByHand } from '../support/by-hand.ts'
import { openAs } from '../support/database.ts'
import { openStore, type StoreClient } from '../support/store.ts'
import { bookAll, booksOf, payFinal, sendUnmatched, tellOf } from './support/books.ts'

const farthing = await openTestApp()
const { ctx } = farthing
const work = { ...ctx, db: openAs('work', farthing.databaseUrl) }

type State = 'final' | 'away' | 'gone'
type Paid = {
  readonly shop: StoreClient
  readonly paymentId: string
  /** Null for money without a checkout. */
  readonly checkoutId: string | null
  state: State
  accepted: boolean
}
type Refunded = {
  readonly refundId: string
  readonly shop: StoreClient
  status: 'final' | 'declared' | 'gone'
}

const step = fc.record({
  act: fc.constantFrom(
    ...(['pay', 'unmatched', 'reorg', 'reverse', 'return', 'take back', 'accept', 'dismiss'] as const),
    ...(['refund', 'declare', 'refund gone', 'book', 'tell again'] as const),
  ),
  place: fc.nat(),
  processes: fc.integer({ min: 0, max: 3 }),
})

test('after any history each final payment and refund is one open line, decisions are lines, and sums agree', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps) => {
      // Two stores with wallets of their own, so that money without a checkout belongs to one.
      const shops = [await openStore(farthing), await openStore(farthing)]
      await Promise.all(shops.map((shop) => own(shop)))
      const paid: Paid[] = []
      const refunded: Refunded[] = []
      let decisions = 0
      const at = <Item>(items: readonly Item[], place: number) => items[place % Math.max(items.length, 1)]
      for (const { act, place, processes } of steps) {
        const booking = Array.from({ length: processes }, async (_, i) =>
          i % 2 === 0 ? void (await numberEvents(work)) : void (await bookDue(work)),
        )
        const shop = at(shops, place)
        assert(shop)
        if (paid.length === 0) {
          const made = await payFinal(farthing, shop)
          paid.push({ shop, ...made, state: 'final', accepted: false })
        }
        const one = at(paid, place)
        if (act === 'pay') {
          const made = await payFinal(farthing, shop)
          paid.push({ shop, ...made, state: 'final', accepted: false })
        }
        if (act === 'unmatched') {
          const paymentId = await sendUnmatched(farthing, shop)
          paid.push({ shop, paymentId, checkoutId: null, state: 'final', accepted: false })
        }
        if (act === 'reorg' && one?.state === 'final') await move(one, 'away')
        if (act === 'reverse' && one?.state === 'away') await move(one, 'gone')
        // The rare case that matters most: it was booked before it was gone.
        if (act === 'take back' && one?.state === 'final') {
          await bookAll(work)
          await move(one, 'away')
          await move(one, 'gone')
        }
        if (act === 'return' && one && one.state !== 'final') await move(one, 'final')
        if (act === 'tell again' && one) await tell(one, 'payment.finalized')
        if ((act === 'accept' || act === 'dismiss') && one?.state === 'final') {
          const type = act === 'accept' ? 'payment.accepted' : 'payment.dismissed'
          await tell(one, type, { type: 'member', id: 'mem_1', name: 'A Name' })
          decisions++
        }
        if ((act === 'refund' || act === 'declare') && one?.checkoutId && one.state === 'final')
          refunded.push(await refund(one, act === 'declare'))
        const back = at(refunded, place)
        if (act === 'refund gone' && back?.status === 'final') await takeBack(back)
        if (act === 'book') await numberEvents(work)
        await Promise.all(booking)
      }
      await bookAll(work)
      await bookAll(work)
      for (const shop of shops) await check(shop, paid, refunded)
      const lines = (await Promise.all(shops.map(({ id }) => booksOf(farthing, id)))).flat()
      assert.equal(
        lines.filter(({ type }) => type === 'acceptance' || type === 'dismissal').length,
        decisions,
      )
      assert(!JSON.stringify(lines.map(({ actor }) => actor)).includes('Name'))
    }),
    { numRuns: 40, endOnFailure: true },
  )
})

/** Gives the store a wallet that no other store has. */
async function own(shop: StoreClient): Promise<void> {
  const address = `0x${newId('wal', '00', new Date()).slice(-20)}`.padEnd(42, 'a')
  await ctx.db.query('update wallets set address = $2 where store_id = $1', [shop.id, address])
}

async function tell(one: Paid, type: string, actor: object | null = null): Promise<void> {
  await tellOf(farthing, one.shop.id, type, { payment: { id: one.paymentId } }, actor)
}

async function move(one: Paid, state: State): Promise<void> {
  const set = {
    away: 'orphaned_at = clock(), finalized_at = null, safe_at = null',
    gone: 'reversed_at = clock()',
    final: 'orphaned_at = null, reversed_at = null, safe_at = clock()',
  }[state]
  await ctx.db.query(`update credits set ${set} where payment_id = $1`, [one.paymentId])
  if (state === 'final')
    await ctx.db.query('update credits set finalized_at = clock() where payment_id = $1', [one.paymentId])
  one.state = state
  if (one.checkoutId === null) return
  await tell(one, { away: 'payment.reorged', gone: 'payment.reversed', final: 'payment.finalized' }[state])
}

async function refund(one: Paid, isDeclared: boolean): Promise<Refunded> {
  assert(one.checkoutId)
  await refundByHand(farthing, one.checkoutId, isDeclared ? 'DECLARED' : 'COMPLETED', 5)
  const [row] = await ctx.db.query<{ id: string }>(
    `update refunds set finality = case when status = 'COMPLETED' then 'finalized' end
     where payment_id = $1 and id = (select max(id) from refunds where payment_id = $1) returning id`,
    [one.paymentId],
  )
  assert(row)
  const type = isDeclared ? 'refund.declared' : 'refund.finalized'
  await tellOf(farthing, one.shop.id, type, { refund: { id: row.id } })
  return { refundId: row.id, shop: one.shop, status: isDeclared ? 'declared' : 'final' }
}

async function takeBack(one: Refunded): Promise<void> {
  await ctx.db.query("update refunds set status = 'SENT', finality = null where id = $1", [one.refundId])
  await tellOf(farthing, one.shop.id, 'refund.reorged', { refund: { id: one.refundId } })
  one.status = 'gone'
}

async function check(shop: StoreClient, paid: readonly Paid[], refunded: readonly Refunded[]): Promise<void> {
  const lines = await booksOf(farthing, shop.id)
  const taken = new Set(lines.flatMap(({ reverses }) => reverses ?? []))
  const open = (type: string) => lines.filter((line) => line.type === type && !taken.has(line.number))
  // What left the chain may return, so it stays in the books until it is gone, if it was in them.
  const mine = paid.filter((one) => one.shop === shop)
  const booked = open('payment').map(({ paymentId }) => paymentId)
  assert.equal(new Set(booked).size, booked.length)
  for (const { paymentId, state } of mine) {
    if (state === 'final') assert(booked.includes(paymentId), 'a final payment is in the books')
    if (state === 'gone') assert(!booked.includes(paymentId), 'a payment that is gone is not')
  }
  assert(booked.every((id) => mine.some(({ paymentId }) => paymentId === id)))
  const own = refunded.filter((one) => one.shop === shop)
  const ids = (status: Refunded['status']) =>
    own.flatMap((one) => (one.status === status ? [one.refundId] : [])).toSorted()
  const of = (type: string) =>
    open(type)
      .flatMap(({ refundId }) => refundId ?? [])
      .toSorted()
  assert.deepEqual(of('refund'), ids('final'))
  assert.deepEqual(of('refund_declared'), ids('declared'))
  const ever = { from: new Date(0), before: new Date('2200-01-01') }
  const sums = await listQuarterSums(ctx.db, shop.store.id, ever)
  const total = (all: readonly { readonly amount: bigint }[]) =>
    all.reduce((sum, { amount }) => sum + amount, 0n)
  assert.equal(total(sums), total(lines))
  const wallets = await readWallets(ctx.db, shop.store.id, ever)
  const closing = wallets.reduce((sum, each) => sum + each.closing, 0n)
  assert.equal(closing, total(lines.filter(({ wallet }) => wallet !== null)))
}
