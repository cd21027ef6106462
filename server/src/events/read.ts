import type { Event, EventPage } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type EventRow, listEvents, readLogEnd } from './rows.ts'

/** `type` may also be all that begin alike, such as `wallet.*`; `actor` is the id of a key, member or operator. */
export type EventFilter = {
  readonly type: string | null
  readonly checkoutId: string | null
  readonly actor: string | null
}

/** One page of a store's log after a cursor, oldest first. */
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
  const after = parseCursor(end, 'after', query.after)
  // One extra row shows whether there is a next page.
  const rows = await listEvents(ctx.db, storeId, { ...query, after, last: end.last, limit: query.limit + 1 })
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
  { epoch, last }: { epoch: number; last: bigint },
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
