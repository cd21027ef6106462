import type { Disposition } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import { type CheckoutId, isId, type StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { hintsFor, networksOf, rightOf } from './rows.ts'

/** SQL for a store's payments: a single one, the list, and the undecided ones. $1 is always the store. */

const columns = `k.*, false as is_included_again, false as is_claimed, false as is_reserved, ${hintsFor('$1')},
  (select json_build_object('text', n.note, 'actor', n.actor, 'notedAt', n.noted_at) from payment_notes n
    where n.payment_id = k.payment_id and n.store_id = $1) as note`

/**
 * One row per payment, no matter how often the chain has reorganised: the live inclusion, or else the last one, once it
 * can't return. Until then, the payment is not listed.
 */
const isCurrent = `(k.orphaned_at is null or k.reversed_at is not null and not exists (
  select 1 from credits o where o.payment_id = k.payment_id
    and (o.orphaned_at is null or (o.included_at, o.block_hash) > (k.included_at, k.block_hash))))`

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
    `select ${columns}, k.may_decide from (
       select k.*, case when k.checkout_id is not null then k.store_id = $1 or null
         when ${isOfMode(values, 's.mode')} then ${rightOf('s.mode')} end as may_decide
       from credits k join stores s on s.id = $1 where k.payment_id = $2 and ${isCurrent}
     ) k where k.may_decide is not null`,
    values,
  )
  return row ? toStorePayment(row) : null
}

function toStorePayment(row: RawCredit & { may_decide: boolean }): StorePayment {
  return { ...toCreditRow(row), mayDecide: row.may_decide }
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

/** How many payments one query reads at most, no matter how many strangers have sent. */
const windowRows = 150

export type PaymentFilter = {
  readonly checkoutId: string | null
  readonly disposition: Disposition | null
  /** CAIP-2. */
  readonly network: string | null
  /** As addresses and hashes are stored. */
  readonly payer: string | null
  readonly transaction: string | null
  /** How the payer or the transaction is shown: how it starts and how it ends. */
  readonly short: { readonly starts: string; readonly ends: string } | null
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
  short: null,
  minAmount: null,
  maxAmount: null,
}

export type PaymentRange = {
  readonly from: string
  readonly before: string
  readonly limit: number
  /** How many payments to read for a filter that no index covers. */
  readonly windowRows?: number
}

export type PaymentRows = {
  readonly rows: CreditRow[]
  /** Where the search ended, if it has not read everything. */
  readonly endedAt: string | null
}

/**
 * Lists the newest payments first. Every page is read in the order of an index, and reads a limited number of rows with
 * any filter. A filter with an index reads only the rows it returns. Any other filter reads the next `windowRows`
 * payments: the page ends there, even if it is short, and the next page continues.
 */
export async function listPayments(
  db: Database,
  storeId: StoreId,
  filter: PaymentFilter,
  range: PaymentRange,
): Promise<PaymentRows> {
  const values: unknown[] = [storeId, range.before, range.limit, range.from]
  const sql =
    filter.transaction === null ? inOrder(filter, values, range.windowRows) : ofTransaction(filter, values)
  const found = await db.query<RawCredit & { matches: boolean; is_end: boolean }>(sql, values)
  const end = found.findIndex(({ is_end }) => is_end)
  const seen = end < 0 ? found : found.slice(0, end + 1)
  return {
    rows: seen.filter(({ matches }) => matches).map(toCreditRow),
    endedAt: found[end]?.payment_id ?? null,
  }
}

/** Each combination of filters is a separate statement, so that each is planned for its index. */
function inOrder(filter: PaymentFilter, values: unknown[], window = windowRows): string {
  const { checkoutId, disposition, payer } = filter
  const indexed = ['k.payment_id < $2', 'k.payment_id >= $4']
  const others = notIndexed(filter, values)
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
      window,
    ),
  ]
  if (checkoutId === null && (disposition ?? 'unmatched') === 'unmatched') {
    const rest = isOfPayer === null ? others : [...others, isOfPayer]
    branches.push(
      unmatched(values, (source, isOwn) =>
        within(source, indexed, rest, `${isCurrent} and ${isOwn}`, window),
      ),
    )
  }
  return `select ${columns}, k.matches, k.is_end from (${branches.map((sql) => `(${sql})`).join(' union all ')}) k
    order by k.payment_id desc limit $3`
}

