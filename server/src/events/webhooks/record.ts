import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { DeliveryId, EndpointId } from '../../ids.ts'
import { appendEvent, newEvent, systemActor } from '../append.ts'
import { type Endpoint, endpointToWire } from './endpoint.ts'
import { endpointColumns } from './endpoints.ts'
import { judge, type Outcome, type Verdict } from './schedule.ts'
import type { Taken } from './take.ts'

/**
 * An endpoint that has only failed for this long is disabled. That is a little less than all tries of a delivery take,
 * so the store of a dead endpoint is notified once, not once per event.
 */
const failingSecondsMax = 72 * 60 * 60

/** The result of a try: `lost` if another one has overtaken it. */
type Recorded = 'delivered' | 'pending' | 'undeliverable' | 'lost'

/**
 * Records the result of a try, all or nothing: the attempt, the delivery's new state, what it shows about the endpoint,
 * and the event that tells the store that an endpoint was disabled or a delivery given up. The common case, a success
 * at a healthy, unordered endpoint, does not touch the endpoint's row and goes through `recordDelivered` in batches.
 */
export async function recordTry(
  ctx: Context,
  delivered: Delivered,
  random: number,
  recordDelivered: (delivered: Delivered) => Promise<boolean>,
): Promise<Recorded> {
  const { taken, outcome } = delivered
  const now = ctx.now()
  const verdict = judge(outcome, taken.tries + 1, now, random)
  if (verdict.state === 'delivered' && !taken.isOrdered && !taken.isFailing)
    return (await recordDelivered(delivered)) ? 'delivered' : 'lost'
  return await ctx.db.transaction(async (tx) => {
    // The endpoint's row first: everyone who locks both does it in this order.
    const seen = await noteTry(tx, taken.endpointId, {
      isSuccess: verdict.state === 'delivered',
      // On an ordered endpoint the next delivery may go now.
      nextSeconds: verdict.state === 'pending' ? verdict.delaySeconds : taken.isOrdered ? 0 : null,
      restSeconds: verdict.state === 'pending' ? verdict.restSeconds : 0,
      failingSecondsMax,
    })
    const [isNewest] = await writeTries(tx, [delivered], verdict)
    if (!isNewest) return 'lost'
    if (seen && seen.endpoint.disabledAt === null && verdict.state !== 'delivered') {
      const isGone = verdict.state === 'undeliverable' && verdict.isGone
      if (isGone || seen.isFailingLong)
        await disable(ctx, tx, seen.endpoint, isGone ? 'gone' : 'failing', now)
      else if (verdict.state === 'undeliverable')
        await tellUndelivered(ctx, tx, delivered, seen.endpoint, now)
    }
    return verdict.state
  })
}

async function disable(
  ctx: Context,
  tx: Transaction,
  { id, storeId }: Endpoint,
  reason: 'gone' | 'failing',
  now: Date,
): Promise<void> {
  const disabled = await disableEndpoint(tx, id, reason)
  if (!disabled) return
  const data = { webhookEndpoint: endpointToWire(disabled) }
  await appendEvent(tx, newEvent(ctx, storeId, systemActor, { type: 'webhook_endpoint.disabled', data }, now))
}

/** Does not report an undelivered report: an endpoint that refuses them would create new ones forever. */
async function tellUndelivered(
  ctx: Context,
  tx: Transaction,
  { taken }: Delivered,
  endpoint: Endpoint,
  now: Date,
): Promise<void> {
  if (taken.event.type === 'webhook_endpoint.undelivered') return
  const data = { webhookEndpoint: endpointToWire(endpoint), eventId: taken.event.id }
  await appendEvent(
    tx,
    newEvent(ctx, taken.storeId, null, { type: 'webhook_endpoint.undelivered', data }, now),
  )
}

/**
 * Records what a try showed about its endpoint, and returns whether it has been failing for too long. `nextSeconds`:
 * when there may be another delivery to take; `restSeconds`: how long the receiver asked to be left alone.
 */
async function noteTry(
  tx: Transaction,
  endpointId: EndpointId,
  seen: { isSuccess: boolean; nextSeconds: number | null; restSeconds: number; failingSecondsMax: number },
): Promise<{ endpoint: Endpoint; isFailingLong: boolean } | null> {
  const [row] = await tx.query<Endpoint & { isFailingLong: boolean }>(
    `update webhook_endpoints set
       failing_since = case when disabled_at is not null then failing_since when $2 then null
         else coalesce(failing_since, clock()) end,
       due_at = least(due_at, clock() + make_interval(secs => $3)),
       held_until = case when $4::float > 0 then greatest(held_until, clock() + make_interval(secs => $4)) else held_until end
     where id = $1
     returning ${endpointColumns},
       coalesce(failing_since <= clock() - make_interval(secs => $5), false) as "isFailingLong"`,
    [endpointId, seen.isSuccess, seen.nextSeconds, seen.restSeconds, seen.failingSecondsMax],
  )
  if (!row) return null
  const { isFailingLong, ...endpoint } = row
  return { endpoint, isFailingLong }
}

async function disableEndpoint(
  tx: Transaction,
  endpointId: EndpointId,
  reason: 'gone' | 'failing',
): Promise<Endpoint | null> {
  const [endpoint] = await tx.query<Endpoint>(
    `update webhook_endpoints set disabled_at = clock(), disabled_reason = $2 where id = $1 and disabled_at is null
     returning ${endpointColumns}`,
    [endpointId, reason],
  )
  return endpoint ?? null
}

export type Delivered = { readonly taken: Taken; readonly outcome: Outcome }

/** Records tries that ended alike. Returns for each whether it was still the newest. */
export async function writeTries(
  db: Database | Transaction,
  batch: readonly Delivered[],
  verdict: Verdict,
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
     update deliveries d set state = $2, tries = d.tries + 1, leased_until = null,
       run_at = case when $2 = 'delivered' then d.run_at else clock() + make_interval(secs => $3) end,
       finished_at = case when $2 = 'pending' then null else clock() end
     from input i where d.id = i.id and d.attempt = i.attempt and d.state = 'pending'
     returning d.id`,
    [
      JSON.stringify(batch.map(toAttempt)),
      verdict.state,
      verdict.state === 'pending' ? verdict.delaySeconds : 0,
    ],
  )
  const written = new Set(rows.map(({ id }) => id))
  return batch.map(({ taken }) => written.has(taken.id))
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
