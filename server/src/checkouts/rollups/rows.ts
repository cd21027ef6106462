import type { StoreCheckout } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'
import type { Option } from '../checkout.ts'
import { type Figures, fromStored, type Seen, type StoredFigures, toStored } from './rollup.ts'

type Reader = Pick<Database, 'query'>

/** A part of a store's log: the events after one number, up to another. */
export type Uncounted = { readonly storeId: StoreId; readonly after: string; readonly until: string }

/** The position of counting in a store's log, and how far it goes next. */
export type Stretch = Uncounted & {
  /** The store's zone, and the zone in which its days were summed. */
  readonly zone: string
  readonly summedIn: string | null
}

/** Stores with events that are not counted yet, ordered by id, starting after a given store. */
export async function storesToCount(db: Database, after: string, limit: number): Promise<StoreId[]> {
  const rows = await db.query<{ store_id: StoreId }>(
    `select c.store_id from event_counters c left join rollup_cursors r on r.store_id = c.store_id
     where c.store_id > $1 and c.last_sequence > coalesce(r.sequence, 0) order by c.store_id limit $2`,
    [after, limit],
  )
  return rows.map(({ store_id }) => store_id)
}

/**
 * Locks the cursors that no other process holds, and creates missing ones. Until the commit, only this process counts
 * these stores' events.
 */
export async function lockStretches(
  tx: Transaction,
  storeIds: readonly StoreId[],
  eventsMax: number,
): Promise<Stretch[]> {
  await tx.query(
    `insert into rollup_cursors (store_id) select id from unnest($1::text[]) as id order by id on conflict do nothing`,
    [storeIds],
  )
  return await tx.query<Stretch>(
    `select r.store_id as "storeId", r.sequence::text as after, r.time_zone as "summedIn",
       greatest(r.sequence, least(c.last_sequence, r.sequence + $2))::text as until,
       s.time_zone as zone
     from rollup_cursors r join event_counters c on c.store_id = r.store_id join stores s on s.id = r.store_id
     where r.store_id = any($1) order by r.store_id for update of r skip locked`,
    [storeIds, eventsMax],
  )
}

const stretches = 'unnest($1::text[], $2::bigint[], $3::bigint[]) as s (store_id, after, until)'

function bind(list: readonly Uncounted[]): unknown[] {
  return [list.map(({ storeId }) => storeId), list.map(({ after }) => after), list.map(({ until }) => until)]
}

/** How many checkouts were created in each quarter hour, by the events of these stretches. */
export async function readMade(
  tx: Reader,
  list: readonly Uncounted[],
): Promise<{ storeId: StoreId; startsAt: Date; made: number }[]> {
  return await tx.query(
    `select e.store_id as "storeId", date_bin('15 minutes', e.created_at, 'epoch') as "startsAt", count(*)::int as made
     from ${stretches}
     join events e on e.store_id = s.store_id and e.sequence > s.after and e.sequence <= s.until
     where e.type = 'checkout.created' group by 1, 2`,
    bind(list),
  )
}

type RawSeen = StoreCheckout | null

/**
 * The changes of status that end a checkout or undo its end, each with the state before it. Each version has one event
 * that shows its status. If version 2 is PROCESSING, as in nearly all checkouts, it was OPEN before, and that changes
 * nothing here.
 */
export async function readChanges(
  tx: Reader,
  list: readonly Uncounted[],
): Promise<{ storeId: StoreId; before: Seen | null; now: Seen }[]> {
  const rows = await tx.query<{
    store_id: StoreId
    options: Option[]
    seen: NonNullable<RawSeen>
    at: Date
    before: RawSeen
    before_at: Date | null
  }>(
    `select e.store_id, c.options, e.data -> 'checkout' as seen, e.created_at as at,
       p.data -> 'checkout' as before, p.created_at as before_at
     from ${stretches}
     join events e on e.store_id = s.store_id and e.sequence > s.after and e.sequence <= s.until
     join checkouts c on c.id = e.checkout_id
     left join events p on p.checkout_id = e.checkout_id and p.checkout_version = e.checkout_version - 1
       and case when p.type like 'checkout.%' then '' else p.id end = ''
       and e.type in ('checkout.completed', 'checkout.processing')
     where e.type in ('checkout.completed', 'checkout.expired', 'checkout.canceled')
       or e.type = 'checkout.processing' and e.checkout_version > 2`,
    bind(list),
  )
  return rows.map(({ store_id, options, seen, at, before, before_at }) => ({
    storeId: store_id,
    now: toSeen(seen, at, options),
    before: before && before_at && toSeen(before, before_at, options),
  }))
}

function toSeen(checkout: StoreCheckout, at: Date, options: readonly Option[]): Seen {
  const { status, priceAmount, priceCurrency, payment } = checkout
  return { status, priceAmount, priceCurrency, payment, options, at, createdAt: new Date(checkout.createdAt) }
}

/** A row of either table. `at` is the start of a quarter hour in ISO 8601, or a day such as 2026-11-16. */
export type Row = { readonly storeId: StoreId; readonly at: string; readonly figures: Figures }

