import type { Event, EventPage } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { toSafeNumber } from '../safe-number.ts'
import { columns, type EventRow, type LogEnd, readLogEnd } from './rows.ts'

/** `type` may also be a prefix, such as `wallet.*`; `actor` is the id of a key, member or operator. */
export type EventFilter = {
  readonly type: string | null
  readonly checkoutId: string | null
  readonly actor: string | null
}

/** Retention deletes these with their checkouts. All others stay. */
const deletedTypes = /^(checkout|payment|refund)\./

/**
 * One page of a store's log after a cursor, oldest first. Without a cursor it starts behind the last deleted event. Events
 * of one checkout, and of types that are never deleted, can be read from the beginning.
 */
export async function readEvents(
  ctx: Context,
  storeId: StoreId,
  query: EventFilter & { after: string | null; limit: number },
): Promise<EventPage> {
  if (query.checkoutId !== null && !isId('ch', query.checkoutId)) {
    throw invalid({
      pointer: 'checkoutId',
      code: 'id',
      detail: 'Must be a checkout id, which begins with ch_.',
    })
  }
  const end = await readLogEnd(ctx.db, storeId)
  const isWhole = query.checkoutId !== null || (query.type !== null && !deletedTypes.test(query.type))
  const after = query.after === null && !isWhole ? end.truncated : parseCursor(end, 'after', query.after)
  // One extra row shows whether there is a next page.
  const page = { ...query, after, last: end.last, limit: query.limit + 1 }
  const { rows, truncated } = await listEvents(ctx.db, storeId, page)
  if (!isWhole) refuseTruncated({ ...end, truncated }, after)
  const data = rows.slice(0, query.limit).map(eventToWire)
  const hasMore = rows.length > query.limit
  // Nothing else matches the filter up to the end of the log as it was before the read: the next page starts there.
  const last = hasMore ? (data.at(-1)?.sequence ?? after) : end.last > after ? end.last : after
  return { data, cursor: `${end.epoch}-${last}`, hasMore }
}

/**
 * A cursor is the log's epoch and a sequence. The epoch increases when the database is restored to an earlier point.
 */
