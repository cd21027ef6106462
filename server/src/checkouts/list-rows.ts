import type { Database } from '../database/db.ts'
import type { CheckoutId, StoreId } from '../ids.ts'
import { type CreditRow, creditFromJson, creditJson, type RawCredit } from '../payments/credits/credit.ts'
import type { Checkout } from './checkout.ts'
import {
  type CheckoutRow,
  type StoreColumns,
  type StoreRow,
  storeColumns,
  toCheckout,
  toStoreRow,
} from './rows.ts'

/**
 * SQL for the list of a store's checkouts, newest first, in the order of an index. No index knows prices: with a price
 * in the filter a page looks through the next `windowRows` checkouts and ends there, even if it is short.
 */
const windowRows = 150

export type CheckoutFilter = {
  readonly status: string | null
  readonly orderId: string | null
  readonly priceCurrency: string | null
  /** Decimals in the price's currency. */
  readonly minPrice: string | null
  readonly maxPrice: string | null
}

export const noCheckoutFilter: CheckoutFilter = {
  status: null,
  orderId: null,
  priceCurrency: null,
  minPrice: null,
  maxPrice: null,
}

export type CheckoutRange = {
  readonly from: string
  readonly before: string
  readonly limit: number
}

export type CheckoutRows = {
  readonly rows: StoreRow[]
  /** Where the search ended, if it has not seen all there is. */
  readonly endedAt: CheckoutId | null
}

export async function listCheckouts(
  db: Database,
  storeId: StoreId,
  filter: CheckoutFilter,
  range: CheckoutRange,
): Promise<CheckoutRows> {
  const { found, endedAt } = await readRows<StoreColumns>(db, storeId, filter, range, storeColumns)
  return { rows: found.map(toStoreRow), endedAt }
}

/** More than one is rare; what comes after these is on the checkout's own screen. */
const receivedMax = 5

/** A checkout, and some of the money that came for it. */
export type ReceivedRow = { readonly checkout: Checkout; readonly received: readonly CreditRow[] }

export async function listWithReceived(
  db: Database,
  storeId: StoreId,
  filter: CheckoutFilter,
  range: CheckoutRange,
): Promise<{ readonly rows: ReceivedRow[]; readonly endedAt: CheckoutId | null }> {
  const { found, endedAt } = await readRows<CheckoutRow & { received: RawCredit[] | null }>(
    db,
    storeId,
    filter,
    range,
    `c.*, (select json_agg(r.credit) from (select ${creditJson('k')} as credit from credits k
       where k.checkout_id = c.id and k.orphaned_at is null limit ${receivedMax}) r) as received`,
  )
  const rows = found.map((row) => ({
    checkout: toCheckout(row),
    received: (row.received ?? []).map(creditFromJson),
  }))
  return { rows, endedAt }
}

/** Those of a store among these, by id. */
export async function readCheckouts(
  db: Database,
  storeId: StoreId,
  ids: readonly string[],
): Promise<Map<string, Checkout>> {
  const rows = await db.query<CheckoutRow>(
    'select * from checkouts where id = any($2) and (store_id = $1) is true',
    [storeId, ids],
  )
  return new Map(rows.map((row) => [row.id, toCheckout(row)]))
}

async function readRows<Row extends { readonly id: CheckoutId }>(
  db: Database,
  storeId: StoreId,
  filter: CheckoutFilter,
  { from, before, limit }: CheckoutRange,
  columns: string,
): Promise<{ readonly found: Row[]; readonly endedAt: CheckoutId | null }> {
  // Each combination of filters is a separate statement, so that each is planned for the right index.
  const { orderId, status, priceCurrency, minPrice, maxPrice } = filter
  const indexed = ['c.store_id = $1', 'c.id >= $2', 'c.id < $3']
  const values: unknown[] = [storeId, from, before, limit]
  if (orderId !== null) indexed.push(`c.order_id = $${values.push(orderId)}`)
  if (status !== null) {
    const isStatus = `c.status = $${values.push(status)}`
    // An order has few checkouts, a status may have millions: "is true" keeps the planner off the status index.
    indexed.push(orderId === null ? isStatus : `(${isStatus}) is true`)
  }
  const others = [
    ...(priceCurrency === null ? [] : [`c.price_currency = $${values.push(priceCurrency)}`]),
    ...(minPrice === null ? [] : [`c.price_amount::numeric >= $${values.push(minPrice)}::numeric`]),
    ...(maxPrice === null ? [] : [`c.price_amount::numeric <= $${values.push(maxPrice)}::numeric`]),
  ]
  const sql =
    others.length === 0
      ? `select ${columns}, true as matches, false as is_end from checkouts c
         where ${indexed.join(' and ')} order by c.id desc limit $4`
      : `select ${columns}, ${others.join(' and ')} as matches, c.place = ${windowRows} as is_end from (
           select c.*, row_number() over (order by c.id desc) as place from checkouts c
           where ${indexed.join(' and ')} order by c.id desc limit ${windowRows}
         ) c where (${others.join(' and ')}) or c.place = ${windowRows} order by c.id desc limit $4`
  const found = await db.query<Row & { matches: boolean; is_end: boolean }>(sql, values)
  return {
    found: found.filter(({ matches }) => matches),
    endedAt: found.find(({ is_end }) => is_end)?.id ?? null,
  }
}