/**
 * SQL: the newest payments of `source`. Conditions without an index, `others`, are checked within the window only.
 * `always` is the most expensive and comes last.
 */
function within(
  source: string,
  indexed: readonly string[],
  others: readonly string[],
  always: string,
  window: number,
): string {
  const all = `${source} and ${indexed.join(' and ')}`
  if (others.length === 0)
    return `select k.*, null::bigint as place, true as matches, false as is_end
      from (${all} and ${always} order by k.payment_id desc limit $3) k`
  const matches = `case when ${others.join(' and ')} then ${always} else false end`
  return `select k.*, ${matches} as matches, k.place = ${window} as is_end from (
      select k.*, row_number() over (order by k.payment_id desc) as place from (${all}) k
      order by k.payment_id desc limit ${window}
    ) k where (${matches}) or k.place = ${window} order by k.payment_id desc limit $3`
}

/** SQL: the unmatched payments that the store owns, read wallet by wallet, newest first. */
function unmatched(values: unknown[], newest: (source: string, isOwn: string) => string): string {
  const isOwn = `${isOfMode(values, 'mine.mode')}
    and ${rightOf('mine.mode')} is not null`
  // Payments that can't belong to the store are left out before their owners are looked up: those to wallets that
  // others have proven, and those from before the store had the wallet.
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

/** SQL: the payments of one transaction. A block's size bounds their number. */
function ofTransaction(filter: PaymentFilter, values: unknown[]): string {
  const { checkoutId, disposition, payer, transaction } = filter
  const hash = `k.transaction_hash = $${values.push(transaction)}`
  const conditions = ['k.payment_id < $2', 'k.payment_id >= $4', ...notIndexed(filter, values), isCurrent]
  if (checkoutId !== null) conditions.push(`k.checkout_id = $${values.push(checkoutId)}`)
  if (disposition !== null) conditions.push(`k.disposition = $${values.push(disposition)}`)
  if (payer !== null) conditions.push(`k.payer = $${values.push(payer)}`)
  // Live payments and those that a reorganisation removed have separate indexes.
  return `select ${columns}, true as matches, false as is_end from (
      select * from credits k where ${hash} and k.orphaned_at is null
      union all select * from credits k where ${hash} and k.orphaned_at is not null
    ) k join stores s on s.id = $1
    where ${conditions.join(' and ')} and case when k.checkout_id is not null then k.store_id = $1
      else ${isOfMode(values, 's.mode')} and ${rightOf('s.mode')} is not null end
    order by k.payment_id desc limit $3`
}

function notIndexed({ network, short, minAmount, maxAmount }: PaymentFilter, values: unknown[]): string[] {
  const form = short && `$${values.push(`${short.starts}%${short.ends}`)}`
  return [
    ...(form === null ? [] : [`(k.payer like ${form} or k.transaction_hash like ${form})`]),
    ...(network === null ? [] : [`k.network = $${values.push(network)}`]),
    ...(minAmount === null ? [] : [`k.amount >= $${values.push(minAmount)}::numeric`]),
    ...(maxAmount === null ? [] : [`k.amount <= $${values.push(maxAmount)}::numeric`]),
  ]
}

/** A cent of a token with six decimals, the fewest that tokens have. The index uses it too (migration 0032). */
const centUnits = 10_000n

const isOpen = 'k.orphaned_at is null and k.dismissed_at is null and k.accepted_at is null'

type UndecidedFilter = {
  readonly disposition: Disposition | null
  /** CAIP-2. */
  readonly network: string | null
  /** Only payments with smaller ids: older ones. */
  readonly before: string
}

const allUndecided: UndecidedFilter = { disposition: null, network: null, before: 'pay~' }

/**
 * SQL: money that completed no checkout, and has been neither accepted nor dismissed. Its indexes contain nothing else,
 * so dismissed payments cost nothing here. It reads the newest `rows` of the store's checkouts, and of each of its
 * wallets; `is_end` marks the last that was read. Amounts under a cent without a checkout are left out, so that
 * strangers must pay to fill that window; the list of payments has them.
 */
function undecided(values: unknown[], filter: UndecidedFilter, rows: number): string {
  const { disposition, network, before } = filter
  const isOlder = `k.payment_id < $${values.push(before)}`
  const matches = [
    ...(disposition === null ? [] : [`k.disposition = $${values.push(disposition)}`]),
    ...(network === null ? [] : [`k.network = $${values.push(network)}`]),
    'true',
  ].join(' and ')
  const newest = (condition: string) =>
    `(select k.*, k.place = ${rows} as is_end, case when not (${matches}) then null
        when k.checkout_id is not null then true
        when ${isOfMode(values, 's.mode')} then ${rightOf('s.mode')} end as may_decide
      from (select k.*, row_number() over (order by k.payment_id desc) as place from credits k
        where ${condition} and ${isOpen} and ${isOlder} order by k.payment_id desc limit ${rows}) k
      join stores s on s.id = $1)`
  const ofCheckouts = () =>
    newest("k.store_id = $1 and k.checkout_id is not null and k.disposition <> 'exact'")
  const ofWallets = () =>
    `(select k.* from (select distinct pay_to from wallets where store_id = $1) w cross join lateral ${newest(
      `k.pay_to = w.pay_to and k.checkout_id is null and k.amount >= ${centUnits}`,
    )} k)`
  const branches = [
    ...(disposition === 'unmatched' ? [] : [ofCheckouts()]),
    ...(disposition === null || disposition === 'unmatched' ? [ofWallets()] : []),
  ]
  return `(select * from (${branches.join(' union all ')}) k where k.may_decide is not null or k.is_end)`
}

type UndecidedRows = {
  readonly rows: StorePayment[]
  /** Older ones follow before this id; null if there are none. */
  readonly before: string | null
}

/** Newest first. `window` limits how many rows of each kind are read, so a page with a filter can be short. */
export async function listUndecided(
  db: Database,
  storeId: StoreId,
  limit: number,
  filter = allUndecided,
  window = windowRows,
): Promise<UndecidedRows> {
  const values: unknown[] = [storeId, limit + 1]
  const found = await db.query<RawCredit & { may_decide: boolean | null; is_end: boolean }>(
    `select ${columns}, k.may_decide, k.is_end from ${undecided(values, filter, window)} k
     order by k.payment_id desc limit $2`,
    values,
  )
  // What is older than the end of one kind's window may be missing.
  const end = found.findIndex(({ is_end }) => is_end)
  const seen = end < 0 ? found : found.slice(0, end + 1)
  const rows = seen.flatMap(({ may_decide, ...row }) =>
    may_decide === null ? [] : toStorePayment({ ...row, may_decide }),
  )
  const shown = rows.slice(0, limit)
  const isCut = rows.length > limit
  return { rows: shown, before: (isCut ? shown.at(-1)?.paymentId : found[end]?.payment_id) ?? null }
}

/** Those of the store's payments with these ids, whether or not they are decided. */
export async function readPayments(
  db: Database,
  storeId: StoreId,
  paymentIds: readonly string[],
): Promise<StorePayment[]> {
  const found = await Promise.all(paymentIds.map((id) => readPayment(db, storeId, id)))
  return found.filter((payment) => payment !== null)
}

/** Reads one by its id, even outside the window or below a cent. */
export async function readUndecided(
  db: Database,
  storeId: StoreId,
  paymentId: string,
): Promise<StorePayment | null> {
  const payment = isId('pay', paymentId) ? await readPayment(db, storeId, paymentId) : null
  return payment && isUndecided(payment) ? payment : null
}

/** Whether a payment completed nothing, and has been neither accepted nor dismissed. */
export function isUndecided({
  disposition,
  isOrphaned,
  dismissedAt,
  acceptedAt,
}: Pick<CreditRow, 'disposition' | 'isOrphaned' | 'dismissedAt' | 'acceptedAt'>): boolean {
  return disposition !== 'exact' && !isOrphaned && dismissedAt === null && acceptedAt === null
}

/** Whether a payment is too small to be listed as undecided. */
export function isDust({ checkoutId, amount }: Pick<CreditRow, 'checkoutId' | 'amount'>): boolean {
  return checkoutId === null && amount < centUnits
}

/** Counts them, up to `max`. */
export async function countUndecided(
  db: Database,
  storeId: StoreId,
  max: number,
  filter = allUndecided,
  window = windowRows,
): Promise<number> {
  const values: unknown[] = [storeId, max]
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from (select 1 from ${undecided(values, filter, window)} k
       where k.may_decide is not null limit $2) k`,
    values,
  )
  return row?.count ?? 0
}
