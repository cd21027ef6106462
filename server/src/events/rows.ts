import type { EventObject, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../db.ts'
import type { CheckoutId, EventId, StoreId } from '../ids.ts'

export type EventRow = {
  id: EventId
  sequence: string
  type: EventType
  checkout_id: CheckoutId | null
  checkout_version: number | null
  data: EventObject
  created_at: Date
}

export async function readEpoch(db: Database): Promise<number> {
  const [row] = await db.query<{ epoch: number }>('select epoch from event_log')
  return row?.epoch ?? 1
}

export async function listEvents(
  db: Database,
  storeId: StoreId,
  page: { after: bigint; type: EventType | null; checkoutId: string | null; limit: number },
): Promise<EventRow[]> {
  // Each combination of filters is its own statement: one for all would be planned to sort a store's whole log.
  const conditions = ['store_id = $1', 'sequence > $2']
  const values: unknown[] = [storeId, page.after.toString(), page.limit]
  for (const [column, value] of [
    ['type', page.type],
    ['checkout_id', page.checkoutId],
  ] as const) {
    if (value !== null) conditions.push(`${column} = $${values.push(value)}`)
  }
  return await db.query<EventRow>(
    `select id, sequence, type, checkout_id, checkout_version, data, created_at
     from events where ${conditions.join(' and ')} order by sequence limit $3`,
    values,
  )
}

/** Sequence of the newest visible event of a store; 0 where there is none. */
export async function lastSequence(db: Database, storeId: StoreId): Promise<bigint> {
  const [row] = await db.query<{ last_sequence: string }>(
    'select last_sequence from event_counters where store_id = $1',
    [storeId],
  )
  return BigInt(row?.last_sequence ?? '0')
}

export async function storesWithUnsequenced(db: Database, limit: number): Promise<StoreId[]> {
  // A walk from store to store along the index: its cost is the number of stores, not of waiting events.
  const rows = await db.query<{ store_id: StoreId }>(
    `with recursive waiting as (
       (select store_id from events where sequence is null order by store_id limit 1)
       union all
       select (select e.store_id from events e where e.sequence is null and e.store_id > w.store_id
               order by e.store_id limit 1)
       from waiting w where w.store_id is not null
     )
     select store_id from waiting where store_id is not null limit $1`,
    [limit],
  )
  return rows.map(({ store_id }) => store_id)
}

/** Locks the counters that no other process holds. Their events can only be numbered by us until we commit. */
export async function lockCounters(tx: Transaction, storeIds: readonly StoreId[]): Promise<StoreId[]> {
  const rows = await tx.query<{ store_id: StoreId }>(
    'select store_id from event_counters where store_id = any($1) order by store_id for update skip locked',
    [storeIds],
  )
  return rows.map(({ store_id }) => store_id)
}

/** Numbers the oldest waiting events of the locked stores, each store's from where its counter stands. */
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
       returning events.store_id, events.sequence
     ), counted as (
       update event_counters c set last_sequence = a.last_sequence
       from (select store_id, max(sequence) as last_sequence from assigned group by store_id) a
       where c.store_id = a.store_id
     )
     select count(*)::int as assigned from assigned`,
    [storeIds, perStoreLimit],
  )
  return row?.assigned ?? 0
}
