import type { Actor, EventObject, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId, EventId, StoreId } from '../ids.ts'
import { securityHours, securityTypes } from './security.ts'

type Reader = Database | Transaction

export type EventRow = {
  id: EventId
  sequence: string
  type: EventType
  checkout_id: CheckoutId | null
  checkout_version: number | null
  actor: Actor | null
  data: EventObject
  created_at: Date
}

/**
 * Events after a sequence, oldest first. `truncated` is the number up to which some may have been deleted, read together
 * with them: asked before, it might rise in between, and events would be missed.
 */
export async function listEvents(
  db: Database,
  storeId: StoreId,
  page: {
    after: bigint
    last: bigint
    type: string | null
    checkoutId: string | null
    actor: string | null
    limit: number
  },
): Promise<{ readonly rows: EventRow[]; readonly truncated: bigint }> {
  // Each combination of filters is a separate statement: a single one for all would sort a store's whole log.
  const range = 'sequence > $2 and sequence <= $4'
  // A checkout has few events, a log may have millions: "is true" keeps the planner off the index by sequence.
  const conditions = ['store_id = $1', page.checkoutId === null ? range : `(${range}) is true`]
  const values: unknown[] = [storeId, page.after.toString(), page.limit, page.last.toString()]
  if (page.checkoutId !== null) conditions.push(`checkout_id = $${values.push(page.checkoutId)}`)
  if (page.actor !== null) conditions.push(`actor ->> 'id' = $${values.push(page.actor)}`)
  if (page.type?.endsWith('.*')) conditions.push(`starts_with(type, $${values.push(page.type.slice(0, -1))})`)
  else if (page.type !== null) conditions.push(`type = $${values.push(page.type)}`)
  const rows = await db.query<EventRow & { truncated: string | null }>(
    `select e.*, l.truncated from (
       select (select last_sequence from truncated_logs where store_id = $1) as truncated
     ) l left join lateral (
       select ${columns} from events where ${conditions.join(' and ')} order by sequence limit $3
     ) e on true`,
    values,
  )
  return {
    rows: rows.filter(({ id }) => id !== null).map(({ truncated: _, ...row }) => row),
    truncated: BigInt(rows[0]?.truncated ?? '0'),
  }
}

const columns = 'id, sequence, type, checkout_id, checkout_version, actor, data, created_at'

/** Newest first: the events of a store from one sequence to another, both included. */
export async function listEventsBack(
  db: Database,
  storeId: StoreId,
  page: {
    from: bigint
    to: bigint
    type: string | null
    checkoutId: string | null
    actor: string | null
    isByActor: boolean
    limit: number
  },
): Promise<EventRow[]> {
  const range = 'sequence >= $2 and sequence <= $4'
  const conditions = ['store_id = $1', page.checkoutId === null ? range : `(${range}) is true`]
  const values: unknown[] = [storeId, page.from.toString(), page.limit, page.to.toString()]
  if (page.checkoutId !== null) conditions.push(`checkout_id = $${values.push(page.checkoutId)}`)
  if (page.actor !== null) conditions.push(`actor ->> 'id' = $${values.push(page.actor)}`)
  if (page.isByActor) conditions.push('actor is not null')
  if (page.type?.endsWith('.*')) conditions.push(`starts_with(type, $${values.push(page.type.slice(0, -1))})`)
  else if (page.type !== null) conditions.push(`type = $${values.push(page.type)}`)
  return await db.query<EventRow>(
    `select ${columns} from events where ${conditions.join(' and ')} order by sequence desc limit $3`,
    values,
  )
}

/** An event that has its number. */
export async function readEvent(db: Reader, storeId: StoreId, eventId: string): Promise<EventRow | null> {
  const [row] = await db.query<EventRow>(
    `select ${columns} from events where store_id = $1 and id = $2 and sequence is not null`,
    [storeId, eventId],
  )
  return row ?? null
}

export type LogEnd = {
  readonly epoch: number
  /** The sequence of the store's newest visible event; 0 if the log is empty. */
  readonly last: bigint
  /** Up to here, events may have been deleted with their checkouts. */
  readonly truncated: bigint
}

export async function readLogEnd(db: Reader, storeId: StoreId): Promise<LogEnd> {
  const [row] = await db.query<{ epoch: number; last: string | null; truncated: string | null }>(
    `select l.epoch, (select c.last_sequence from event_counters c where c.store_id = $1) as last,
       (select t.last_sequence from truncated_logs t where t.store_id = $1) as truncated
     from event_log l`,
    [storeId],
  )
  return {
    epoch: row?.epoch ?? 1,
    last: BigInt(row?.last ?? '0'),
    truncated: BigInt(row?.truncated ?? '0'),
  }
}

export async function lastSequences(
  db: Database,
  storeIds: readonly StoreId[],
): Promise<{ storeId: StoreId; last: bigint }[]> {
  const rows = await db.query<{ store_id: StoreId; last_sequence: string }>(
    'select store_id, last_sequence from event_counters where store_id = any($1)',
    [storeIds],
  )
  return rows.map((row) => ({ storeId: row.store_id, last: BigInt(row.last_sequence) }))
}