type Span = 'quarter' | 'day'
const spans = {
  quarter: {
    table: 'rollup_quarters',
    key: 'starts_at',
    type: 'timestamptz',
    shown: `to_char(starts_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS".000Z"')`,
  },
  day: { table: 'rollup_days', key: 'day', type: 'date', shown: 'day::text' },
} as const

type RawRow = { storeId: StoreId; at: string; figures: StoredFigures }

const toRow = (row: RawRow): Row => ({ ...row, figures: fromStored(row.figures) })

export async function readRows(
  tx: Transaction,
  span: Span,
  wanted: readonly Pick<Row, 'storeId' | 'at'>[],
): Promise<Row[]> {
  const { table, key, type, shown } = spans[span]
  const rows = await tx.query<RawRow>(
    `select r.store_id as "storeId", ${shown} as at, r.figures
     from unnest($1::text[], $2::${type}[]) as w (store_id, at) join ${table} r on r.store_id = w.store_id and r.${key} = w.at`,
    [wanted.map(({ storeId }) => storeId), wanted.map(({ at }) => at)],
  )
  return rows.map(toRow)
}

export async function writeRows(tx: Transaction, span: Span, rows: readonly Row[]): Promise<void> {
  const { table, key, type } = spans[span]
  await tx.query(
    `insert into ${table} (store_id, ${key}, figures)
     select * from unnest($1::text[], $2::${type}[], $3::jsonb[]) order by 1, 2
     on conflict (store_id, ${key}) do update set figures = excluded.figures`,
    [
      rows.map(({ storeId }) => storeId),
      rows.map(({ at }) => at),
      rows.map(({ figures }) => JSON.stringify(toStored(figures))),
    ],
  )
}

/** All of a store's quarter hours, oldest first, from a given one. */
export async function listQuarters(
  tx: Transaction,
  storeId: StoreId,
  after: string,
  limit: number,
): Promise<Row[]> {
  const { shown } = spans.quarter
  const rows = await tx.query<RawRow>(
    `select store_id as "storeId", ${shown} as at, figures from rollup_quarters
     where store_id = $1 and starts_at > $2 order by starts_at limit $3`,
    [storeId, after, limit],
  )
  return rows.map(toRow)
}

export async function moveCursors(
  tx: Transaction,
  moved: readonly { readonly storeId: StoreId; readonly until: string; readonly zone: string }[],
): Promise<void> {
  await tx.query(
    `update rollup_cursors r set sequence = m.until, time_zone = m.zone
     from unnest($1::text[], $2::bigint[], $3::text[]) as m (store_id, until, zone) where r.store_id = m.store_id`,
    [moved.map(({ storeId }) => storeId), moved.map(({ until }) => until), moved.map(({ zone }) => zone)],
  )
}

export async function deleteDays(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('delete from rollup_days where store_id = $1', [storeId])
}

/** Deletes a store's figures. Locks the cursor first, so a process that is counting finishes before. */
export async function resetStore(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('update rollup_cursors set sequence = 0, time_zone = null where store_id = $1', [storeId])
  await tx.query('delete from rollup_quarters where store_id = $1', [storeId])
  await deleteDays(tx, storeId)
}

/** Whether the store's log still has every event. Retention deletes the events of old checkouts. */
export async function isLogWhole(db: Database, storeId: StoreId): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from event_counters c where c.store_id = $1 and c.last_sequence =
       (select count(*) from events e where e.store_id = $1 and e.sequence is not null)`,
    [storeId],
  )
  return rows.length > 0
}

/** The days of a period, in no order, because they are added up. */
export async function readDays(
  db: Database,
  storeId: StoreId,
  from: string,
  to: string,
): Promise<{ at: string; figures: Figures }[]> {
  const rows = await db.query<RawRow>(
    `select store_id as "storeId", day::text as at, figures from rollup_days
     where store_id = $1 and day >= $2 and day <= $3`,
    [storeId, from, to],
  )
  return rows.map(toRow)
}

export async function readQuarters(
  db: Database,
  storeId: StoreId,
  from: Date,
  before: Date,
): Promise<{ at: string; figures: Figures }[]> {
  const { shown } = spans.quarter
  const rows = await db.query<RawRow>(
    `select store_id as "storeId", ${shown} as at, figures from rollup_quarters
     where store_id = $1 and starts_at >= $2 and starts_at < $3`,
    [storeId, from, before],
  )
  return rows.map(toRow)
}

/** The uncounted part of the store's log. */
export async function readUncounted(db: Reader, storeId: StoreId): Promise<Uncounted> {
  const [row] = await db.query<{ after: string; until: string }>(
    `select coalesce(r.sequence, 0)::text as after, c.last_sequence::text as until
     from event_counters c left join rollup_cursors r on r.store_id = c.store_id where c.store_id = $1`,
    [storeId],
  )
  return { storeId, after: row?.after ?? '0', until: row?.until ?? '0' }
}
