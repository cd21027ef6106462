import assert from 'node:assert/strict'
import type { CheckoutStatus, Page, StoreCheckout } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { type CheckoutId, firstIdAt, isId, type LinkId, type StoreId } from '../ids.ts'
import { type CreditRow, creditFromJson, creditJson, type RawCredit } from '../payments/credits/credit.ts'
import { invalid, type Mistake, Problem } from '../problems.ts'
import { parseCurrency } from '../rates/iso4217.ts'
import { refundFacts } from '../refunds/read.ts'
import { listByCheckouts } from '../refunds/rows.ts'
import { checkText } from '../stores/check-text.ts'
import { type Checkout, orderIdBytesMax, toStoreWire } from './checkout.ts'
import {
  type CheckoutRow,
  readCheckout as readRow,
  type StoreColumns,
  type StoreRow,
  storeColumns,
  toCheckout,
  toStoreRow,
} from './rows.ts'

type CheckoutFilter = {
  readonly status: string | null
  readonly orderId: string | null
  /** One of these order ids. */
  readonly orderIds: readonly string[] | null
  /** Each in the order id, the description or the metadata. */
  readonly words: readonly string[] | null
  readonly linkId: string | null
  readonly priceCurrency: string | null
  /** Decimals in the price's currency. */
  readonly minPrice: string | null
  readonly maxPrice: string | null
}

const noCheckoutFilter: CheckoutFilter = {
  status: null,
  orderId: null,
  orderIds: null,
  words: null,
  linkId: null,
  priceCurrency: null,
  minPrice: null,
  maxPrice: null,
}

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

/** Checkouts as the store sees them. Refunds are read only if there are any. */
async function withRefunds(ctx: Context, rows: readonly StoreRow[]): Promise<StoreCheckout[]> {
  const ids = rows.filter(({ hasRefunds }) => hasRefunds).map(({ checkout }) => checkout.id)
  const refunds = ids.length === 0 ? [] : await listByCheckouts(ctx.db, ids)
  return rows.map(({ checkout, payment }) => ({
    ...toStoreWire(ctx, checkout, payment),
    ...refundFacts(refunds.filter(({ checkoutId }) => checkoutId === checkout.id)),
  }))
}

/** A member can't choose from more checkouts of one order than this. */
const foundMax = 5
/** Those that are paid already are read too, and left out. */
const readMax = 50

/** How many of the newest checkouts are searched for a word. */
const wordWindow = 2_000

/** The unpaid checkouts with this checkout id or order id, or else with this text in what they are for, newest first. */
export async function findUnpaid(ctx: Context, storeId: StoreId, text: string): Promise<Checkout[]> {
  if (checkText('', text, orderIdBytesMax).length > 0) return []
  const byId = isId('ch', text) ? await readRow(ctx.db, storeId, text) : null
  const checkouts = byId ? [byId.checkout] : await listFound(ctx, storeId, { orderId: text }, listRows)
  const found =
    checkouts.length > 0 ? checkouts : await listFound(ctx, storeId, { words: [text] }, wordWindow)
  return found.filter(({ status }) => status !== 'COMPLETED').slice(0, foundMax)
}

async function listFound(
  ctx: Context,
  storeId: StoreId,
  wanted: Partial<CheckoutFilter>,
  windowRows: number,
): Promise<Checkout[]> {
  const filter = { ...noCheckoutFilter, ...wanted }
  const range = { from: 'ch_', before: 'ch~', limit: readMax, windowRows }
  return (await readRows<CheckoutRow>(ctx.db, storeId, filter, range, 'c.*')).found.map(toCheckout)
}

export type CheckoutQuery = Partial<CheckoutFilter> & {
  readonly createdFrom?: Date | null
  readonly createdBefore?: Date | null
  readonly cursor?: string | null
  readonly limit: number
  /** How many checkouts to read for a filter that no index covers. */
  readonly windowRows?: number
}

/**
 * Newest first. The cursor is the last id that was read, so new checkouts don't shift the list. With a price filter,
 * that checkout need not match, so a page can be short or empty although another page follows.
 */
export async function listCheckouts(
  ctx: Context,
  storeId: StoreId,
  query: CheckoutQuery,
): Promise<Page<StoreCheckout>> {
  const priceCurrency = checkCurrency(query)
  const asked = { ...query, priceCurrency }
  const { data, nextCursor } = await readPage<StoreColumns>(ctx, storeId, asked, storeColumns)
  return { data: await withRefunds(ctx, data.map(toStoreRow)), nextCursor }
}

/** The same list with the payments of each checkout. */
export async function listWithReceived(
  ctx: Context,
  storeId: StoreId,
  query: CheckoutQuery,
): Promise<Page<ReceivedRow>> {
  const { data, nextCursor } = await readPage<CheckoutRow & { received: RawCredit[] | null }>(
    ctx,
    storeId,
    query,
    `c.*, (select json_agg(r.credit) from (select ${creditJson('k')} as credit from credits k
       where k.checkout_id = c.id and k.orphaned_at is null limit ${receivedMax}) r) as received`,
  )
  const rows = data.map((row) => ({
    checkout: toCheckout(row),
    received: (row.received ?? []).map(creditFromJson),
  }))
  return { data: rows, nextCursor }
}

