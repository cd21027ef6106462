import type { WebhookFormat } from '@farthing/sdk'
import type { Transaction } from '../../database/db.ts'
import type { DeliveryId, EndpointId, StoreId } from '../../ids.ts'
import type { EventRow } from '../rows.ts'
import type { Secret } from './endpoint.ts'

/** A delivery that this process may try now, with everything it needs. */
export type Taken = {
  readonly id: DeliveryId
  readonly storeId: StoreId
  readonly mode: 'live' | 'test'
  readonly endpointId: EndpointId
  readonly url: string
  readonly format: WebhookFormat
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
 * Locks due endpoints in the order of `due_at`, which is never later than an endpoint's first due delivery. The age of
 * their deliveries does not count, because the oldest may belong to a dead receiver. Deliveries are read after the
 * lock, as in assign-sequence.ts.
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

type TakenRow = Omit<Taken, 'event'> & {
  readonly event: Omit<EventRow, 'created_at'> & { created_at: string }
}

/**
 * Leases due deliveries of locked endpoints, as many for each as it has room for, and records when to check each
 * endpoint again. An ordered endpoint gets only its oldest pending delivery, once that is due. The oldest security
 * event may overtake it: a thief who makes deliveries fail could otherwise hide what they do for days. A disabled
 * endpoint gets security events only.
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
     select t.id, t.store_id as "storeId", s.mode, t.endpoint_id as "endpointId", e.url, e.format,
       e.secrets,
       e.is_ordered as "isOrdered", e.failing_since is not null as "isFailing", t.attempt, t.tries,
       t.lag_seconds as "lagSeconds",
       json_build_object('id', v.id, 'sequence', v.sequence::text, 'type', v.type, 'checkout_id', v.checkout_id,
         'checkout_version', v.checkout_version, 'actor', v.actor, 'data', v.data, 'created_at', v.created_at) as event
     from taken t join webhook_endpoints e on e.id = t.endpoint_id join stores s on s.id = t.store_id
     join events v on v.id = t.event_id`,
    [wanted.map(({ id }) => id), wanted.map(({ room }) => room), leaseSeconds],
  )
  return rows.map((row) => ({ ...row, event: { ...row.event, created_at: new Date(row.event.created_at) } }))
}
