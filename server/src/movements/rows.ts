import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { toSafeNumber } from '../safe-number.ts'
import type { Movement } from './movement.ts'

/** A line about to be booked. Its number and the time follow when it is. */
export type NewMovement = Omit<Movement, 'number' | 'bookedAt'>

/**
 * Books lines of these stores in this order, and adds them to the sums of their quarter hour and to their wallets' balances. The caller holds the
 * stores' counters, so one process at a time numbers a store's lines, and it took them in an earlier statement, so this
 * one sees every line before. The time is read here, after the locks, and is never before that of an earlier line or
 * of a range that was exported as complete.
 */
export async function insertMovements(tx: Transaction, lines: readonly NewMovement[]): Promise<void> {
  await tx.query(
    `with at as materialized (select wall_clock() as now), lines as (
       select * from json_to_recordset($1) as l (line bigint, "storeId" text, id text, type text,
         "happenedAt" timestamptz, network text, asset text, amount numeric, wallet text, transaction text,
         place integer, "paymentId" text, "refundId" text, "checkoutId" text, "orderId" text, "priceAmount" text,
         "priceCurrency" text, rate text, "rateSource" text, "rateTime" timestamptz, reverses bigint, actor json,
         disposition text, value numeric, "valueCurrency" text, "valueRate" numeric, "valueRateSource" text,
         "valueRateTime" timestamptz)
     ), before as (
       select s."storeId", coalesce(m.number, 0) as number, greatest(at.now, m.booked_at, c.until) as booked_at
       from (select distinct "storeId" from lines) s cross join at
       left join lateral (select number, booked_at from movements where store_id = s."storeId"
         order by number desc limit 1) m on true
       left join movement_closings c on c.store_id = s."storeId"
     ), booked as (
       insert into movements (store_id, number, id, type, happened_at, booked_at, network, asset, amount, wallet,
         transaction_hash, place, payment_id, refund_id, checkout_id, order_id, price_amount, price_currency, rate,
         rate_source, rate_time, reverses, actor_type, actor_id, disposition, value, value_currency, value_rate,
         value_rate_source, value_rate_time)
       select l."storeId", b.number + row_number() over (partition by l."storeId" order by l.line), l.id, l.type,
         l."happenedAt", b.booked_at, l.network, l.asset, l.amount, l.wallet, l.transaction, l.place, l."paymentId",
         l."refundId", l."checkoutId", l."orderId", l."priceAmount", l."priceCurrency", l.rate, l."rateSource",
         l."rateTime", l.reverses, l.actor ->> 'type', l.actor ->> 'id', l.disposition, l.value, l."valueCurrency",
         l."valueRate", l."valueRateSource", l."valueRateTime"
       from lines l join before b on b."storeId" = l."storeId"
       returning *
     ), moved as (
       select store_id, wallet, network, asset, date_bin('15 minutes', booked_at, 'epoch') as starts_at,
         coalesce(sum(amount) filter (where type = 'payment'), 0) as received,
         coalesce(sum(amount) filter (where type in ('payment_reversed', 'payment_ceded')), 0) as reversed,
         coalesce(sum(amount) filter (where type in ('refund', 'refund_reversed')), 0) as refunded
       from booked where wallet is not null group by 1, 2, 3, 4, 5
     ), balanced as (
       insert into movement_balances as t (store_id, wallet, network, asset, starts_at, received, reversed, refunded)
       select m.store_id, m.wallet, m.network, m.asset, m.starts_at, m.received + coalesce(p.received, 0),
         m.reversed + coalesce(p.reversed, 0), m.refunded + coalesce(p.refunded, 0)
       from moved m left join lateral (select * from movement_balances where store_id = m.store_id
         and wallet = m.wallet and network = m.network and asset = m.asset order by starts_at desc limit 1) p on true
       order by 1, 2, 3, 4
       on conflict (store_id, wallet, network, asset, starts_at) do update set received = excluded.received,
         reversed = excluded.reversed, refunded = excluded.refunded
     )
     insert into movement_quarters as q (store_id, starts_at, type, network, asset, currency, lines, amount, value,
       unvalued)
     select store_id, date_bin('15 minutes', booked_at, 'epoch'), type, network, asset, value_currency, count(*),
       sum(amount), coalesce(sum(value), 0), coalesce(sum(amount) filter (where value is null), 0)
     from booked where type not in ('acceptance', 'dismissal') group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6
     on conflict (store_id, starts_at, type, network, asset, currency) do update set lines = q.lines + excluded.lines,
       amount = q.amount + excluded.amount, value = q.value + excluded.value, unvalued = q.unvalued + excluded.unvalued`,
    [
      JSON.stringify(
        lines.map((line, place) => ({ ...line, line: place.toString(), amount: line.amount.toString() })),
      ),
    ],
  )
}

