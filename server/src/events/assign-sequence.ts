import type { EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { type Database, isReachable, type Transaction } from '../database/db.ts'
import type { CheckoutId, EventId, RefundId, StoreId } from '../ids.ts'
import { securityHours, securityTypes } from './security.ts'

/**
 * Gives committed events their place in their store's log: 1, 2, 3 … without gaps.
 *
 * Writers insert events without a number, so that a busy store does not serialise its own writes. Here one process at a
 * time locks a store's counter row, and only then reads the events without a number. That must be a second statement: a
 * single one would use a snapshot taken before it had the lock. Numbers follow `position`, which was drawn under the
 * checkout's row lock, so a checkout's versions are always in order. A crash leaves events without a number; the next
 * run finds them.
 *
 * All waiting stores are numbered in one transaction. If that fails, whatever the reason, each store gets its own. A
 * store that fails there, for example because its counter is wrong, is held back and tried again later, alone, and
 * delays no other store. Nothing of it is left out: an event gets its number together with everything that is written
 * alongside, or not at all. Only while the database cannot be reached, nobody is held back.
 */
const storesPerRun = 200
/** Bounds how long one store's backlog keeps the others waiting. */
const eventsPerStore = 1_000
/**
 * How long stores are tried one by one before the next run goes on. Each may wait for a lock that another process holds
 * for long, and the others should not wait for all of them.
 */
const aloneMsMax = 5_000
/** A store that failed is tried again after this time, and after twice as long each time that it fails again. */
const heldMsMin = 1_000
const heldMsMax = 60_000
/** Enough to recognise which stores are concerned. */
const storesLogged = 10

class CounterBehindError extends Error {
  override readonly name = 'CounterBehindError'
  override readonly message = 'The counter is behind the numbers of events that were deleted.'
}

type Held = { readonly until: number; readonly restMs: number }

export type NumberingPass = {
  /** Where the last run stopped. The next one continues there, so that no store waits for all stores with lower ids. */
  after: string
  /** Stores whose events could not be numbered. Each process finds this out for itself. */
  held?: Map<StoreId, Held>
}

/** An event that was just numbered, and what it is about. */
export type NumberedEvent = {
  readonly id: EventId
  readonly storeId: StoreId
  readonly type: EventType
  readonly checkoutId: CheckoutId | null
  readonly paymentId: string | null
  readonly refundId: RefundId | null
}

/** What else happens in the transaction that numbers events of these types. */
export type Alongside = {
  readonly types: readonly EventType[]
  /** Gets the events in the order of their numbers. */
  readonly run: (tx: Transaction, events: readonly NumberedEvent[]) => Promise<void>
}

/** Numbers the waiting events and creates their deliveries. Returns how many events were numbered. */
export async function assignWaitingSequences(
  ctx: Context,
  pass: NumberingPass = { after: '' },
  alongside: readonly Alongside[] = [],
): Promise<number> {
  pass.held ??= new Map()
  const { held } = pass
  const behind = await storesWithUnsequenced(ctx.db, pass.after, storesPerRun)
  const waiting =
    behind.length > 0 || pass.after === '' ? behind : await storesWithUnsequenced(ctx.db, '', storesPerRun)
  pass.after = (waiting.length === storesPerRun && waiting.at(-1)) || ''
  const now = ctx.now().getTime()
  const due = [...held].filter(([, { until }]) => until <= now).map(([storeId]) => storeId)
  const together = waiting.filter((storeId) => !held.has(storeId))
  const assignOf = (storeIds: readonly StoreId[]) => assign(ctx, storeIds, alongside)
  const assigned =
    (await assignTogether(ctx, together, held, assignOf)) + (await assignAlone(ctx, due, held, assignOf))
  if (assigned > 0) {
    crashPoint(ctx, 'sequence-after-commit')
    ctx.db.wakeUps.send('events')
  }
  ctx.metrics.eventsSequenced.inc(assigned)
  ctx.metrics.eventLogsHeld.set(held.size)
  return assigned
}

type AssignOf = (storeIds: readonly StoreId[]) => Promise<number>

async function assignTogether(
  ctx: Context,
  storeIds: readonly StoreId[],
  held: Map<StoreId, Held>,
  assignOf: AssignOf,
): Promise<number> {
  if (storeIds.length === 0) return 0
  try {
    return await assignOf(storeIds)
  } catch {
    // Whose fault it was shows when each is tried alone.
    return await assignAlone(ctx, storeIds, held, assignOf)
  }
}

/** Numbers the events of each store in a transaction of its own, and holds back the stores for which that fails. */
async function assignAlone(
  ctx: Context,
  storeIds: readonly StoreId[],
  held: Map<StoreId, Held>,
  assignOf: AssignOf,
): Promise<number> {
  const end = ctx.now().getTime() + aloneMsMax
  const failed: Failed[] = []
  let assigned = 0
  for (const storeId of storeIds) {
    if (ctx.now().getTime() > end) break
    try {
      assigned += await assignOf([storeId])
      if (held.delete(storeId)) ctx.log.info({ storeId }, 'the events of a store are numbered again')
    } catch (error) {
      if (!(await isReachable(ctx.db))) {
        logFailed(ctx, failed)
        throw error
      }
      failed.push({ storeId, error })
      const before = held.get(storeId)?.restMs ?? 0
      const restMs = Math.min(Math.max(2 * before, heldMsMin), heldMsMax)
      held.set(storeId, { until: ctx.now().getTime() + restMs, restMs })
    }
  }
  logFailed(ctx, failed)
  return assigned
}

type Failed = { readonly storeId: StoreId; readonly error: unknown }

function logFailed({ log }: Context, failed: readonly Failed[]): void {
  const [first] = failed
  if (!first) return
  const storeIds = failed.slice(0, storesLogged).map(({ storeId }) => storeId)
  log.error(
    { stores: failed.length, storeIds, err: first.error },
    'the events of some stores cannot be numbered, so they get no events and no webhooks; all other stores go on: run doctor',
  )
}

async function assign(
  ctx: Context,
  storeIds: readonly StoreId[],
  alongside: readonly Alongside[],
): Promise<number> {
  return await ctx.db.transaction(async (tx) => {
    const locked = await lockCounters(tx, storeIds)
    if (locked.length === 0) return 0
    if (locked.some(({ isBehindDeleted }) => isBehindDeleted)) throw new CounterBehindError()
    const { assigned, concerned } = await assignSequences(
      tx,
      locked.map(({ storeId }) => storeId),
      eventsPerStore,
      alongside.flatMap(({ types }) => types),
    )
    for (const { types, run } of alongside) {
      const events = concerned.filter(({ type }) => types.includes(type))
      if (events.length > 0) await run(tx, events)
    }
    crashPoint(ctx, 'sequence-before-commit')
    return assigned
  })
}

/** Stores with events that wait for their number, ordered by id, starting after a given store. */
async function storesWithUnsequenced(db: Database, after: string, limit: number): Promise<StoreId[]> {
  // Walks the index from store to store: the cost depends on the number of stores, not of waiting events.
  const rows = await db.query<{ store_id: StoreId }>(
    `with recursive waiting as (
       (select store_id from events where sequence is null and store_id > $2 order by store_id limit 1)
       union all
       select (select e.store_id from events e where e.sequence is null and e.store_id > w.store_id
               order by e.store_id limit 1)
       from waiting w where w.store_id is not null
     )
     select store_id from waiting where store_id is not null limit $1`,
    [limit, after],
  )
  return rows.map(({ store_id }) => store_id)
}

/**
 * Locks the counters that no other process holds. Until we commit, only we can number their events. No unique index would
 * refuse the number of a deleted event a second time, so this also returns which counters are behind those numbers.
 */
export async function lockCounters(
  tx: Transaction,
  storeIds: readonly StoreId[],
): Promise<{ readonly storeId: StoreId; readonly isBehindDeleted: boolean }[]> {
  return await tx.query<{ storeId: StoreId; isBehindDeleted: boolean }>(
    `select c.store_id as "storeId", coalesce(c.last_sequence < l.last_sequence, false) as "isBehindDeleted"
     from event_counters c left join truncated_logs l on l.store_id = c.store_id
     where c.store_id = any($1) order by c.store_id for update of c skip locked`,
    [storeIds],
  )
}

/**
 * Numbers the oldest waiting events of the locked stores, continuing from each store's counter, and creates their
 * deliveries: to enabled endpoints that subscribe to them, or to all (see security.ts). A delivery's id is its event's
 * cell and time, followed by a hash of both ids. The endpoint's row is updated even if it is already due. The update waits
 * for a process that has locked the row to take deliveries, so that this process cannot mark the endpoint as idle before
 * it has seen the new ones. Also returns the events of `types`.
 */
async function assignSequences(
  tx: Transaction,
  storeIds: readonly StoreId[],
  perStoreLimit: number,
  types: readonly EventType[],
): Promise<{ readonly assigned: number; readonly concerned: readonly NumberedEvent[] }> {
  const [row] = await tx.query<{ assigned: number; concerned: NumberedEvent[] | null }>(
    `with numbered as (
       select e.id, e.store_id, c.last_sequence + e.place as sequence
       from event_counters c
       cross join lateral (
         select id, store_id, row_number() over (order by position) as place
         from (select id, store_id, position from events
               where store_id = c.store_id and sequence is null
               order by position limit $2) waiting
       ) e
       where c.store_id = any($1)
     ), assigned as (
       update events set sequence = numbered.sequence from numbered where events.id = numbered.id
       returning events.id, events.store_id, events.sequence, events.type, events.data, events.checkout_id
     ), addressed as (
       insert into deliveries (id, store_id, endpoint_id, event_id, sequence, run_at, is_security)
       select 'dlv_' || substr(a.id, 5, 12) || substr(md5(w.id || a.id), 1, 16), a.store_id, w.id, a.id, a.sequence,
              clock(), a.type = any($3)
       from assigned a join webhook_endpoints w on w.store_id = a.store_id
       where case
         when a.type = any($3) then (w.deleted_at is null or w.deleted_at > clock() - make_interval(hours => $4))
           and w.secrets <> '[]' and (a.type <> 'webhook_endpoint.created' or a.data->'webhookEndpoint'->>'id' <> w.id)
         when w.disabled_at is not null then false
         when a.type = 'webhook_endpoint.test' then a.data->'webhookEndpoint'->>'id' = w.id
         else w.types = '{}' or a.type = any(w.types) end
       returning endpoint_id
     ), due as (
       update webhook_endpoints set due_at = least(due_at, clock())
       where id in (select endpoint_id from addressed)
     ), counted as (
       update event_counters c set last_sequence = a.last_sequence
       from (select store_id, max(sequence) as last_sequence from assigned group by store_id) a
       where c.store_id = a.store_id
     )
     select count(*)::int as assigned, (select json_agg(json_build_object('id', id, 'storeId', store_id, 'type', type,
         'checkoutId', checkout_id, 'paymentId', data -> 'payment' ->> 'id', 'refundId', data -> 'refund' ->> 'id')
         order by sequence) from assigned where type = any($5)) as concerned
     from assigned`,
    [storeIds, perStoreLimit, securityTypes, securityHours, types],
  )
  return { assigned: row?.assigned ?? 0, concerned: row?.concerned ?? [] }
}
