import type { Delivery, EventType } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'
import type { DeliveryId, EndpointId, EventId, StoreId } from '../../ids.ts'

/** Deliveries that are read per endpoint and page if a filter may match few of them. */
const lookedMax = 200

/** Pass `next` as `before` to read the next page. It is null on the last page. */
type RecentPage = { readonly deliveries: readonly RecentDelivery[]; readonly next: EventId | null }

/** The deliveries to these endpoints, newest event first. An event's deliveries are always on one page. */
export async function readRecent(
  ctx: Context,
  storeId: StoreId,
  endpointIds: readonly string[],
  query: {
    readonly state: string | null
    readonly type: string | null
    readonly before: string | null
    readonly limit: number
  },
): Promise<RecentPage> {
  const { state, type, limit } = query
  const { found, last } = await listRecent(ctx.db, storeId, endpointIds, {
    ...{ state, type, before: query.before ?? 'evt~', window: lookedMax },
    // Enough for all deliveries of the last event, and one more.
    limit: limit + endpointIds.length,
  })
  const end = found[limit - 1]?.eventId ?? null
  const deliveries = end === null ? found : found.filter(({ eventId }) => eventId >= end)
  const isCut = deliveries.length < found.length
  return { deliveries, next: isCut ? end : last }
}

/** The deliveries that an endpoint has not accepted yet. */
export type Backlog = {
  readonly endpointId: EndpointId
  /** Counted up to a limit. */
  readonly waiting: number
  readonly nextTryAt: Date | null
  /** The result of the last try of the oldest waiting delivery. */
  readonly status: number | null
  readonly error: string | null
}

export async function listBacklogs(db: Database, storeId: StoreId, countMax: number): Promise<Backlog[]> {
  return await db.query<Backlog>(
    `select e.id as "endpointId", w.waiting, n.run_at as "nextTryAt", o.status, o.error
     from webhook_endpoints e
     cross join lateral (select count(*)::int as waiting from (
       select 1 from deliveries d where d.endpoint_id = e.id and d.state = 'pending' limit $2) few) w
     left join lateral (select d.run_at from deliveries d where d.endpoint_id = e.id and d.state = 'pending'
       order by d.run_at limit 1) n on true
     left join lateral (
       select a.status, a.error from (select d.id from deliveries d
         where d.endpoint_id = e.id and d.state = 'pending' order by d.sequence limit 1) oldest
       join delivery_attempts a on a.delivery_id = oldest.id order by a.attempt desc limit 1) o on true
     where e.store_id = $1 and e.deleted_at is null`,
    [storeId, countMax],
  )
}

/** A delivery to one of several endpoints, with its newest attempt. */
export type RecentDelivery = {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly eventId: EventId
  readonly type: EventType
  readonly createdAt: Date
  readonly state: Delivery['state']
  readonly tries: number
  readonly status: number | null
  readonly error: string | null
  readonly durationMs: number | null
}

/**
 * Deliveries to these endpoints, newest event first, with all deliveries of each event. Reads at most `window` deliveries
 * per endpoint, so that a rare filter does not read all. `last` is the oldest event that was read for every
 * endpoint; null if there are no more.
 */
async function listRecent(
  db: Database,
  storeId: StoreId,
  endpointIds: readonly string[],
  page: { before: string; state: string | null; type: string | null; limit: number; window: number },
): Promise<{ found: RecentDelivery[]; last: EventId | null }> {
  const rows = await db.query<RecentDelivery & { isFound: boolean }>(
    `with looked as (
       select d.* from unnest($2::text[]) as e (id) cross join lateral (
         select id, endpoint_id, event_id, state, tries, row_number() over (order by event_id desc) as place
         from deliveries where store_id = $1 and endpoint_id = e.id and event_id < $3
         order by event_id desc limit $7) d
     ), cut as (select max(event_id) as last from looked where place = $7)
     , found as (
       select l.*, v.type, v.created_at from looked l join events v on v.id = l.event_id
       where ($4::text is null or l.state = $4) and ($5::text is null or v.type = $5)
         and l.event_id >= coalesce((select last from cut), '')
       order by l.event_id desc, l.endpoint_id limit $6
     )
     select f.id, f.endpoint_id as "endpointId", f.event_id as "eventId", f.type, f.created_at as "createdAt", f.state,
       f.tries, a.status, a.error, a.duration_ms as "durationMs", true as "isFound"
     from found f left join lateral (select status, error, duration_ms from delivery_attempts
       where delivery_id = f.id order by attempt desc limit 1) a on true
     union all
     select null, null, last, null, null, null, null, null, null, null, false from cut where last is not null
     order by "eventId" desc, "endpointId"`,
    [storeId, endpointIds, page.before, page.state, page.type, page.limit, page.window],
  )
  const cut = rows.find(({ isFound }) => !isFound)
  const found = rows.filter(({ isFound }) => isFound).map(({ isFound: _, ...delivery }) => delivery)
  return { found, last: cut?.eventId ?? null }
}
