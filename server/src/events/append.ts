import type { Actor, Event, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type CheckoutId, newId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'

export function newEvent(
  ctx: Context,
  storeId: StoreId,
  actor: Actor | null,
  { checkout = null, ...told }: Told & Partial<Pick<NewEvent, 'checkout'>>,
  now: Date,
): NewEvent {
  const eventId = newId('evt', ctx.config.cell, now)
  return { event_id: eventId, store_id: storeId, actor, checkout, ...told, created_at: now }
}

/**
 * Events that a key or a member can cause as often as they like. The log keeps them for good, so a store's bytes per hour
 * are limited. Events that protect a store (revoking, removing, undoing), end something or are about sent money are never
 * refused.
 */
const limitedTypes: ReadonlySet<EventType> = new Set<EventType>([
  'store.updated',
  'key.created',
  'webhook_endpoint.created',
  'webhook_endpoint.updated',
  'webhook_endpoint.test',
  'wallet.registered',
  'wallet.updated',
  'member.invited',
  'refund.requested',
  'link.created',
  'link.updated',
])

/** About 30,000 changes: more than a shop's programs make, and little for a disk. */
export const bytesPerHour = 32 * 1_048_576
/** For a store that was opened by sign-up and has proven no wallet: about 200 changes. */
export const unprovenBytesPerHour = 262_144
const hourMs = 3_600_000

/**
 * Writes an event in the transaction of the change that it reports, with the object as it is then. The object is rendered
 * once, and its column is `json`, which keeps the bytes, so a store that reads its log late or twice reads the same bytes.
 * Changes of a checkout's status write their own events. Throws a Problem if the store has used up its share.
 */
export async function appendEvent(tx: Database | Transaction, event: NewEvent): Promise<void> {
  if (!isLimited(event)) await insertEvent(tx, event)
  else if (!(await insertCounted(tx, event, { unproven: unprovenBytesPerHour, others: bytesPerHour })))
    throw usedUp(event.created_at)
}

function isLimited({ actor, type }: NewEvent): boolean {
  return (actor?.type === 'key' || actor?.type === 'member') && limitedTypes.has(type)
}

function usedUp(now: Date): Problem {
  return new Problem(
    'rate_limited',
    'The store has reached its hourly limit for events in its log, so nothing was changed. Repeat this in the next hour, and make fewer changes. Payments and cancellations still work, and keys and members can still be removed. A store that was opened by sign-up has a lower limit until it has proven a wallet.',
    { retryAfterSeconds: Math.ceil((hourMs - (now.getTime() % hourMs)) / 1_000) },
  )
}

/** A type of event, with the data that events of this type hold. */
type Told<One = Event> = One extends Event ? Pick<One, 'type' | 'data'> : never

/** An event about to be written. */
type NewEvent = {
  readonly event_id: string
  readonly store_id: StoreId
  /** Who caused it; null for what payers, the chain or time caused. */
  readonly actor: Actor | null
  readonly type: EventType
  /** The checkout that it concerns, with its version at that time. */
  readonly checkout: { readonly id: CheckoutId; readonly version: number } | null
  readonly data: Event['data']
  readonly created_at: Date
}

const target = 'events (id, store_id, type, checkout_id, checkout_version, data, created_at, actor)'

async function insertEvent(tx: Database | Transaction, event: NewEvent): Promise<void> {
  await tx.query(`insert into ${target} values ($1, $2, $3, $4, $5, $6, $7, $8)`, valuesOf(event))
}

/**
 * Inserts the event and counts its bytes for its store. Writes nothing if the store has used up its share. It counts in a
 * row that no other transaction has locked: waiting for a locked row could deadlock, because its holder may wait for a
 * lock of this transaction.
 */
async function insertCounted(
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

/** An operator at the command line. `name` is what --as says, or the system user's name. */
export function operatorActor(name: string): Actor {
  return { type: 'operator', id: name, name }
}

/** What our own processes do to a store's settings, such as disabling an endpoint that fails. */
export const systemActor: Actor = { type: 'system', id: 'work', name: null }
