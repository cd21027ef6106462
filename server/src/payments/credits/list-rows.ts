import type { Disposition } from '@farthing/sdk'
import type { Database } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { rightOf } from './owner-rows.ts'
import { columns, isCurrent, isOfMode } from './store-rows.ts'

/**
 * SQL for the list of a store's payments, newest first. Every page is read in the order of an index, and reads a bounded
 * number of rows whatever the filters. Where an index knows the filters, it reads what it returns. The other filters
 * look through the next `windowRows` payments: the page then ends there, even if it is short, and the next one goes on.
 * In all of it, $1 is the store.
 */
const windowRows = 150

export type PaymentFilter = {
  readonly checkoutId: string | null
  readonly disposition: Disposition | null
  /** CAIP-2. */
  readonly network: string | null
  /** As addresses and hashes are stored. */
  readonly payer: string | null
  readonly transaction: string | null
  /** In the asset's smallest unit. */
  readonly minAmount: string | null
  readonly maxAmount: string | null
}

export const noPaymentFilter: PaymentFilter = {
  checkoutId: null,
  disposition: null,
  network: null,
  payer: null,
  transaction: null,
  minAmount: null,
  maxAmount: null,
}

export type PaymentRange = {
  readonly from: string
  readonly before: string
  readonly limit: number
}

export type PaymentRows = {
  readonly rows: CreditRow[]
  /** Where the search ended, if it has not seen all there is. */
  readonly endedAt: string | null
}

export async function listPayments(
  db: Database,
  storeId: StoreId,
  filter: PaymentFilter,
  range: PaymentRange,
): Promise<PaymentRows> {
  const values: unknown[] = [storeId, range.before, range.limit, range.from]
  const sql = filter.transaction === null ? inOrder(filter, values) : ofTransaction(filter, values)
  const found = await db.query<RawCredit & { matches: boolean; is_end: boolean }>(sql, values)
  const end = found.findIndex(({ is_end }) => is_end)
  const seen = end < 0 ? found : found.slice(0, end + 1)
  return {
    rows: seen.filter(({ matches }) => matches).map(toCreditRow),
    endedAt: found[end]?.payment_id ?? null,
  }
}

/** Each combination of filters is its own statement, so that each is planned for the index that serves it. */
function inOrder(filter: PaymentFilter, values: unknown[]): string {
  const { checkoutId, disposition, payer } = filter
  const indexed = ['k.payment_id < $2', 'k.payment_id >= $4']
  const others = amountAndNetwork(filter, values)
  const isOfPayer = payer === null ? null : `k.payer = $${values.push(payer)}`
  if (checkoutId !== null) indexed.push(`k.checkout_id = $${values.push(checkoutId)}`)
  if (disposition !== null) {
    const is = `k.disposition = $${values.push(disposition)}`
    // The index on payments that are not exact is used only if the query states that condition. Payers have their own.
    if (disposition === 'exact' || payer !== null) others.push(is)
    else indexed.push(is, "k.disposition <> 'exact'")
  }
  const ofCheckouts = isOfPayer === null ? indexed : [...indexed, isOfPayer]
  const branches = [
    within(
      'select k.* from credits k where k.store_id = $1 and k.checkout_id is not null',
      ofCheckouts,
      others,
      isCurrent,
    ),
  ]
  if (checkoutId === null && (disposition ?? 'unmatched') === 'unmatched') {
    const rest = isOfPayer === null ? others : [...others, isOfPayer]
    branches.push(
      unmatched(values, (source, isOwn) => within(source, indexed, rest, `${isCurrent} and ${isOwn}`)),
    )
  }
  return `select ${columns}, k.matches, k.is_end from (${branches.map((sql) => `(${sql})`).join(' union all ')}) k
    order by k.payment_id desc limit $3`
}

/**
 * SQL: the newest payments of `source`; those that only `others` can tell apart, within the window. What `always` asks
 * costs most, and is asked last.
 */
function within(
  source: string,
  indexed: readonly string[],
  others: readonly string[],
  always: string,
): string {
  const all = `${source} and ${indexed.join(' and ')}`
  if (others.length === 0)
    return `select k.*, null::bigint as place, true as matches, false as is_end
      from (${all} and ${always} order by k.payment_id desc limit $3) k`
  const matches = `case when ${others.join(' and ')} then ${always} else false end`
  return `select k.*, ${matches} as matches, k.place = ${windowRows} as is_end from (
      select k.*, row_number() over (order by k.payment_id desc) as place from (${all}) k
      order by k.payment_id desc limit ${windowRows}
    ) k where (${matches}) or k.place = ${windowRows} order by k.payment_id desc limit $3`
}

/** SQL: the unmatched payments that the store owns, read wallet by wallet, newest first. */
function unmatched(values: unknown[], newest: (source: string, isOwn: string) => string): string {
  const isOwn = `${isOfMode(values, 'mine.mode')}
    and ${rightOf('mine.mode')} is not null`
  // What cannot be the store's is left out before its owners are looked up: wallets that others have proven, and what
  // came before the store had the wallet.
  return `select k.* from (
       select w.pay_to, s.mode, bool_or(w.proven_at is not null) as is_proven, min(w.created_at) as since
       from wallets w join stores s on s.id = w.store_id
       where s.id = $1 and (w.proven_at is not null or not exists (select 1 from wallets o
         join stores p on p.id = o.store_id and p.mode = s.mode where o.pay_to = w.pay_to and o.proven_at is not null))
       group by w.pay_to, s.mode
     ) mine cross join lateral (${newest(
       `select k.* from credits k where k.pay_to = mine.pay_to and k.checkout_id is null
         and (mine.is_proven or k.included_at >= mine.since)`,
       isOwn,
     )}) k`
}

/** SQL: the payments of one transaction, of which there are as many as fit into it. */
function ofTransaction(filter: PaymentFilter, values: unknown[]): string {
  const { checkoutId, disposition, payer, transaction } = filter
  const hash = `k.transaction_hash = $${values.push(transaction)}`
  const conditions = [
    'k.payment_id < $2',
    'k.payment_id >= $4',
    ...amountAndNetwork(filter, values),
    isCurrent,
  ]
  if (checkoutId !== null) conditions.push(`k.checkout_id = $${values.push(checkoutId)}`)
  if (disposition !== null) conditions.push(`k.disposition = $${values.push(disposition)}`)
  if (payer !== null) conditions.push(`k.payer = $${values.push(payer)}`)
  // Live payments and those that a reorganisation took have an index each.
  return `select ${columns}, true as matches, false as is_end from (
      select * from credits k where ${hash} and k.orphaned_at is null
      union all select * from credits k where ${hash} and k.orphaned_at is not null
    ) k join stores s on s.id = $1
    where ${conditions.join(' and ')} and case when k.checkout_id is not null then k.store_id = $1
      else ${isOfMode(values, 's.mode')} and ${rightOf('s.mode')} is not null end
    order by k.payment_id desc limit $3`
}

function amountAndNetwork({ network, minAmount, maxAmount }: PaymentFilter, values: unknown[]): string[] {
  return [
    ...(network === null ? [] : [`k.network = $${values.push(network)}`]),
    ...(minAmount === null ? [] : [`k.amount >= $${values.push(minAmount)}::numeric`]),
    ...(maxAmount === null ? [] : [`k.amount <= $${values.push(maxAmount)}::numeric`]),
  ]
}
