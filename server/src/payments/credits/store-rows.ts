import type { Disposition } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { hintsFor, networksOf, ownersOf } from './owner-rows.ts'

/** SQL for a store's payments: those it lists and decides about. In all of it, $1 is the store. */
const columns = `k.*, false as is_included_again, false as is_claimed, false as is_reserved, ${hintsFor('$1')}`

/**
 * One row per payment, however often the chain has reorganised: the live inclusion, or else the last one, once it is
 * known not to return. Until that is known, the payment is not listed.
 */
const isCurrent = `(k.orphaned_at is null or k.reversed_at is not null) and not exists (
  select 1 from credits o where o.payment_id = k.payment_id and k.orphaned_at is not null
    and (o.orphaned_at is null or (o.included_at, o.block_hash) > (k.included_at, k.block_hash)))`

/** Newest first. */
export async function listPayments(
  db: Database,
  storeId: StoreId,
  page: { checkoutId: string | null; disposition: Disposition | null; before: string; limit: number },
): Promise<CreditRow[]> {
  // Each combination of filters is its own statement, so that each is planned for the index that serves it.
  const conditions = ['k.payment_id < $2']
  const values: unknown[] = [storeId, page.before, page.limit]
  if (page.checkoutId !== null) conditions.push(`k.checkout_id = $${values.push(page.checkoutId)}`)
  if (page.disposition !== null) {
    conditions.push(`k.disposition = $${values.push(page.disposition)}`)
    // The partial index on payments that are not exact is used only if the query states that condition.
    if (page.disposition !== 'exact') conditions.push("k.disposition <> 'exact'")
  }
  const filter = `${conditions.join(' and ')} and ${isCurrent} order by k.payment_id desc limit $3`
  const hasUnmatched = page.checkoutId === null && (page.disposition ?? 'unmatched') === 'unmatched'
  const rows = await db.query<RawCredit>(
    `select ${columns} from (
       (select k.* from credits k where k.store_id = $1 and k.checkout_id is not null and ${filter})
       ${hasUnmatched ? `union all (${unmatched(values, filter)})` : ''}
     ) k order by k.payment_id desc limit $3`,
    values,
  )
  return rows.map(toCreditRow)
}

/** SQL: the unmatched payments that the store owns, read wallet by wallet, newest first. */
function unmatched(values: unknown[], filter: string): string {
  // What cannot be the store's is left out before its owners are looked up: wallets that others have proven, and what
  // came before the store had the wallet.
  return `select k.* from (
       select w.pay_to, s.mode, bool_or(w.proven_at is not null) as is_proven, min(w.created_at) as since
       from wallets w join stores s on s.id = w.store_id
       where s.id = $1 and (w.proven_at is not null or not exists (select 1 from wallets o
         join stores p on p.id = o.store_id and p.mode = s.mode where o.pay_to = w.pay_to and o.proven_at is not null))
       group by w.pay_to, s.mode
     ) mine cross join lateral (
       select k.* from credits k where k.pay_to = mine.pay_to and k.checkout_id is null
         and (mine.is_proven or k.included_at >= mine.since)
         and ${isOfMode(values, 'mine.mode')}
         and exists (select 1 from ${ownersOf('mine.mode')} o where o.store_id = $1) and ${filter}
     ) k`
}

/** SQL: whether credit `k` is on a network of this mode. */
function isOfMode(values: unknown[], mode: string): string {
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
    `select ${columns}, k.checkout_id is not null or o.may_decide as may_decide
     from credits k join stores s on s.id = $1
     left join lateral ${ownersOf('s.mode')} o on o.store_id = s.id and ${isOfMode(values, 's.mode')}
     where k.payment_id = $2 and ${isCurrent}
       and case when k.checkout_id is null then o.store_id is not null else k.store_id = $1 end`,
    values,
  )
  return row ? { ...toCreditRow(row), mayDecide: row.may_decide } : null
}

/**
 * Accepts a payment for a checkout, of which the caller knows that the store may decide. A transfer by authorization is claimed for it in the same statement, so that nobody
 * can present it for another checkout later. False if somebody already has.
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
         where a.checkout_id is null or a.checkout_id = $3
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
