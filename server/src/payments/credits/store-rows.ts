import type { Database, Transaction } from '../../database/db.ts'
import type { CheckoutId, StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { hintsFor, networksOf, rightOf } from './owner-rows.ts'

/** SQL for a store's payments: those it decides about. In all of it, $1 is the store. */
export const columns = `k.*, false as is_included_again, false as is_claimed, false as is_reserved, ${hintsFor('$1')},
  (select json_build_object('text', n.note, 'actor', n.actor, 'notedAt', n.noted_at) from payment_notes n
    where n.payment_id = k.payment_id and n.store_id = $1) as note`

/**
 * One row per payment, however often the chain has reorganised: the live inclusion, or else the last one, once it is
 * known not to return. Until that is known, the payment is not listed.
 */
export const isCurrent = `(k.orphaned_at is null or k.reversed_at is not null and not exists (
  select 1 from credits o where o.payment_id = k.payment_id
    and (o.orphaned_at is null or (o.included_at, o.block_hash) > (k.included_at, k.block_hash))))`

/** SQL: whether credit `k` is on a network of this mode. */
export function isOfMode(values: unknown[], mode: string): string {
  const [live, test] = [values.push(networksOf('live')), values.push(networksOf('test'))]
  return `k.network = any(case ${mode} when 'live' then $${live}::text[] else $${test}::text[] end)`
}

/** A payment that the store can see; `mayDecide`: whether it may also decide about it. */
export type StorePayment = CreditRow & { readonly mayDecide: boolean }

export async function readPayment(
  db: Database | Transaction,
  storeId: StoreId,
  paymentId: string,
): Promise<StorePayment | null> {
  const values: unknown[] = [storeId, paymentId]
  const [row] = await db.query<RawCredit & { may_decide: boolean }>(
    `select ${columns}, k.may_decide from (
       select k.*, case when k.checkout_id is not null then k.store_id = $1 or null
         when ${isOfMode(values, 's.mode')} then ${rightOf('s.mode')} end as may_decide
       from credits k join stores s on s.id = $1 where k.payment_id = $2 and ${isCurrent}
     ) k where k.may_decide is not null`,
    values,
  )
  return row ? { ...toCreditRow(row), mayDecide: row.may_decide } : null
}

/** The checkout that one of the store's payments belongs to. */
export async function findCheckoutOf(
  db: Database,
  storeId: StoreId,
  paymentId: string,
): Promise<CheckoutId | null> {
  const [row] = await db.query<{ id: CheckoutId }>(
    'select checkout_id as id from credits where payment_id = $2 and store_id = $1 and checkout_id is not null limit 1',
    [storeId, paymentId],
  )
  return row?.id ?? null
}

/** Locks a payment's checkout, so that nobody evaluates or deletes it until the transaction ends. */
export async function holdCheckout(tx: Transaction, checkoutId: string): Promise<void> {
  await tx.query('select 1 as one from checkouts where id = $1 for no key update', [checkoutId])
}

/**
 * Accepts a payment for a checkout, of which the caller knows that the store may decide. A transfer by authorization is
 * claimed for it in the same statement, so that nobody can present it for another checkout later. False if somebody
 * already has.
 */
export async function acceptPayment(
  tx: Transaction,
  storeId: StoreId,
  paymentId: string,
  checkoutId: string,
): Promise<boolean> {
  const rows = await tx.query(
    `with found as (
       select * from credits where payment_id = $2 and orphaned_at is null and (checkout_id is null or store_id = $1)
     ), claimed as (
       insert into authorizations as a (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, reason, claimed_at, resolved_at)
       select network, asset, payer, nonce, $3, $1, 'rejected', pay_to, amount, 0, 0, '', 'accepted', clock(), clock()
       from found where nonce is not null
       on conflict (network, asset, payer, nonce) do update set checkout_id = $3, store_id = $1
         where (a.checkout_id is null and a.refund_id is null) or a.checkout_id = $3
       returning a.nonce
     )
     update credits k set checkout_id = $3, store_id = $1, accepted_at = clock(),
       disposition = case when k.checkout_id is null then 'overpaid' else k.disposition end
     from found f
     where k.network = f.network and k.block_hash = f.block_hash and k.log_index = f.log_index
       and (f.nonce is null or exists (select 1 from claimed))
     returning k.payment_id`,
    [storeId, paymentId, checkoutId],
  )
  return rows.length > 0
}

export async function dismissPayment(tx: Transaction, storeId: StoreId, paymentId: string): Promise<void> {
  await tx.query(
    `update credits set dismissed_at = clock()
     where payment_id = $2 and orphaned_at is null and dismissed_at is null
       and (checkout_id is null or store_id = $1)`,
    [storeId, paymentId],
  )
}

export async function hasExact(tx: Transaction, checkoutId: string): Promise<boolean> {
  const rows = await tx.query(
    "select 1 as one from credits where checkout_id = $1 and disposition = 'exact' and orphaned_at is null",
    [checkoutId],
  )
  return rows.length > 0
}