/** Stores with events that wait for their number, ordered by id, starting after a given store. */
export async function storesWithUnsequenced(db: Database, after: string, limit: number): Promise<StoreId[]> {
  // Walks the index from store to store: the cost depends on the number of stores, not of waiting events.
  const rows = await db.query<{ store_id: StoreId }>(
    `with recursive waiting as (
       (select store_id from events where sequence is null and store_id > $2 order by store_id limit 1)
       union all
       select (select e.store_id from events e where e.sequence is null and e.store_id > w.store_id
               order by e.store_id limit 1)
       from waiting w where w.store_id is not null
     )
     select store_id from waiting where store_id is not null limit $1`,
    [limit, after],
  )
  return rows.map(({ store_id }) => store_id)
}

/**
 * Locks the counters that no other process holds. Until we commit, only we can number their events. Deleted events are
 * under no unique index that would refuse their numbers a second time, so it is said here who is behind them.
 */
export async function lockCounters(
  tx: Transaction,
  storeIds: readonly StoreId[],
): Promise<{ readonly storeId: StoreId; readonly isBehindDeleted: boolean }[]> {
  return await tx.query<{ storeId: StoreId; isBehindDeleted: boolean }>(
    `select c.store_id as "storeId", coalesce(c.last_sequence < l.last_sequence, false) as "isBehindDeleted"
     from event_counters c left join truncated_logs l on l.store_id = c.store_id
     where c.store_id = any($1) order by c.store_id for update of c skip locked`,
    [storeIds],
  )
}

/**
 * Numbers the oldest waiting events of the locked stores, continuing from each store's counter, and creates their
 * deliveries: to enabled endpoints that subscribe to them, or to all (see security.ts). A delivery's id is its event's cell and time, followed by a hash of both ids. The endpoint's row is
 * updated even if it is already due: this waits for a process that is taking deliveries with that row locked, so that
 * it cannot mark the endpoint as idle without having seen these.
 */
export async function assignSequences(
  tx: Transaction,
  storeIds: readonly StoreId[],
  perStoreLimit: number,
): Promise<number> {
  const [row] = await tx.query<{ assigned: number }>(
    `with numbered as (
       select e.id, e.store_id, c.last_sequence + e.place as sequence
       from event_counters c
       cross join lateral (
         select id, store_id, row_number() over (order by position) as place
         from (select id, store_id, position from events
               where store_id = c.store_id and sequence is null
               order by position limit $2) waiting
       ) e
       where c.store_id = any($1)
     ), assigned as (
       update events set sequence = numbered.sequence from numbered where events.id = numbered.id
       returning events.id, events.store_id, events.sequence, events.type, events.data
     ), addressed as (
       insert into deliveries (id, store_id, endpoint_id, event_id, sequence, run_at, is_security)
       select 'dlv_' || substr(a.id, 5, 12) || substr(md5(w.id || a.id), 1, 16), a.store_id, w.id, a.id, a.sequence,
              clock(), a.type = any($3)
       from assigned a join webhook_endpoints w on w.store_id = a.store_id
       where case
         when a.type = any($3) then (w.deleted_at is null or w.deleted_at > clock() - make_interval(hours => $4))
           and w.secrets <> '[]' and (a.type <> 'webhook_endpoint.created' or a.data->'webhookEndpoint'->>'id' <> w.id)
         when w.disabled_at is not null then false
         when a.type = 'webhook_endpoint.test' then a.data->'webhookEndpoint'->>'id' = w.id
         else w.types = '{}' or a.type = any(w.types) end
       returning endpoint_id
     ), due as (
       update webhook_endpoints set due_at = least(due_at, clock())
       where id in (select endpoint_id from addressed)
     ), counted as (
       update event_counters c set last_sequence = a.last_sequence
       from (select store_id, max(sequence) as last_sequence from assigned group by store_id) a
       where c.store_id = a.store_id
     )
     select count(*)::int as assigned from assigned`,
    [storeIds, perStoreLimit, securityTypes, securityHours],
  )
  return row?.assigned ?? 0
}

/** Starts a new epoch of every store's log, which makes all earlier cursors invalid. */
export async function raiseEpoch(tx: Transaction): Promise<void> {
  await tx.query('update event_log set epoch = epoch + 1')
}

/** Creates a store's counter, with which its log begins. */
export async function insertCounter(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('insert into event_counters (store_id) values ($1)', [storeId])
}

/** What waits for something, and since when the oldest does. Counted up to a limit. */
export type Queue = { readonly count: number; readonly oldestAt: Date | null }

/** Events that have no number yet. */
export async function measureUnnumbered(db: Database, countMax: number): Promise<Queue> {
  const [row] = await db.query<Queue>(
    `select count(*)::integer as count, min(created_at) as "oldestAt"
     from (select created_at from events where sequence is null limit $1) waiting`,
    [countMax],
  )
  return row ?? { count: 0, oldestAt: null }
}

/** Stores whose counter is behind the numbers that their events have: the next number would be given twice. */
export async function listCountersBehind(
  db: Database,
  limit: number,
): Promise<{ readonly storeId: StoreId; readonly last: bigint; readonly highest: bigint }[]> {
  const rows = await db.query<{ store_id: StoreId; last_sequence: string; highest: string }>(
    `select c.store_id, c.last_sequence, e.highest from event_counters c
     cross join lateral (select greatest(
       (select max(sequence) from events where store_id = c.store_id),
       (select last_sequence from truncated_logs where store_id = c.store_id)) as highest) e
     where e.highest > c.last_sequence order by c.store_id limit $1`,
    [limit],
  )
  return rows.map((row) => ({
    storeId: row.store_id,
    last: BigInt(row.last_sequence),
    highest: BigInt(row.highest),
  }))
}
