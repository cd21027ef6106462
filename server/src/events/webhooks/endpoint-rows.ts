import type { EventType } from '@farthing/sdk'
import type { Database, Transaction } from '../../database/db.ts'
import type { EndpointId, StoreId } from '../../ids.ts'
import type { Queue } from '../rows.ts'
import type { Endpoint, EndpointFacts, Secret } from './endpoint.ts'

type Reader = Database | Transaction

type EndpointRow = {
  id: EndpointId
  store_id: StoreId
  url: string
  types: EventType[]
  is_ordered: boolean
  secrets: Secret[]
  created_at: Date
  disabled_at: Date | null
  disabled_reason: Endpoint['disabledReason']
  failing_since: Date | null
}

/** Without the secrets, which only those read who sign or change them. */
const factColumns =
  'id, store_id, url, types, is_ordered, created_at, disabled_at, disabled_reason, failing_since'

/** Serialises changes to a store's endpoints, so that they can be counted. */
export async function lockEndpoints(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('select id from stores where id = $1 for no key update', [storeId])
}

/** The store's endpoints, and how many more were deleted or changed their URL in the last hours. */
export async function countEndpoints(
  tx: Transaction,
  storeId: StoreId,
  hours: number,
): Promise<{ live: number; past: number }> {
  const [row] = await tx.query<{ live: number; past: number }>(
    `select count(*) filter (where deleted_at is null)::int as live,
       count(*) filter (where deleted_at > clock() - make_interval(hours => $2))::int as past
     from webhook_endpoints where store_id = $1`,
    [storeId, hours],
  )
  return row ?? { live: 0, past: 0 }
}

export async function findEndpointByUrl(
  tx: Transaction,
  storeId: StoreId,
  url: string,
): Promise<EndpointId | null> {
  const [row] = await tx.query<{ id: EndpointId }>(
    'select id from webhook_endpoints where store_id = $1 and url = $2 and deleted_at is null',
    [storeId, url],
  )
  return row?.id ?? null
}

