import type { EventObject, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { newId, type StoreId } from '../ids.ts'

/** An event about to be written. */
export type NewEvent = {
  readonly event_id: string
  readonly store_id: StoreId
  readonly type: EventType
  readonly data: EventObject
  readonly created_at: Date
}

export function newEvent(
  ctx: Context,
  storeId: StoreId,
  type: EventType,
  data: EventObject,
  now: Date,
): NewEvent {
  return { event_id: newId('evt', ctx.config.cell, now), store_id: storeId, type, data, created_at: now }
}

/** Writes an event that concerns no checkout, in the transaction of the change that it reports. */
export async function appendEvent(tx: Database | Transaction, event: NewEvent): Promise<void> {
  await tx.query('insert into events (id, store_id, type, data, created_at) values ($1, $2, $3, $4, $5)', [
    event.event_id,
    event.store_id,
    event.type,
    JSON.stringify(event.data),
    event.created_at,
  ])
}
