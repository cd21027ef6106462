import assert from 'node:assert/strict'
import { numberEvents } from '../../../src/checkouts/number-events.ts'
import type { Context } from '../../../src/context.ts'
import { newId } from '../../../src/ids.ts'
import { bookDue } from '../../../src/movements/book-due.ts'
import type { Movement } from '../../../src/movements/movement.ts'
import { listMovements } from '../../../src/movements/rows.ts'
import type { TestApp } from '../../support/app.ts'
import { completeByHand, creditByHand } from '../../support/by-hand.ts'
import type { StoreClient } from '../../support/store.ts'

/** Writes an event without a number about a payment or a refund, as the transaction that changes it would. */
export async function tellOf(
  { ctx }: Pick<TestApp, 'ctx'>,
  storeId: string,
  type: string,
  about: { readonly payment: { readonly id: string } } | { readonly refund: { readonly id: string } },
  actor: object | null = null,
): Promise<void> {
  await ctx.db.query(
    'insert into events (id, store_id, type, data, created_at, actor) values ($1, $2, $3, $4, clock(), $5)',
    [newId('evt', '00', new Date()), storeId, type, JSON.stringify(about), actor && JSON.stringify(actor)],
  )
}

/** A checkout that is paid exactly, and final. Returns the payment's id. */
export async function payFinal(
  test: TestApp,
  shop: StoreClient,
  change: Parameters<StoreClient['create']>[0] = {},
): Promise<{ readonly paymentId: string; readonly checkoutId: string }> {
  const { id } = await shop.create(change)
  await completeByHand(test, id)
  const paymentId = newId('pay', '00', new Date())
  await test.ctx.db.query(
    `update credits set payment_id = $2, finalized_at = clock(), safe_at = clock(), witnessed_at = clock(),
       pay_to = lower(pay_to) where checkout_id = $1`,
    [id, paymentId],
  )
  await tellOf(test, shop.id, 'payment.finalized', { payment: { id: paymentId } })
  return { paymentId, checkoutId: id }
}

/** Money that matches no checkout, and is final. Returns the payment's id. */
export async function sendUnmatched(test: TestApp, shop: StoreClient): Promise<string> {
  const { id } = await shop.create()
  const paymentId = await creditByHand(test, id)
  await test.ctx.db.query('update credits set store_id = null, safe_at = clock() where payment_id = $1', [
    paymentId,
  ])
  await test.ctx.db.query('update credits set finalized_at = clock() where payment_id = $1', [paymentId])
  return paymentId
}

export async function bookAll(ctx: Context): Promise<void> {
  while ((await numberEvents(ctx)) > 0 || (await bookDue(ctx)));
}

const ever = { from: new Date(0), before: new Date('2200-01-01T00:00:00Z') }

/** A store's books, whose numbers and times are checked. */
export async function booksOf({ ctx }: Pick<TestApp, 'ctx'>, storeId: string): Promise<Movement[]> {
  const lines = await listMovements(ctx.db, storeId as Movement['storeId'], ever, 0, 10_000)
  for (const [i, line] of lines.entries()) {
    assert.equal(line.number, i + 1, 'without gaps')
    assert(line.bookedAt >= (lines[i - 1]?.bookedAt ?? new Date(0)), 'in the order of time')
    if (line.reverses !== null) {
      const before = lines[line.reverses - 1]
      assert(before && before.number < line.number)
      assert.deepEqual([before.amount, before.paymentId], [-line.amount, line.paymentId])
    }
  }
  return lines
}

/** Each line in a few words. */
export function inShort(lines: readonly Movement[]): string[] {
  return lines.map(({ type, amount, value, reverses }) =>
    [type, amount, value ?? 'no value', ...(reverses === null ? [] : [`of ${reverses}`])].join(' '),
  )
}
