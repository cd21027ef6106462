import assert from 'node:assert/strict'
import { numberEvents } from '../../../../src/checkouts/number-events.ts'
import { newId } from '../../../../src/ids.ts'
import type { TestApp } from '../../../support/app.ts'
import { completeByHand, setStatus } from '../../../support/by-hand.ts'
import type { StoreClient } from '../../../support/store.ts'

/** Writes an event without a number, as the transaction of the change that it reports would. */
export async function tell(test: TestApp, checkoutId: string, type: string): Promise<void> {
  await test.ctx.db.query(
    `with moved as (update checkouts set version = version + 1 where id = $1 returning *)
     insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at)
     select $2, store_id, $3, id, version, '{}', clock() from moved`,
    [checkoutId, newId('evt', '00', new Date()), type],
  )
}

/** A checkout that is paid, whose event waits for its number. Returns the checkout's id. */
export async function payOne(test: TestApp, shop: StoreClient, orderId = 'order-1'): Promise<string> {
  const { id } = await shop.create({ orderId, priceAmount: '12.50', priceCurrency: 'USD' })
  await completeByHand(test, id)
  await tell(test, id, 'checkout.completed')
  return id
}

/** The chain takes the payment back for good. */
export async function reverse(test: TestApp, checkoutId: string): Promise<void> {
  await test.ctx.db.query(
    'update credits set orphaned_at = clock(), reversed_at = clock() where checkout_id = $1',
    [checkoutId],
  )
  await setStatus(test, checkoutId, 'OPEN')
  await tell(test, checkoutId, 'payment.reversed')
}

/** The chain has the payment after all. */
export async function bringBack(test: TestApp, checkoutId: string): Promise<void> {
  await test.ctx.db.query(
    'update credits set orphaned_at = null, reversed_at = null where checkout_id = $1',
    [checkoutId],
  )
  await setStatus(test, checkoutId, 'COMPLETED')
  await tell(test, checkoutId, 'checkout.completed')
}

export async function numberAll({ ctx }: Pick<TestApp, 'ctx'>): Promise<void> {
  while ((await numberEvents(ctx)) > 0);
}

export type Row = {
  readonly series: string
  readonly year: number
  readonly number: number
  readonly checkoutId: string
  readonly isVoid: boolean
  readonly day: string
  readonly legalName: string | null
}

/** A store's receipts, in the order of their numbers. */
export async function receiptsOf({ ctx }: TestApp, storeId: string): Promise<Row[]> {
  return await ctx.db.query<Row>(
    `select series, year, number, checkout_id as "checkoutId", void_at is not null as "isVoid",
       issued_on::text as day, legal_name as "legalName"
     from buyer_receipts where store_id = $1 order by series, year, number`,
    [storeId],
  )
}

/** Asserts that each series and year begins at 1 and has no gap. */
export function assertConsecutive(rows: readonly Row[]): void {
  for (const [series, some] of Map.groupBy(rows, ({ series, year }) => `${series} ${year}`))
    assert.deepEqual(
      some.map(({ number }) => number),
      some.map((_, place) => place + 1),
      series,
    )
}
