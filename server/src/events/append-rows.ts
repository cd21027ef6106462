import type { Actor, EventObject, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { CheckoutId, StoreId } from '../ids.ts'

/** An event about to be written. */
export type NewEvent = {
  readonly event_id: string
  readonly store_id: StoreId
  /** Who caused it; null for what payers, the chain or time caused. */
  readonly actor: Actor | null
  readonly type: EventType
  /** The checkout that it concerns, with its version at that time. */
  readonly checkout: { readonly id: CheckoutId; readonly version: number } | null
  readonly data: EventObject
  readonly created_at: Date
}

const target = 'events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)'

export async function insertEvent(tx: Database | Transaction, event: NewEvent): Promise<void> {
  await tx.query(`insert into ${target} values ($1, $2, $3, $4, $5, $6, $7, $8)`, valuesOf(event))
}

/**
 * The same, and counts its bytes for its store, unless the store has had so many this hour. It counts in a row that no
 * other transaction holds, so it waits for none: what it holds already, another may be waiting for.
 */
export async function insertCounted(
  tx: Database | Transaction,
  event: NewEvent,
  bytesMax: { readonly unproven: number; readonly others: number },
): Promise<boolean> {
  const values = valuesOf(event)
  const rows = await tx.query(
    `with free as (
       select slot from event_bytes where store_id = $2 order by slot limit 1 for update skip locked
     ), counted as (
       update event_bytes b set hour = date_trunc('hour', clock()),
         bytes = octet_length($6) + case when b.hour = date_trunc('hour', clock()) then b.bytes else 0 end
       from free where b.store_id = $2 and b.slot = free.slot
     ), opened as (
       insert into event_bytes (store_id, slot, hour, bytes)
       select $2, (random() * 2000000000)::integer, date_trunc('hour', clock()), octet_length($6)
       where not exists (select 1 from free)
     )
     insert into ${target}
     select $1, $2, $3, $4, $5::integer, $6::text::json, $7::timestamptz, $8::json
     where octet_length($6) + (select coalesce(sum(bytes), 0) from event_bytes
         where store_id = $2 and hour = date_trunc('hour', clock()))
       <= (select case when signed_up and proven_at is null then $9::bigint else $10::bigint end
           from stores where id = $2)
     returning id`,
    [...values, bytesMax.unproven, bytesMax.others],
  )
  return rows.length > 0
}

function valuesOf(event: NewEvent): unknown[] {
  return [
    event.event_id,
    event.store_id,
    event.type,
    event.checkout?.id ?? null,
    event.checkout?.version ?? null,
    JSON.stringify(event.data),
    event.created_at,
    event.actor && JSON.stringify(event.actor),
  ]
}
