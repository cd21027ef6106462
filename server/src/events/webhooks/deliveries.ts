import type { Delivery, DeliveryAttempt, Page, Redeliver, Redelivered } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { type DeliveryId, type EndpointId, firstIdAt, isId, type StoreId } from '../../ids.ts'
import { invalid, Problem } from '../../problems.ts'
import { parseCursor, refuseTruncated } from '../read.ts'
import { readLogEnd } from '../rows.ts'
import { securityHours, securityTypes } from '../security.ts'
import { changeEndpoint, readEndpoint, refuseDisabled } from './endpoints.ts'

/** Per request, so that it stays one short transaction. */
const eventsPerRedelivery = 5_000
/** How long a finished delivery can be read and redelivered. Events themselves are kept. */
const keptDays = 30
const rowsPerRun = 2_000

/** The deliveries to an endpoint with its answers, newest event first. */
export async function listDeliveries(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
  query: {
    state: string | null
    type: string | null
    eventId: string | null
    cursor: string | null
    limit: number
  },
): Promise<Page<Delivery>> {
  const endpoint = await readEndpoint(ctx, storeId, endpointId)
  if (query.cursor !== null && !isId('evt', query.cursor))
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  if (query.eventId !== null && !isId('evt', query.eventId))
    throw invalid({ pointer: 'eventId', code: 'id', detail: 'Must be an event id, which begins with evt_.' })
  const found = await listRows(ctx.db, storeId, {
    endpointId: endpoint.id as `we_${string}`,
    state: query.state,
    type: query.type,
    eventId: query.eventId,
    before: query.cursor ?? 'evt~',
    limit: query.limit + 1,
  })
  const data = found.slice(0, query.limit)
  return { data, nextCursor: found.length > query.limit ? (data.at(-1)?.eventId ?? null) : null }
}

export async function readDelivery(ctx: Context, storeId: StoreId, deliveryId: string): Promise<Delivery> {
  const [delivery] = isId('dlv', deliveryId)
    ? await listRows(ctx.db, storeId, { deliveryId, before: 'evt~', limit: 1 })
    : []
  if (!delivery) throw new Problem('not_found', 'No such delivery.')
  return delivery
}

/** Delivers one event to its endpoint again, now and with all its tries. */
export async function redeliver(ctx: Context, storeId: StoreId, deliveryId: string): Promise<Delivery> {
  const { id, endpointId } = await readDelivery(ctx, storeId, deliveryId)
  await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    refuseDisabled(endpoint)
    await restartDelivery(tx, id as `dlv_${string}`)
    await makeDue(tx, endpoint.id)
  })
  ctx.db.wakeUps.send('events')
  return await readDelivery(ctx, storeId, deliveryId)
}

/** Redelivers everything after a point to an endpoint, a limited number per call; the answer says how to continue. */
export async function redeliverSince(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
  { after, since, include }: { after: string | null; since: Date | null; include: Redeliver['include'] },
): Promise<Redelivered> {
  if ((after === null) === (since === null))
    throw invalid({
      pointer: '/after',
      code: 'choice',
      detail: 'Send either after (a cursor) or since (a time).',
    })
  // Searches before taking the lock, because numbering the store's events waits for that lock.
  const start = since && (await lastSequenceBefore(ctx.db, storeId, since))
  const answer = await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    refuseDisabled(endpoint)
    const end = await readLogEnd(tx, storeId)
    const from = start ?? parseCursor(end, '/after', after)
    if (start === null) refuseTruncated(end, from)
    await holdEvents(tx, storeId, from, eventsPerRedelivery)
    const { count, last, seen } = await redeliverEvents(tx, endpoint.id, {
      storeId,
      after: from,
      since,
      isAll: include === 'all',
      limit: eventsPerRedelivery,
    })
    await makeDue(tx, endpoint.id)
    return { count, cursor: `${end.epoch}-${last ?? from}`, hasMore: seen === eventsPerRedelivery }
  })
  ctx.db.wakeUps.send('events')
  return answer
}

