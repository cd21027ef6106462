import type { Event, EventPage } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { toSafeNumber } from '../safe-number.ts'
import { type EventRow, type LogEnd, listEvents, readLogEnd } from './rows.ts'

/** `type` may also be all that begin alike, such as `wallet.*`; `actor` is the id of a key, member or operator. */
export type EventFilter = {
  readonly type: string | null
  readonly checkoutId: string | null
  readonly actor: string | null
}

/** Retention deletes these with their checkouts. All others stay. */
const deletedTypes = /^(checkout|payment|refund)\./

/**
 * One page of a store's log after a cursor, oldest first; without a cursor, from where on nothing was deleted. Events of
 * one checkout, and of types that are never deleted, can be read from the beginning.
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
  return {
    id: row.id,
    type: row.type,
    sequence: Number.parseInt(row.sequence, 10),
    createdAt: row.created_at.toISOString(),
    checkoutId: row.checkout_id,
    checkoutVersion: row.checkout_version,
    actor: row.actor,
    data: row.data,
  }
}
