import assert from 'node:assert/strict'
import type { Page, StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { firstIdAt, isId, type StoreId } from '../ids.ts'
import { invalid, type Mistake, Problem } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { refundFacts } from '../refunds/read.ts'
import { listByCheckouts } from '../refunds/rows.ts'
import { checkText } from '../stores/check-text.ts'
import { type Checkout, orderIdBytesMax, toStoreWire } from './checkout.ts'
import {
  type CheckoutFilter,
  type CheckoutRange,
  listWithReceived as listReceivedRows,
  listCheckouts as listRows,
  noCheckoutFilter,
  type ReceivedRow,
} from './list-rows.ts'
import { readCheckout as readRow, type StoreRow } from './rows.ts'

export async function readCheckout(
  ctx: Context,
  storeId: StoreId,
  checkoutId: string,
): Promise<StoreCheckout> {
  const row = isId('ch', checkoutId) ? await readRow(ctx.db, storeId, checkoutId) : null
  if (!row) throw new Problem('not_found', 'No such checkout.')
  const [wire] = await withRefunds(ctx, [row])
  assert(wire)
  return wire
}

/** As the store sees them. Refunds are read only where there are any. */
async function withRefunds(ctx: Context, rows: readonly StoreRow[]): Promise<StoreCheckout[]> {
  const ids = rows.filter(({ hasRefunds }) => hasRefunds).map(({ checkout }) => checkout.id)
  const refunds = ids.length === 0 ? [] : await listByCheckouts(ctx.db, ids)
  return rows.map(({ checkout, payment }) => ({
    ...toStoreWire(ctx, checkout, payment),
    ...refundFacts(refunds.filter(({ checkoutId }) => checkoutId === checkout.id)),
  }))
}

/** More checkouts of one order than anybody chooses from. */
const foundMax = 5

/** The unpaid checkouts that somebody means by an order or a checkout's id, newest first. */
export async function findUnpaid(ctx: Context, storeId: StoreId, text: string): Promise<Checkout[]> {
  if (checkText('', text, orderIdBytesMax).length > 0) return []
  const byId = isId('ch', text) ? await readRow(ctx.db, storeId, text) : null
  const { rows } = byId
    ? { rows: [byId] }
    : await listRows(
        ctx.db,
        storeId,
        { ...noCheckoutFilter, orderId: text },
        { from: 'ch_', before: 'ch~', limit: foundMax },
      )
  return rows.map(({ checkout }) => checkout).filter(({ status }) => status !== 'COMPLETED')
}

export type CheckoutQuery = Partial<CheckoutFilter> & {
  readonly createdFrom?: Date | null
  readonly createdBefore?: Date | null
  readonly cursor?: string | null
  readonly limit: number
}

/**
 * Newest first. The cursor is the last id that was looked at, so new checkouts do not shift the list. With a price in
 * the filter it may be one that does not match: then a page can be short, or empty, although another follows.
 */
export async function listCheckouts(
  ctx: Context,
  storeId: StoreId,
  query: CheckoutQuery,
): Promise<Page<StoreCheckout>> {
  const { data, nextCursor } = await readPage(ctx, storeId, query, listRows)
  return { data: await withRefunds(ctx, data), nextCursor }
}

/** The same list with the money that came for each. */
export async function listWithReceived(
  ctx: Context,
  storeId: StoreId,
  query: CheckoutQuery,
): Promise<Page<ReceivedRow>> {
  return await readPage(ctx, storeId, query, listReceivedRows)
}

async function readPage<Row extends { readonly checkout: Checkout }>(
  ctx: Context,
  storeId: StoreId,
  { createdFrom, createdBefore, cursor = null, limit, ...given }: CheckoutQuery,
  list: (
    db: Database,
    storeId: StoreId,
    filter: CheckoutFilter,
    range: CheckoutRange,
  ) => Promise<{ readonly rows: Row[]; readonly endedAt: string | null }>,
): Promise<Page<Row>> {
  const filter = { ...noCheckoutFilter, ...given }
  if (cursor !== null && !isId('ch', cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  const priceCurrency = filter.priceCurrency === null ? null : parseCurrency(filter.priceCurrency)
  const mistakes: Mistake[] = [
    ...(filter.orderId === null ? [] : checkText('orderId', filter.orderId, orderIdBytesMax)),
    ...checkPrices(filter, priceCurrency),
  ]
  if (mistakes.length > 0) throw invalid(...mistakes)
  const { cell } = ctx.config
  const end = createdBefore ? firstIdAt('ch', cell, createdBefore) : 'ch~'
  const { rows, endedAt } = await list(
    ctx.db,
    storeId,
    { ...filter, priceCurrency },
    {
      from: createdFrom ? firstIdAt('ch', cell, createdFrom) : 'ch_',
      before: cursor !== null && cursor < end ? cursor : end,
      limit: limit + 1,
    },
  )
  const page = rows.slice(0, limit)
  return {
    data: page,
    nextCursor: rows.length > limit ? (page.at(-1)?.checkout.id ?? null) : endedAt,
  }
}

/** Prices in different currencies cannot be compared. */
function checkPrices(filter: CheckoutFilter, parsed: string | null): Mistake[] {
  const hasPrice = filter.minPrice !== null || filter.maxPrice !== null
  if (parsed !== null || (filter.priceCurrency === null && !hasPrice)) return []
  return [{ pointer: 'priceCurrency', code: 'currency', detail: 'Must be an ISO 4217 code, such as USD.' }]
}
