import type { Delivery, DeliveryAttempt, EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { DeliveryId, EndpointId, EventId, StoreId } from '../../ids.ts'
import { type EventRow, readLogEnd } from '../rows.ts'
import { securityTypes } from '../security.ts'
import type { Secret } from './endpoint.ts'
import type { Outcome, Verdict } from './schedule.ts'

/** A delivery that this process may try now, with everything it needs. */
export type Taken = {
  readonly id: DeliveryId
  readonly storeId: StoreId
  readonly mode: 'live' | 'test'
  readonly endpointId: EndpointId
  readonly url: string
  readonly secrets: readonly Secret[]
  readonly isOrdered: boolean
  readonly isFailing: boolean
  /** The fence: only the newest attempt may record what happened to the delivery. */
  readonly attempt: number
  readonly tries: number
  readonly lagSeconds: number
  readonly event: EventRow
}

/**
 * Locks endpoints with due deliveries, longest waiting first; the oldest delivery of all may be a dead receiver's. `due_at`
 * is never later than an endpoint's first due delivery. Deliveries are read after the lock, as in assign-sequence.ts.
 */
export async function lockDueEndpoints(
  tx: Transaction,
  full: readonly string[],
  isCrowded: boolean,
  limit: number,
): Promise<EndpointId[]> {
  const rows = await tx.query<{ id: EndpointId }>(
    `select id from webhook_endpoints
     where due_at <= clock() and (held_until is null or held_until <= clock())
       and id <> all($1) and (failing_since is null or not $2)
     order by due_at limit $3 for no key update skip locked`,
    [full, isCrowded, limit],
  )
  return rows.map(({ id }) => id)
}

type TakenRow = {
  id: DeliveryId
  store_id: StoreId
  mode: 'live' | 'test'
  endpoint_id: EndpointId
  url: string
  secrets: Secret[]
  is_ordered: boolean
  is_failing: boolean
  attempt: number
  tries: number
  lag_seconds: number
  event: Omit<EventRow, 'created_at'> & { created_at: string }
}

/**
 * Leases due deliveries of locked endpoints, as many for each as it has room for, and records when to check each
 * endpoint again. Of an ordered endpoint only the oldest pending delivery may go, and only once it is due; the oldest
 * security event may overtake it, or whoever makes deliveries fail could hide what they do for days. A disabled one gets
 * security events only.
 */
export async function takeDeliveries(
  tx: Transaction,
  wanted: readonly { readonly id: EndpointId; readonly room: number }[],
  leaseSeconds: number,
): Promise<Taken[]> {
  const rows = await tx.query<TakenRow>(
    `with wanted as (
       select e.id, e.is_ordered, e.disabled_at is null as is_enabled, w.room
       from unnest($1::text[], $2::int[]) as w (id, room) join webhook_endpoints e on e.id = w.id
     ), due as (
       select d.* from wanted w cross join lateral (
         select id, endpoint_id, attempt, run_at, leased_until from deliveries
         where endpoint_id = w.id and state = 'pending' and run_at <= clock() and (w.is_enabled or is_security)
         order by run_at limit w.room
       ) d where not w.is_ordered
       union all
       select d.* from wanted w cross join lateral (
         select id, endpoint_id, attempt, run_at, leased_until from deliveries
         where endpoint_id = w.id and state = 'pending' and (w.is_enabled or is_security)
         order by sequence limit 1
       ) d where w.is_ordered and d.run_at <= clock()
       union
       select d.* from wanted w cross join lateral (
         select id, endpoint_id, attempt, run_at, leased_until from deliveries
         where endpoint_id = w.id and state = 'pending' and is_security order by sequence limit 1
       ) d where w.is_ordered and d.run_at <= clock()
     ), taken as (
       update deliveries d set attempt = d.attempt + 1, run_at = clock() + make_interval(secs => $3),
         leased_until = clock() + make_interval(secs => $3)
       from due where d.id = due.id and d.attempt = due.attempt and d.state = 'pending'
       returning d.id, d.store_id, d.endpoint_id, d.event_id, d.attempt, d.tries,
         extract(epoch from clock() - due.run_at)::float as lag_seconds
     ), interrupted as (
       insert into delivery_attempts (delivery_id, attempt, started_at, error)
       select id, attempt, leased_until - make_interval(secs => $3), 'interrupted'
       from due where leased_until is not null
       on conflict do nothing
     ), rested as (
       update webhook_endpoints e set due_at = case
         when w.is_ordered then (select min(case when exists (select 1 from due where due.id = d.id)
             then clock() + make_interval(secs => $3) else d.run_at end)
           from ((select id, run_at from deliveries where endpoint_id = w.id and state = 'pending'
               and (w.is_enabled or is_security) order by sequence limit 1) union all (select id, run_at
             from deliveries where endpoint_id = w.id and state = 'pending' and is_security order by sequence limit 1)) d)
         else least(
           (select clock() + make_interval(secs => $3) from due where due.endpoint_id = w.id limit 1),
           (select d.run_at from deliveries d where d.endpoint_id = w.id and d.state = 'pending'
              and (w.is_enabled or d.is_security) and not exists (select 1 from due where due.id = d.id)
            order by d.run_at limit 1)) end
       from wanted w where e.id = w.id
     )
     select t.*, s.mode, e.url, e.secrets, e.is_ordered, e.failing_since is not null as is_failing,
       json_build_object('id', v.id, 'sequence', v.sequence::text, 'type', v.type, 'checkout_id', v.checkout_id,
         'checkout_version', v.checkout_version, 'actor', v.actor, 'data', v.data, 'created_at', v.created_at) as event
     from taken t join webhook_endpoints e on e.id = t.endpoint_id join stores s on s.id = t.store_id
     join events v on v.id = t.event_id`,
    [wanted.map(({ id }) => id), wanted.map(({ room }) => room), leaseSeconds],
  )
  return rows.map((row) => ({
    id: row.id,
    storeId: row.store_id,
    mode: row.mode,
    endpointId: row.endpoint_id,
    url: row.url,
    secrets: row.secrets,
    isOrdered: row.is_ordered,
    isFailing: row.is_failing,
    attempt: row.attempt,
    tries: row.tries,
    lagSeconds: row.lag_seconds,
    event: { ...row.event, created_at: new Date(row.event.created_at) },
  }))
}

export type Delivered = { readonly taken: Taken; readonly outcome: Outcome }

/** Records a batch of successful tries. Returns for each whether it was still the newest. */
export async function writeDelivered(
  db: Database | Transaction,
  batch: readonly Delivered[],
): Promise<boolean[]> {
  const rows = await db.query<{ id: DeliveryId }>(
    `with input as (
       select * from json_to_recordset($1) as i (id text, attempt integer, started_at timestamptz,
         duration_ms integer, status integer, error text, answer text)
     ), noted as (
       insert into delivery_attempts (delivery_id, attempt, started_at, duration_ms, status, error, answer)
       select id, attempt, started_at, duration_ms, status, error, answer from input order by id
       on conflict (delivery_id, attempt) do update set started_at = excluded.started_at,
         duration_ms = excluded.duration_ms, status = excluded.status, error = excluded.error, answer = excluded.answer
     )
     update deliveries d set state = 'delivered', tries = d.tries + 1, leased_until = null, finished_at = clock()
     from input i where d.id = i.id and d.attempt = i.attempt and d.state = 'pending'
     returning d.id`,
    [JSON.stringify(batch.map(toAttempt))],
  )
  const written = new Set(rows.map(({ id }) => id))
  return batch.map(({ taken }) => written.has(taken.id))
}

/** Records one failed try. Returns whether it was still the newest. */
export async function writeFailed(
  tx: Transaction,
  failed: Delivered,
  verdict: Exclude<Verdict, { state: 'delivered' }>,
): Promise<boolean> {
  const rows = await tx.query<{ id: DeliveryId }>(
    `with input as (
       select * from json_to_record($1) as i (id text, attempt integer, started_at timestamptz,
         duration_ms integer, status integer, error text, answer text)
     ), noted as (
       insert into delivery_attempts (delivery_id, attempt, started_at, duration_ms, status, error, answer)
       select id, attempt, started_at, duration_ms, status, error, answer from input
       on conflict (delivery_id, attempt) do update set started_at = excluded.started_at,
         duration_ms = excluded.duration_ms, status = excluded.status, error = excluded.error, answer = excluded.answer
     )
     update deliveries d set state = $2, tries = d.tries + 1, leased_until = null,
       run_at = clock() + make_interval(secs => $3),
       finished_at = case when $2 = 'pending' then null else clock() end
     from input i where d.id = i.id and d.attempt = i.attempt and d.state = 'pending'
     returning d.id`,
    [
      JSON.stringify(toAttempt(failed)),
      verdict.state,
      verdict.state === 'pending' ? verdict.delaySeconds : 0,
    ],
  )
  return rows.length === 1
}

function toAttempt({ taken, outcome }: Delivered) {
  return {
    id: taken.id,
    attempt: taken.attempt,
    started_at: outcome.startedAt,
    duration_ms: outcome.durationMs,
    status: outcome.status,
    error: outcome.error,
    answer: outcome.answer,
  }
}

/** Gives up pending deliveries to disabled endpoints, except those of security events. Returns how many. */
export async function giveUpDisabled(db: Database, limit: number): Promise<number> {
  const rows = await db.query(
    `update deliveries set state = 'undeliverable', leased_until = null, finished_at = clock()
     where id in (
       select d.id from webhook_endpoints e join deliveries d on d.endpoint_id = e.id and d.state = 'pending'
         and not d.is_security
       where e.disabled_at is not null limit $1 for update of d skip locked)
     returning id`,
    [limit],
  )
  return rows.length
}

/** Deletes deliveries that finished long ago, with their attempts. `before` bounds the search: ids contain the time. */
export async function forgetDeliveries(
  db: Database,
  before: string,
  keptDays: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(
    `delete from deliveries where id in (
       select id from deliveries where id < $1 and finished_at < clock() - make_interval(days => $2)
       order by id limit $3)
     returning id`,
    [before, keptDays, limit],
  )
  return rows.length
}

type DeliveryRow = {
  id: DeliveryId
  endpoint_id: EndpointId
  event_id: EventId
  type: EventType
  sequence: string
  state: Delivery['state']
  tries: number
  run_at: Date
  attempts: DeliveryAttempt[] | null
}

/** Newest event first. */
export async function listDeliveries(
  db: Database | Transaction,
  storeId: StoreId,
  page: {
    endpointId?: EndpointId
    deliveryId?: DeliveryId
    state?: string | null
    type?: string | null
    eventId?: string | null
    before: string
    limit: number
  },
): Promise<Delivery[]> {
  const conditions = ['d.store_id = $1', 'd.event_id < $2']
  const values: unknown[] = [storeId, page.before, page.limit]
  for (const [column, value] of [
    ['d.endpoint_id', page.endpointId],
    ['d.id', page.deliveryId],
    ['d.state', page.state],
    ['v.type', page.type],
    ['d.event_id', page.eventId],
  ] as const) {
    if (value !== null && value !== undefined) conditions.push(`${column} = $${values.push(value)}`)
  }
  const rows = await db.query<DeliveryRow>(
    `select d.id, d.endpoint_id, d.event_id, v.type, d.sequence, d.state, d.tries, d.run_at, (
       select json_agg(json_build_object('attempt', a.attempt,
         'startedAt', to_char(a.started_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         'durationMs', a.duration_ms, 'status', a.status, 'error', a.error, 'answer', a.answer)
         order by a.attempt desc)
       from (select * from delivery_attempts where delivery_id = d.id order by attempt desc limit 20) a
     ) as attempts
     from deliveries d join events v on v.id = d.event_id
     where ${conditions.join(' and ')} order by d.event_id desc limit $3`,
    values,
  )
  return rows.map((row) => ({
    id: row.id,
    endpointId: row.endpoint_id,
    eventId: row.event_id,
    eventType: row.type,
    sequence: Number.parseInt(row.sequence, 10),
    state: row.state,
    tries: row.tries,
    nextTryAt: row.state === 'pending' ? row.run_at.toISOString() : null,
    attempts: row.attempts ?? [],
  }))
}

/** Restarts a delivery with all its tries. One that is in progress is left alone. */
export async function restartDelivery(tx: Transaction, deliveryId: DeliveryId): Promise<void> {
  await tx.query(
    `update deliveries set state = 'pending', tries = 0, run_at = clock(), finished_at = null
     where id = $1 and leased_until is null`,
    [deliveryId],
  )
}

/**
 * A sequence up to which all of a store's events are from before a time. No index knows their times, but these rise with
 * the sequences, so halving what is left finds it in a long log too. Times and sequences may disagree by the length of a
 * transaction, hence the margin. Months that were dropped leave gaps: each look takes the nearest event below.
 */
export async function lastSequenceBefore(db: Database, storeId: StoreId, time: Date): Promise<bigint> {
  let { last: high } = await readLogEnd(db, storeId)
  let low = 0n
  while (low < high) {
    const middle = (low + high + 1n) / 2n
    const [event] = await db.query<{ sequence: string; isBefore: boolean }>(
      `select sequence, created_at < $4::timestamptz - interval '1 minute' as "isBefore" from events
       where store_id = $1 and sequence > $2 and sequence <= $3 order by sequence desc limit 1`,
      [storeId, low.toString(), middle.toString(), time],
    )
    if (!event || event.isBefore) low = middle
    else high = BigInt(event.sequence) - 1n
  }
  return low
}

/** Keeps the next events after a sequence, until the transaction ends, from being deleted with their checkouts. */
export async function holdEvents(
  tx: Transaction,
  storeId: StoreId,
  after: bigint,
  limit: number,
): Promise<void> {
  // Whatever is younger is not deleted.
  await tx.query(
    `select 1 as one from checkouts where id = any(array(
       select checkout_id from (select checkout_id, created_at from events
         where store_id = $1 and sequence > $2 order by sequence limit $3) e
       where checkout_id is not null and created_at < clock() - interval '30 days'))
     order by id for key share`,
    [storeId, after.toString(), limit],
  )
}

/**
 * Redelivers events to an endpoint, starting after a sequence: creates missing deliveries and restarts the others,
 * delivered ones only if `isAll`. Takes at most `limit` events in log order. Returns the last sequence it handled, or
 * null if there were no events.
 */
export async function redeliverEvents(
  tx: Transaction,
  endpointId: EndpointId,
  from: { storeId: StoreId; after: bigint; since: Date | null; isAll: boolean; limit: number },
): Promise<{ count: number; last: bigint | null; seen: number }> {
  const [row] = await tx.query<{ count: number; last: string | null; seen: number }>(
    `with endpoint as (select id, types from webhook_endpoints where id = $1),
     picked as (
       select v.id, v.store_id, v.sequence, v.type, v.created_at, v.data from events v
       where v.store_id = $2 and v.sequence > $3 order by v.sequence limit $6
     ), made as (
       insert into deliveries as d (id, store_id, endpoint_id, event_id, sequence, run_at, is_security)
       select 'dlv_' || substr(p.id, 5, 12) || substr(md5(e.id || p.id), 1, 16), p.store_id, e.id, p.id, p.sequence,
              clock(), p.type = any($7)
       from picked p cross join endpoint e
       where ($4::timestamptz is null or p.created_at >= $4) and case
         when p.type = 'webhook_endpoint.test' then p.data->'webhookEndpoint'->>'id' = e.id
         else p.type = any($7) or e.types = '{}' or p.type = any(e.types) end
       on conflict (endpoint_id, event_id) do update set state = 'pending', tries = 0, run_at = clock(), finished_at = null
         where d.leased_until is null and d.state <> 'pending' and ($5 or d.state <> 'delivered')
       returning d.id
     )
     select (select count(*)::int from made) as count, (select max(sequence) from picked) as last,
       (select count(*)::int from picked) as seen`,
    [endpointId, from.storeId, from.after.toString(), from.since, from.isAll, from.limit, securityTypes],
  )
  return {
    count: row?.count ?? 0,
    last: row?.last ? BigInt(row.last) : null,
    seen: row?.seen ?? 0,
  }
}
