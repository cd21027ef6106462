import assert from 'node:assert/strict'
import type { Actor, CheckoutPayment, CheckoutStatus } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type CheckoutId, type LinkId, newId, type StoreId } from '../ids.ts'
import { creditFromJson, creditJson, type RawCredit, toCheckoutPayment } from '../payments/credits/credit.ts'
import type { Quote } from '../rates/quote.ts'
import { arrow, type Checkout, type Option, toStoreWire } from './checkout.ts'

type Reader = Database | Transaction

export type CheckoutRow = {
  id: CheckoutId
  store_id: StoreId
  link_id: LinkId | null
  order_id: string
  price_amount: string
  price_currency: string
  success_redirect_url: string | null
  cancel_url: string | null
  description: string | null
  metadata: Record<string, string> | null
  rate: (Omit<Quote, 'asOf'> & { asOf: string }) | null
  options: Option[]
  finality: Checkout['finality']
  status: CheckoutStatus
  version: number
  created_at: Date
  expires_at: Date
}

export const storeColumns = `c.*, (
    select ${creditJson('k')} from credits k where k.checkout_id = c.id and k.disposition = 'exact' and k.orphaned_at is null
  ) as credit, exists (select 1 from refunds r where r.checkout_id = c.id) as has_refunds`

export type StoreColumns = CheckoutRow & { credit: RawCredit | null; has_refunds: boolean }

export function toStoreRow(row: StoreColumns): StoreRow {
  return {
    checkout: toCheckout(row),
    payment: row.credit && toCheckoutPayment(creditFromJson(row.credit)),
    hasRefunds: row.has_refunds,
  }
}

export type StoreRow = {
  readonly checkout: Checkout
  readonly payment: CheckoutPayment | null
  readonly hasRefunds: boolean
}

export async function readCheckout(
  db: Reader,
  storeId: StoreId,
  checkoutId: string,
): Promise<StoreRow | null> {
  const [row] = await db.query<StoreColumns>(
    `select ${storeColumns} from checkouts c where c.id = $2 and c.store_id = $1`,
    [storeId, checkoutId],
  )
  return row ? toStoreRow(row) : null
}

export async function lockCheckout(
  tx: Transaction,
  storeId: StoreId,
  checkoutId: string,
): Promise<{ checkout: Checkout; isPastExpiry: boolean } | null> {
  const [row] = await tx.query<CheckoutRow & { is_past_expiry: boolean }>(
    'select *, expires_at <= clock() as is_past_expiry from checkouts where id = $2 and store_id = $1 for update',
    [storeId, checkoutId],
  )
  return row ? { checkout: toCheckout(row), isPastExpiry: row.is_past_expiry } : null
}

/**
 * Changes the status of checkouts: status, version and event in one statement. The caller holds their row locks, so a
 * version mismatch is a bug.
 */
export async function moveCheckouts(
  ctx: Context,
  tx: Transaction,
  checkouts: readonly Checkout[],
  to: {
    status: CheckoutStatus
    payments?: ReadonlyMap<CheckoutId, CheckoutPayment | null>
    /** Who asked for the change. Absent if time or the chain caused it. */
    actor?: Actor
  },
  now: Date,
): Promise<Checkout[]> {
  const moves = checkouts.map((before) => {
    const checkout: Checkout = { ...before, status: to.status, version: before.version + 1 }
    const input = {
      id: checkout.id,
      status: checkout.status,
      version: checkout.version,
      event_id: newId('evt', ctx.config.cell, now),
      type: arrow(before.status, to.status).event,
      data: { checkout: toStoreWire(ctx, checkout, to.payments?.get(checkout.id) ?? null) },
      created_at: now,
      ...(to.actor && { actor: to.actor }),
    }
    return { checkout, input }
  })
  const [row] = await tx.query<{ moved: number }>(
    `with input as (
       select * from json_to_recordset($1) as i (
         id text, status text, version integer, event_id text, type text, data json, created_at timestamptz, actor json)
     ), moved as (
       update checkouts c set status = i.status, version = i.version
       from input i where c.id = i.id and c.version = i.version - 1
       returning c.store_id, i.*
     ), told as (
       insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)
       select event_id, store_id, type, id, version, data, created_at, actor from moved
     )
     select count(*)::int as moved from moved`,
    [JSON.stringify(moves.map(({ input }) => input))],
  )
  assert.equal(row?.moved, moves.length)
  return moves.map(({ checkout }) => checkout)
}

/** Marks checkouts whose pages have something new to show. */
export async function notePagesChanged(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query('update checkouts set page_version = page_version + 1 where id = any($1)', [checkoutIds])
}

/**
 * SQL condition: whether a network that checkout `c` offers is still being compared with the database after a restore.
 * Until then the checkout may already be paid there although it is OPEN, so no payer is asked to pay it on any network.
 */
export const isRestoringSql = `exists (select 1 from restores r, json_array_elements(c.options) o
  where r.finished_at is null and r.network = o ->> 'network')`

export function toCheckout(row: CheckoutRow): Checkout {
  return {
    id: row.id,
    storeId: row.store_id,
    linkId: row.link_id,
    orderId: row.order_id,
    priceAmount: row.price_amount,
    priceCurrency: row.price_currency,
    successRedirectUrl: row.success_redirect_url,
    cancelUrl: row.cancel_url,
    description: row.description,
    metadata: row.metadata,
    rate: row.rate && { ...row.rate, asOf: new Date(row.rate.asOf) },
    options: row.options,
    finality: row.finality,
    status: row.status,
    version: row.version,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