export function parseCursor(
  { epoch, last }: Pick<LogEnd, 'epoch' | 'last'>,
  pointer: string,
  cursor: string | null,
): bigint {
  if (cursor === null) return 0n
  const match = /^(\d{1,9})-(\d{1,18})$/.exec(cursor)
  if (!match) throw invalid({ pointer, code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  const sequence = BigInt(match[2] ?? '0')
  if (match[1] === String(epoch)) return sequence
  // Events after a restore are numbered again: a cursor beyond the end would miss them.
  const resumeAfter = `${epoch}-${sequence > last ? last : sequence}`
  throw new Problem(
    'log_restarted',
    `The cursor is from before the restore. Continue with after=${resumeAfter}.`,
    { members: { resumeAfter } },
  )
}

/** A reader that goes on after this sequence would miss events that were deleted. */
export function refuseTruncated({ epoch, truncated }: LogEnd, after: bigint): void {
  if (after >= truncated) return
  throw new Problem(
    'log_truncated',
    `The log is complete from number ${truncated + 1n} on. Continue with after=${epoch}-${truncated}.`,
    { members: { firstSequence: toSafeNumber(truncated + 1n) } },
  )
}

/** The sequence in a cursor that we created. */
export function sequenceOf(cursor: string): bigint {
  return BigInt(cursor.slice(cursor.indexOf('-') + 1))
}

/** The event as the API and webhooks send it. */
export function eventToWire(row: EventRow): Event {
  const event = {
    id: row.id,
    type: row.type,
    sequence: Number.parseInt(row.sequence, 10),
    createdAt: row.created_at.toISOString(),
    checkoutId: row.checkout_id,
    checkoutVersion: row.checkout_version,
    actor: row.actor,
    data: row.data,
  }
  // `newEvent` takes only data that match the type.
  return event as Event
}

/**
 * Events read per page if a filter may match few of them. Each may lie on a page of its own in PostgreSQL, so this bounds
 * the cost of a request, apart from a few pages of the index.
 */
export const lookedMax = 250

/** Newest first. */
export type LookedBack = {
  readonly epoch: number
  readonly events: readonly Event[]
  /** The part of the log that was read, both ends included. */
  readonly from: bigint
  readonly to: bigint
  /** The next request's `to`; null at the beginning of the log. */
  readonly next: bigint | null
}

/** `isByActor`: only what a key, a member or an operator caused. */
type BackFilter = EventFilter & { readonly isByActor: boolean }

/** Reads a store's log backwards from an event. */
export async function lookBack(
  ctx: Context,
  storeId: StoreId,
  filter: BackFilter,
  page: { readonly to: bigint | null; readonly limit: number },
): Promise<LookedBack> {
  const { epoch, last } = await readLogEnd(ctx.db, storeId)
  const to = page.to === null || page.to > last ? last : page.to
  const isFiltered = filter.type !== null || filter.actor !== null || filter.isByActor
  // A checkout has few events, which an index finds.
  const isShort = filter.checkoutId !== null
  const reach = isShort ? to : BigInt(isFiltered ? lookedMax : page.limit)
  const start = to - reach + 1n
  const from = start > 1n ? start : 1n
  const values: unknown[] = [storeId, from.toString(), page.limit, to.toString()]
  const where = conditionsOf(filter, 'sequence >= $2 and sequence <= $4', values)
  const rows = await ctx.db.query<EventRow>(
    `select ${columns} from events where ${where} order by sequence desc limit $3`,
    values,
  )
  const events = rows.map(eventToWire)
  const oldest = events.length === page.limit ? BigInt(events.at(-1)?.sequence ?? 1) : from
  return { epoch, events, from: oldest, to, next: oldest > 1n ? oldest - 1n : null }
}

/**
 * Events after a sequence, oldest first. `truncated` is the number up to which some may have been deleted. It is read in
 * the same statement: if it were read before, it could rise in between, and events would be missed.
 */
async function listEvents(
  db: Database,
  storeId: StoreId,
  page: EventFilter & { after: bigint; last: bigint; limit: number },
): Promise<{ readonly rows: EventRow[]; readonly truncated: bigint }> {
  const values: unknown[] = [storeId, page.after.toString(), page.limit, page.last.toString()]
  const where = conditionsOf(page, 'sequence > $2 and sequence <= $4', values)
  const rows = await db.query<EventRow & { truncated: string | null }>(
    `select e.*, l.truncated from (
       select (select last_sequence from truncated_logs where store_id = $1) as truncated
     ) l left join lateral (
       select ${columns} from events where ${where} order by sequence limit $3
     ) e on true`,
    values,
  )
  return {
    rows: rows.filter(({ id }) => id !== null).map(({ truncated: _, ...row }) => row),
    truncated: BigInt(rows[0]?.truncated ?? '0'),
  }
}

/** SQL: the events of a store that a filter lets through, within a range of sequences. */
function conditionsOf(
  filter: EventFilter & { isByActor?: boolean },
  range: string,
  values: unknown[],
): string {
  const { type, checkoutId, actor, isByActor = false } = filter
  // Each combination of filters is a separate statement: a single one for all would sort a store's whole log.
  // A checkout has few events, a log may have millions: "is true" keeps the planner off the index by sequence.
  const conditions = ['store_id = $1', checkoutId === null ? range : `(${range}) is true`]
  if (checkoutId !== null) conditions.push(`checkout_id = $${values.push(checkoutId)}`)
  if (actor !== null) conditions.push(`actor ->> 'id' = $${values.push(actor)}`)
  if (isByActor) conditions.push('actor is not null')
  if (type?.endsWith('.*')) conditions.push(`starts_with(type, $${values.push(type.slice(0, -1))})`)
  else if (type !== null) conditions.push(`type = $${values.push(type)}`)
  return conditions.join(' and ')
}