/** Gives up deliveries to disabled endpoints, and deletes deliveries that finished long ago. */
export async function tidyDeliveries(ctx: Context, now: Date): Promise<void> {
  while ((await giveUpDisabled(ctx.db)) === rowsPerRun);
  const before = firstIdAt('dlv', ctx.config.cell, new Date(now.getTime() - keptDays * 86_400_000))
  while ((await forgetDeliveries(ctx.db, before)) === rowsPerRun);
  await forgetEndpoints(ctx.db)
}

/** Records that an endpoint has something to deliver now. */
async function makeDue(tx: Transaction, endpointId: EndpointId): Promise<void> {
  await tx.query('update webhook_endpoints set due_at = least(due_at, clock()) where id = $1', [endpointId])
}

/**
 * Deletes the rows of deleted endpoints that get no more deliveries and have none. If old deliveries still refer to the
 * row, deletes only its secrets.
 */
async function forgetEndpoints(db: Database): Promise<void> {
  await db.query(
    `with old as (
       select id from webhook_endpoints where deleted_at <= clock() - make_interval(hours => $1)
     ), gone as (
       delete from webhook_endpoints e using old where e.id = old.id
         and not exists (select 1 from deliveries d where d.endpoint_id = e.id)
       returning e.id
     )
     update webhook_endpoints e set secrets = '[]' from old
     where e.id = old.id and e.secrets <> '[]' and e.id not in (select id from gone)
       and not exists (select 1 from deliveries d where d.endpoint_id = e.id and d.state = 'pending')`,
    [securityHours],
  )
}

/** Gives up pending deliveries to disabled endpoints, except those of security events. Returns how many. */
async function giveUpDisabled(db: Database): Promise<number> {
  const rows = await db.query(
    `update deliveries set state = 'undeliverable', leased_until = null, finished_at = clock()
     where id in (
       select d.id from webhook_endpoints e join deliveries d on d.endpoint_id = e.id and d.state = 'pending'
         and not d.is_security
       where e.disabled_at is not null limit $1 for update of d skip locked)
     returning id`,
    [rowsPerRun],
  )
  return rows.length
}

/**
 * Deletes deliveries that finished long ago, with their attempts. `before` limits the search, because ids contain the
 * time.
 */
async function forgetDeliveries(db: Database, before: string): Promise<number> {
  const rows = await db.query(
    `delete from deliveries where id in (
       select id from deliveries where id < $1 and finished_at < clock() - make_interval(days => $2)
       order by id limit $3)
     returning id`,
    [before, keptDays, rowsPerRun],
  )
  return rows.length
}

type DeliveryRow = Omit<Delivery, 'sequence' | 'nextTryAt' | 'attempts'> & {
  sequence: string
  runAt: Date
  attempts: DeliveryAttempt[] | null
}

/** Newest event first. */
async function listRows(
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
    `select d.id, d.endpoint_id as "endpointId", d.event_id as "eventId", v.type as "eventType", d.sequence, d.state,
       d.tries, d.run_at as "runAt", (
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
  return rows.map(({ runAt, ...row }) => ({
    ...row,
    sequence: Number.parseInt(row.sequence, 10),
    nextTryAt: row.state === 'pending' ? runAt.toISOString() : null,
    attempts: row.attempts ?? [],
  }))
}

/** Restarts a delivery with all its tries. One that is in progress is left alone. */
async function restartDelivery(tx: Transaction, deliveryId: DeliveryId): Promise<void> {
  await tx.query(
    `update deliveries set state = 'pending', tries = 0, run_at = clock(), finished_at = null
     where id = $1 and leased_until is null`,
    [deliveryId],
  )
}

/**
 * A sequence up to which all of a store's events are from before a time. No index has the times, but they rise with the
 * sequences, so a binary search finds it even in a long log. Times and sequences may disagree by the length of a
 * transaction, hence the margin. Deleted months leave gaps, so each step takes the nearest event below.
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

/** Keeps the next events after a sequence from being deleted with their checkouts, until the transaction ends. */
export async function holdEvents(
  tx: Transaction,
  storeId: StoreId,
  after: bigint,
  limit: number,
): Promise<void> {
  // Retention deletes no younger events, so they need no lock.
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
async function redeliverEvents(
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
