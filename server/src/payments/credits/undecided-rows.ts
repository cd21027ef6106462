import type { Database } from '../../database/db.ts'
import { isId, type StoreId } from '../../ids.ts'
import { type CreditRow, type RawCredit, toCreditRow } from './credit.ts'
import { rightOf } from './owner-rows.ts'
import { columns, isOfMode, readPayment, type StorePayment } from './store-rows.ts'

/**
 * SQL for money that completed no checkout and that nobody has decided about. The indexes hold nothing else, so that a
 * store that has dismissed thousands costs no more than another. Of a store's checkouts, and of each of its wallets, the
 * newest `windowRows` are looked through: what strangers send to a wallet has no limit. So that it costs them something to
 * fill these, less than a cent without a checkout is left out: it is in the list of payments. In all of it, $1 is the
 * store.
 */
const windowRows = 150

/** A cent of a token of six decimals, the fewest that tokens have. The index has it too (migration 0032). */
const centUnits = 10_000n

const isOpen = 'k.orphaned_at is null and k.dismissed_at is null and k.accepted_at is null'

function undecided(values: unknown[], rows = windowRows): string {
  const newest = (condition: string) =>
    `(select k.*, case when k.checkout_id is not null then true else ${rightOf('s.mode')} end as may_decide
      from (select * from credits k where ${condition} and ${isOpen} order by k.payment_id desc limit ${rows}) k
      join stores s on s.id = $1 where k.checkout_id is not null or ${isOfMode(values, 's.mode')})`
  const branches = [
    newest("k.store_id = $1 and k.checkout_id is not null and k.disposition <> 'exact'"),
    `(select k.* from (select distinct pay_to from wallets where store_id = $1) w cross join lateral ${newest(
      `k.pay_to = w.pay_to and k.checkout_id is null and k.amount >= ${centUnits}`,
    )} k)`,
  ]
  return `(select * from (${branches.join(' union all ')}) k where k.may_decide is not null)`
}

/** Newest first. `window`: how many of each kind are looked through, for those who only want a glance. */
export async function listUndecided(
  db: Database,
  storeId: StoreId,
  limit: number,
  window = windowRows,
): Promise<StorePayment[]> {
  const values: unknown[] = [storeId, limit]
  const rows = await db.query<RawCredit & { may_decide: boolean }>(
    `select ${columns}, k.may_decide from ${undecided(values, window)} k order by k.payment_id desc limit $2`,
    values,
  )
  return rows.map((row) => ({ ...toCreditRow(row), mayDecide: row.may_decide }))
}

/** One of them by its id, whichever it is: also one that is not among the newest, or that is less than a cent. */
export async function readUndecided(
  db: Database,
  storeId: StoreId,
  paymentId: string,
): Promise<StorePayment | null> {
  const payment = isId('pay', paymentId) ? await readPayment(db, storeId, paymentId) : null
  return payment && isUndecided(payment) ? payment : null
}

/** Whether it completed nothing and nobody has decided about it. */
export function isUndecided({
  disposition,
  isOrphaned,
  dismissedAt,
  acceptedAt,
}: Pick<CreditRow, 'disposition' | 'isOrphaned' | 'dismissedAt' | 'acceptedAt'>): boolean {
  return disposition !== 'exact' && !isOrphaned && dismissedAt === null && acceptedAt === null
}

/** Whether it is too little to be listed among what is undecided. */
export function isDust({ checkoutId, amount }: Pick<CreditRow, 'checkoutId' | 'amount'>): boolean {
  return checkoutId === null && amount < centUnits
}

/** How many there are, up to `max`. */
export async function countUndecided(db: Database, storeId: StoreId, max: number): Promise<number> {
  const values: unknown[] = [storeId, max]
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from (select 1 from ${undecided(values)} k limit $2) k`,
    values,
  )
  return row?.count ?? 0
}