export async function insertEndpoint(tx: Transaction, endpoint: Endpoint): Promise<void> {
  await tx.query(
    `insert into webhook_endpoints (id, store_id, url, types, is_ordered, secrets, created_at)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [
      endpoint.id,
      endpoint.storeId,
      endpoint.url,
      endpoint.types,
      endpoint.isOrdered,
      JSON.stringify(endpoint.secrets),
      endpoint.createdAt,
    ],
  )
}

export async function readEndpoint(
  db: Reader,
  storeId: StoreId,
  endpointId: string,
): Promise<EndpointFacts | null> {
  const [row] = await db.query<Omit<EndpointRow, 'secrets'>>(
    `select ${factColumns} from webhook_endpoints where store_id = $1 and id = $2 and deleted_at is null`,
    [storeId, endpointId],
  )
  return row ? toFacts(row) : null
}

/** Newest first. */
export async function listEndpoints(
  db: Database,
  storeId: StoreId,
  page: { before: string; limit: number },
): Promise<EndpointFacts[]> {
  const rows = await db.query<Omit<EndpointRow, 'secrets'>>(
    `select ${factColumns} from webhook_endpoints where store_id = $1 and id < $2 and deleted_at is null
     order by id desc limit $3`,
    [storeId, page.before, page.limit],
  )
  return rows.map(toFacts)
}

export async function lockEndpoint(
  tx: Transaction,
  storeId: StoreId,
  endpointId: string,
): Promise<Endpoint | null> {
  const [row] = await tx.query<EndpointRow>(
    `select ${factColumns}, secrets from webhook_endpoints
     where store_id = $1 and id = $2 and deleted_at is null for no key update`,
    [storeId, endpointId],
  )
  return row ? toEndpoint(row) : null
}

/**
 * Writes what the store may change, and its secrets, which may have been sealed since. The endpoint is due at once,
 * because deliveries may have been waiting. A rest that the receiver asked for goes on unless `isRested`.
 */
export async function updateEndpoint(tx: Transaction, endpoint: Endpoint, isRested: boolean): Promise<void> {
  await tx.query(
    `update webhook_endpoints set url = $2, types = $3, is_ordered = $4, disabled_at = $5, disabled_reason = $6,
       failing_since = $7, held_until = case when $8 then null else held_until end, due_at = clock(), secrets = $9
     where id = $1`,
    [
      endpoint.id,
      endpoint.url,
      endpoint.types,
      endpoint.isOrdered,
      endpoint.disabledAt,
      endpoint.disabledReason,
      endpoint.failingSince,
      isRested,
      JSON.stringify(endpoint.secrets),
    ],
  )
}

/** Keeps the URL and secrets that an endpoint had before a change, as a deleted endpoint. */
export async function keepPrevious(
  tx: Transaction,
  endpointId: EndpointId,
  kept: Pick<Endpoint, 'id' | 'secrets'>,
): Promise<void> {
  await tx.query(
    `insert into webhook_endpoints (id, store_id, url, types, is_ordered, secrets, created_at, disabled_at,
       disabled_reason, deleted_at)
     select $2, store_id, url, types, is_ordered, $3, created_at, coalesce(disabled_at, clock()),
       coalesce(disabled_reason, 'store'), clock()
     from webhook_endpoints where id = $1`,
    [endpointId, kept.id, JSON.stringify(kept.secrets)],
  )
}

export async function updateSecrets(tx: Transaction, endpoint: Endpoint): Promise<void> {
  await tx.query('update webhook_endpoints set secrets = $2 where id = $1', [
    endpoint.id,
    JSON.stringify(endpoint.secrets),
  ])
}

/** Endpoints after this one with a secret that this key has not sealed, deleted ones too. */
export async function listSealedOtherwise(
  db: Database,
  keyId: string,
  after: EndpointId | '',
  limit: number,
): Promise<Pick<Endpoint, 'id' | 'secrets'>[]> {
  return await db.query(
    `select id, secrets from webhook_endpoints where id > $2
       and exists (select 1 from jsonb_array_elements(secrets) one where one->>'keyId' is distinct from $1)
     order by id limit $3`,
    [keyId, after, limit],
  )
}

/** Replaces an endpoint's secrets, unless somebody has changed them. One row at a time, so it can't deadlock. */
export async function replaceSecrets(
  db: Database,
  endpointId: EndpointId,
  before: readonly Secret[],
  after: readonly Secret[],
): Promise<boolean> {
  const changed = await db.query(
    'update webhook_endpoints set secrets = $3 where id = $1 and secrets = $2 returning id',
    [endpointId, JSON.stringify(before), JSON.stringify(after)],
  )
  return changed.length > 0
}

/** How many endpoints have secrets that no key sealed ('') or that each key did. */
export async function countByKey(db: Database): Promise<{ keyId: string; endpoints: number }[]> {
  return await db.query(
    `select coalesce(one->>'keyId', '') as "keyId", count(distinct id)::int as endpoints
     from webhook_endpoints cross join lateral jsonb_array_elements(secrets) one group by 1 order by 1`,
  )
}

export async function deleteEndpoint(tx: Transaction, endpointId: EndpointId): Promise<void> {
  await tx.query(
    `update webhook_endpoints set deleted_at = clock(), disabled_at = coalesce(disabled_at, clock()),
       disabled_reason = coalesce(disabled_reason, 'store')
     where id = $1`,
    [endpointId],
  )
}

/** Marks an endpoint as having something to deliver now. */
export async function makeDue(tx: Transaction, endpointId: EndpointId): Promise<void> {
  await tx.query('update webhook_endpoints set due_at = least(due_at, clock()) where id = $1', [endpointId])
}

/**
 * Records what a try showed about its endpoint, and returns whether it has been failing for too long. `nextSeconds`:
 * when there may be another delivery to take; `restSeconds`: how long the receiver asked to be left alone.
 */
export async function noteTry(
  tx: Transaction,
  endpointId: EndpointId,
  seen: { isSuccess: boolean; nextSeconds: number | null; restSeconds: number; failingSecondsMax: number },
): Promise<{ endpoint: Endpoint; isFailingLong: boolean } | null> {
  const [row] = await tx.query<EndpointRow & { is_failing_long: boolean }>(
    `update webhook_endpoints set
       failing_since = case when disabled_at is not null then failing_since when $2 then null
         else coalesce(failing_since, clock()) end,
       due_at = least(due_at, clock() + make_interval(secs => $3)),
       held_until = case when $4::float > 0 then greatest(held_until, clock() + make_interval(secs => $4)) else held_until end
     where id = $1
     returning *, coalesce(failing_since <= clock() - make_interval(secs => $5), false) as is_failing_long`,
    [endpointId, seen.isSuccess, seen.nextSeconds, seen.restSeconds, seen.failingSecondsMax],
  )
  return row ? { endpoint: toEndpoint(row), isFailingLong: row.is_failing_long } : null
}

export async function disableEndpoint(
  tx: Transaction,
  endpointId: EndpointId,
  reason: 'gone' | 'failing',
): Promise<Endpoint | null> {
  const [row] = await tx.query<EndpointRow>(
    `update webhook_endpoints set disabled_at = clock(), disabled_reason = $2 where id = $1 and disabled_at is null
     returning *`,
    [endpointId, reason],
  )
  return row ? toEndpoint(row) : null
}

/**
 * Deletes the rows of deleted endpoints that get no more deliveries and that none refers to. Of those that are still
 * referred to, it deletes the secrets.
 */
export async function forgetEndpoints(db: Database, keptHours: number): Promise<void> {
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
    [keptHours],
  )
}

function toEndpoint(row: EndpointRow): Endpoint {
  return { ...toFacts(row), secrets: row.secrets }
}

function toFacts(row: Omit<EndpointRow, 'secrets'>): EndpointFacts {
  return {
    id: row.id,
    storeId: row.store_id,
    url: row.url,
    types: row.types,
    isOrdered: row.is_ordered,
    createdAt: row.created_at,
    disabledAt: row.disabled_at,
    disabledReason: row.disabled_reason,
    failingSince: row.failing_since,
  }
}

/** Endpoints that are due for a delivery, and those whose deliveries have been failing. */
export async function measureEndpoints(
  db: Database,
): Promise<{ readonly due: Queue; readonly failing: Queue; readonly disabled: number }> {
  const [row] = await db.query<{
    due: number
    due_at: Date | null
    failing: number
    failing_since: Date | null
    disabled: number
  }>(
    `select count(*) filter (where due_at <= clock())::integer as due, min(due_at) filter (where due_at <= clock()) as due_at,
       count(*) filter (where failing_since is not null and disabled_at is null)::integer as failing,
       min(failing_since) filter (where disabled_at is null) as failing_since,
       count(*) filter (where disabled_reason = 'failing')::integer as disabled
     from webhook_endpoints where deleted_at is null`,
  )
  return {
    due: { count: row?.due ?? 0, oldestAt: row?.due_at ?? null },
    failing: { count: row?.failing ?? 0, oldestAt: row?.failing_since ?? null },
    disabled: row?.disabled ?? 0,
  }
}
