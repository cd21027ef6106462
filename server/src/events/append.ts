import type { Actor, EventObject, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type CheckoutId, newId, type StoreId } from '../ids.ts'

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

export function newEvent(
  ctx: Context,
  storeId: StoreId,
  actor: Actor | null,
  type: EventType,
  data: EventObject,
  now: Date,
  checkout: NewEvent['checkout'] = null,
): NewEvent {
  const eventId = newId('evt', ctx.config.cell, now)
  return { event_id: eventId, store_id: storeId, actor, type, checkout, data, created_at: now }
}

/** Writes an event in the transaction of the change that it reports. A checkout's moves write their own. */
export async function appendEvent(tx: Database | Transaction, event: NewEvent): Promise<void> {
  await tx.query(
    `insert into events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      event.event_id,
      event.store_id,
      event.type,
      event.checkout?.id ?? null,
      event.checkout?.version ?? null,
      JSON.stringify(event.data),
      event.created_at,
      event.actor && JSON.stringify(event.actor),
    ],
  )
}
