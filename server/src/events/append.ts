import type { Actor, EventObject, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { newId, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { insertCounted, insertEvent, type NewEvent } from './append-rows.ts'

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

/**
 * What a store can have written as often as it likes, by a key or a member. The log keeps it for good, so a store has a
 * share per hour. What protects a store (revoking, removing, undoing), what ends something, and what is about money that
 * was sent is never refused.
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
])

/** Some 30,000 changes: more than a shop's programs make, and less than a disk notices. */
export const bytesPerHour = 32 * 1_048_576
/** Of a store that somebody signed up for and that has proven no wallet: some 200 changes. */
export const unprovenBytesPerHour = 262_144
const hourMs = 3_600_000

/**
 * Writes an event in the transaction of the change that it reports, with the object as it is then. It is never rendered
 * again, and its column is `json`, which keeps the bytes: a store that reads its log late, or twice, reads the same. A checkout's moves write their own. Throws a Problem
 * if the store has used up its share.
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
    'The store has written as much into its event log as it may within an hour, so nothing was changed. Repeat this in the next hour, and make fewer changes. Payments, cancellations, revoking keys and removing members go on. Until a store that was signed up for has proven a wallet, its share is small: prove the wallet to raise it.',
    { retryAfterSeconds: Math.ceil((hourMs - (now.getTime() % hourMs)) / 1_000) },
  )
}