async function readPage<Row extends { readonly id: CheckoutId }>(
  ctx: Context,
  storeId: StoreId,
  { createdFrom, createdBefore, cursor = null, limit, windowRows = listRows, ...given }: CheckoutQuery,
  columns: string,
): Promise<Page<Row>> {
  const filter = { ...noCheckoutFilter, ...given }
  if (cursor !== null && !isId('ch', cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  const mistakes: Mistake[] = [
    ...(filter.orderId === null ? [] : checkText('orderId', filter.orderId, orderIdBytesMax)),
    ...(filter.linkId === null || isId('lnk', filter.linkId)
      ? []
      : [{ pointer: 'linkId', code: 'id', detail: 'Must be a link id, which begins with lnk_.' }]),
  ]
  if (mistakes.length > 0) throw invalid(...mistakes)
  const { cell } = ctx.config
  const end = createdBefore ? firstIdAt('ch', cell, createdBefore) : 'ch~'
  const range = {
    from: createdFrom ? firstIdAt('ch', cell, createdFrom) : 'ch_',
    before: cursor !== null && cursor < end ? cursor : end,
    limit: limit + 1,
    windowRows,
  }
  const { found, endedAt } = await readRows<Row>(ctx.db, storeId, filter, range, columns)
  const data = found.slice(0, limit)
  return { data, nextCursor: found.length > limit ? (data.at(-1)?.id ?? null) : endedAt }
}

/** Prices in different currencies cannot be compared: a program has to name one. */
function checkCurrency({ priceCurrency = null, minPrice, maxPrice }: CheckoutQuery): string | null {
  const parsed = priceCurrency === null ? null : parseCurrency(priceCurrency)
  if (parsed !== null || (priceCurrency === null && !minPrice && !maxPrice)) return parsed
  throw invalid({
    pointer: 'priceCurrency',
    code: 'currency',
    detail: 'Must be an ISO 4217 code, such as USD.',
  })
}

/** More than one is rare. The checkout's own screen lists all. */
const receivedMax = 5

/** A checkout, and up to `receivedMax` of its payments. */
export type ReceivedRow = { readonly checkout: Checkout; readonly received: readonly CreditRow[] }

/**
 * SQL for the list of a store's checkouts, newest first, in the order of an index. No index contains prices, so with a
 * price filter a page reads the next `windowRows` checkouts and ends there, even if it is short.
 */
const listRows = 150

type CheckoutRange = {
  readonly from: string
  readonly before: string
  readonly limit: number
  readonly windowRows: number
}

async function readRows<Row extends { readonly id: CheckoutId }>(
  db: Database,
  storeId: StoreId,
  filter: CheckoutFilter,
  { from, before, limit, windowRows }: CheckoutRange,
  columns: string,
): Promise<{ readonly found: Row[]; readonly endedAt: CheckoutId | null }> {
  // Each combination of filters is a separate statement, so that each is planned for the right index.
  const { orderId, orderIds, linkId, status } = filter
  const indexed = ['c.store_id = $1', 'c.id >= $2', 'c.id < $3']
  const values: unknown[] = [storeId, from, before, limit]
  if (orderId !== null) indexed.push(`c.order_id = $${values.push(orderId)}`)
  if (orderIds !== null) indexed.push(`c.order_id = any($${values.push(orderIds)}::text[])`)
  if (linkId !== null) {
    indexed[0] = '(c.store_id = $1) is true'
    indexed.push(`c.link_id = $${values.push(linkId)}`)
  }
  if (status !== null) {
    const isStatus = `c.status = $${values.push(status)}`
    // An order has few checkouts, but a status may have millions. "is true" keeps the planner off the index on
    // statuses.
    indexed.push(
      orderId === null && orderIds === null && linkId === null ? isStatus : `(${isStatus}) is true`,
    )
  }
  const others = notIndexed(filter, values)
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

function notIndexed(
  { words, priceCurrency, minPrice, maxPrice }: CheckoutFilter,
  values: unknown[],
): string[] {
  const text = "concat_ws(' ', c.order_id, c.description, c.metadata)"
  return [
    ...(words ?? []).map(
      (word) => `${text} ilike $${values.push(`%${word.replaceAll(/[\\%_]/g, '\\$&')}%`)}`,
    ),
    ...(priceCurrency === null ? [] : [`c.price_currency = $${values.push(priceCurrency)}`]),
    ...(minPrice === null ? [] : [`c.price_amount::numeric >= $${values.push(minPrice)}::numeric`]),
    ...(maxPrice === null ? [] : [`c.price_amount::numeric <= $${values.push(maxPrice)}::numeric`]),
  ]
}

/** The store's checkouts among these ids, by id. */
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

/** The content of a one-line summary of a checkout. */
export type Summary = {
  readonly id: CheckoutId
  readonly linkId: LinkId | null
  readonly orderId: string
  readonly description: string | null
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly status: CheckoutStatus
  readonly createdAt: Date
}

/** Summaries of these checkouts of the store, and of the newest ones that are being paid. */
export async function listSummaries(
  db: Database,
  storeId: StoreId,
  ids: readonly string[],
  processingMax: number,
): Promise<Summary[]> {
  return await db.query<Summary>(
    `select c.id, c.link_id as "linkId", c.order_id as "orderId", c.description,
       c.price_amount as "priceAmount", c.price_currency as "priceCurrency", c.status, c.created_at as "createdAt"
     from (
       select id from unnest($2::text[]) as id
       union
       (select id from checkouts where store_id = $1 and status = 'PROCESSING' order by id desc limit $3)
     ) wanted join checkouts c on c.id = wanted.id where c.store_id = $1`,
    [storeId, ids, processingMax],
  )
}