export type MovementRow = Omit<Movement, 'number' | 'amount' | 'reverses'> & {
  number: string
  amount: string
  reverses: string | null
}

/** SQL: the columns of a row `m` that `toMovement` reads. */
export const movementColumns = `m.store_id as "storeId", m.number::text as number, m.id, m.type,
  m.happened_at as "happenedAt", m.booked_at as "bookedAt", m.network, m.asset, m.amount::text as amount, m.wallet,
  m.transaction_hash as transaction, m.place, m.payment_id as "paymentId", m.refund_id as "refundId",
  m.checkout_id as "checkoutId", m.order_id as "orderId", m.price_amount as "priceAmount",
  m.price_currency as "priceCurrency", m.rate, m.rate_source as "rateSource", m.rate_time as "rateTime",
  m.reverses::text as reverses, case when m.actor_type is not null
    then json_build_object('type', m.actor_type, 'id', m.actor_id) end as actor,
  m.disposition, m.value::text as value, m.value_currency as "valueCurrency", m.value_rate::text as "valueRate",
  m.value_rate_source as "valueRateSource", m.value_rate_time as "valueRateTime"`

export function toMovement({ number, amount, reverses, ...row }: MovementRow): Movement {
  return {
    ...row,
    number: toSafeNumber(BigInt(number)),
    amount: BigInt(amount),
    reverses: reverses === null ? null : toSafeNumber(BigInt(reverses)),
  }
}

/** A range of `bookedAt`: months of books, never days on which blocks came. */
export type BookedRange = { readonly from: Date; readonly before: Date }

/**
 * Whether no line of the range can come any more, whatever happens to clocks from here on. Call it before reading a
 * range that must be complete, in a statement of its own: it waits for a process that is booking for the store.
 * A range that is not over yet is not closed.
 */
export async function closeRange(
  db: Database | Transaction,
  storeId: StoreId,
  { before }: BookedRange,
): Promise<boolean> {
  const [row] = await db.query<{ closed: boolean }>('select close_movements($1, $2) as closed', [
    storeId,
    before,
  ])
  return row?.closed ?? false
}

/** SQL: the lines `m` of a store ($1) that were booked from $2 and before $3, by their numbers, which follow the time. */
export const inRange = `m.store_id = $1
  and m.number > coalesce((select p.number from movements p where p.store_id = $1 and p.booked_at < $2
    order by p.booked_at desc, p.number desc limit 1), 0)
  and m.number < coalesce((select n.number from movements n where n.store_id = $1 and n.booked_at >= $3
    order by n.booked_at, n.number limit 1), 9223372036854775807)`

/** A store's lines in a range, in their order, after a number. */
export async function listMovements(
  db: Database | Transaction,
  storeId: StoreId,
  { from, before }: BookedRange,
  after: number,
  limit: number,
): Promise<Movement[]> {
  const rows = await db.query<MovementRow>(
    `select ${movementColumns} from movements m where ${inRange} and m.number > $4 order by m.number limit $5`,
    [storeId, from, before, after, limit],
  )
  return rows.map(toMovement)
}

/** The sums of a quarter hour. Their type, network and token are in `movement_quarters`' key. */
export type QuarterSum = Pick<Movement, 'type' | 'network' | 'asset'> & {
  readonly startsAt: Date
  readonly currency: string
  readonly lines: number
  readonly amount: bigint
  /** In millionths of the currency. */
  readonly value: bigint
  /** The part of the amount that has no value. */
  readonly unvalued: bigint
}

/** The sums of a store's quarter hours that begin in a range, in order. */
export async function listQuarterSums(
  db: Database | Transaction,
  storeId: StoreId,
  { from, before }: BookedRange,
): Promise<QuarterSum[]> {
  const rows = await db.query<
    Omit<QuarterSum, 'amount' | 'value' | 'unvalued'> & { amount: string; value: string; unvalued: string }
  >(
    `select starts_at as "startsAt", type, network, asset, currency, lines, amount::text as amount,
       trunc(value * 1000000)::text as value, unvalued::text as unvalued
     from movement_quarters where store_id = $1 and starts_at >= $2 and starts_at < $3
     order by starts_at, type, network, asset, currency`,
    [storeId, from, before],
  )
  return rows.map(({ amount, value, unvalued, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    value: BigInt(value),
    unvalued: BigInt(unvalued),
  }))
}

/** When the store's first line was booked; null if it has none. */
export async function findFirstBooked(db: Database, storeId: StoreId): Promise<Date | null> {
  const [row] = await db.query<{ at: Date }>(
    'select booked_at as at from movements where store_id = $1 order by number limit 1',
    [storeId],
  )
  return row?.at ?? null
}
