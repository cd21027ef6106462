import type { Database } from '../../database/db.ts'
import { firstIdAt, type StoreId } from '../../ids.ts'
import type { CreditRow } from '../../payments/credits/credit.ts'
import type { Checkout } from '../checkout.ts'
import { type CheckoutRow, toCheckout } from '../rows.ts'

/** An unpaid checkout that an unmatched payment may have been meant for, and why. */
export type Likely = {
  readonly checkout: Checkout
  /** A buyer named this transaction on the checkout's page. Transactions are public, so that proves nothing. */
  readonly isNamed: boolean
  /** What the checkout asked for in the payment's token, nearest to what came; null if it takes other tokens only. */
  readonly due: bigint | null
  /** Whether what came is at most a tenth more or less than that. */
  readonly isNear: boolean
}

/** No index contains amounts, so only this many checkouts before the payment are compared. */
const windowRows = 60
/** A payment usually belongs to a checkout of the last days. Members can search for an older one. */
const windowDays = 7
/** A checkout with another amount is offered only if it was created shortly before. */
const shortlyMinutes = 60
const likelyMax = 3
/** Anybody can name a transaction on any number of pages. */
const namedMax = 2

/**
 * The unpaid checkouts that a payment may have been meant for: those whose amount is near, nearest first, and those that
 * somebody named the payment for, whatever their amount.
 */
export async function listLikely(
  db: Database,
  storeId: StoreId,
  cell: string,
  payment: Pick<CreditRow, 'paymentId' | 'network' | 'asset' | 'amount' | 'firstBlockTime'>,
): Promise<Likely[]> {
  const { firstBlockTime: at } = payment
  const rows = await db.query<CheckoutRow & { is_named: boolean; due: string | null; is_near: boolean }>(
    `with named as (
       select c.* from payment_hints h join checkouts c on c.id = h.checkout_id and c.store_id = $1 where h.payment_id = $2
     ), recent as (
       select c.* from checkouts c where c.store_id = $1 and c.id >= $6 and c.id < $7 order by c.id desc limit ${windowRows}
     ), weighed as (
       select c.*, true as is_named from named c
       union all select c.*, false from recent c where c.id not in (select id from named)
     ), judged as (
       select c.*, d.due, coalesce(abs($5::numeric - d.due) * 10 <= d.due, false) as is_near
       from weighed c left join lateral (
         select a.due from (
           select o.amount as due from json_to_recordset(c.options) as o (network text, asset text, amount numeric)
             where o.network = $3 and lower(o.asset) = lower($4)
           union all select r.amount from reserved_amounts r where r.checkout_id = c.id and r.network = $3
             and lower(r.asset) = lower($4)
         ) a order by abs($5::numeric - a.due) limit 1
       ) d on true
       where c.status in ('OPEN', 'EXPIRED', 'CANCELED')
     )
     (select * from judged where is_near and (is_named or due = $5::numeric
        or created_at > $8::timestamptz - make_interval(mins => ${shortlyMinutes}))
      order by abs($5::numeric - due), id desc limit ${likelyMax})
     union all
     (select * from judged where is_named and not is_near order by id desc limit ${namedMax})`,
    [
      storeId,
      payment.paymentId,
      payment.network,
      payment.asset,
      payment.amount.toString(),
      firstIdAt('ch', cell, new Date(at.getTime() - windowDays * 86_400_000)),
      firstIdAt('ch', cell, at),
      at,
    ],
  )
  return rows.map((row) => ({
    checkout: toCheckout(row),
    isNamed: row.is_named,
    due: row.due === null ? null : BigInt(row.due),
    isNear: row.is_near,
  }))
}

/** The checkout of a payment that came late or had the wrong amount. */
export type Owed = {
  readonly checkout: Checkout
  /** The amount asked for in that token, in its smallest unit; null if the checkout did not offer the token. */
  readonly due: bigint | null
}

/** The checkouts of those payments that have one, by payment id. */
export async function readOwed(
  db: Database,
  storeId: StoreId,
  payments: readonly Pick<CreditRow, 'paymentId' | 'checkoutId' | 'network' | 'asset'>[],
): Promise<Map<string, Owed>> {
  const asked = payments
    .filter(({ checkoutId }) => checkoutId !== null)
    .map(({ paymentId, checkoutId, network, asset }) => ({ paymentId, checkoutId, network, asset }))
  const rows = await db.query<CheckoutRow & { payment_id: string; due: string | null }>(
    `select c.*, i."paymentId" as payment_id, coalesce(r.amount, (
         select o.amount from json_to_recordset(c.options) as o (network text, asset text, amount numeric)
         where o.network = i.network and lower(o.asset) = lower(i.asset) limit 1))::text as due
     from json_to_recordset($2) as i ("paymentId" text, "checkoutId" text, network text, asset text)
     join checkouts c on c.id = i."checkoutId" and c.store_id = $1
     left join reserved_amounts r on r.checkout_id = c.id and r.network = i.network and r.asset = i.asset`,
    [storeId, JSON.stringify(asked)],
  )
  return new Map(
    rows.map((row) => [
      row.payment_id,
      { checkout: toCheckout(row), due: row.due === null ? null : BigInt(row.due) },
    ]),
  )
}
