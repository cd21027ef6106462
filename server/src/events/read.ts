import type { Event, EventPage, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { isId, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { type EventRow, lastSequence, listEvents, readEpoch } from './rows.ts'

/** One page of a store's log, oldest first, from after a cursor. */
export async function readEvents(
  ctx: Context,
  storeId: StoreId,
  query: { after: string | null; type: EventType | null; checkoutId: string | null; limit: number },
): Promise<EventPage> {
  if (query.checkoutId !== null && !isId('ch', query.checkoutId)) {
    throw invalid({ pointer: 'checkoutId', code: 'id', detail: 'A checkout’s id begins with ch_.' })
  }
  const epoch = await readEpoch(ctx.db)
  const after = await parseCursor(ctx, storeId, epoch, query.after)
  // One more than asked for tells whether there is a next page.
  const rows = await listEvents(ctx.db, storeId, { ...query, after, limit: query.limit + 1 })
  const data = rows.slice(0, query.limit).map(toWire)
  const last = data.at(-1)?.sequence ?? after
  return { data, cursor: `${epoch}-${last}`, hasMore: rows.length > query.limit }
}

/** A cursor is the log's epoch and a sequence. The epoch rises when the database was put back to an earlier point. */
async function parseCursor(
  ctx: Context,
  storeId: StoreId,
  epoch: number,
  cursor: string | null,
): Promise<bigint> {
  if (cursor === null) return 0n
  const match = /^(\d{1,9})-(\d{1,18})$/.exec(cursor)
  if (!match)
    throw invalid({ pointer: 'after', code: 'cursor', detail: 'This is not a cursor that we gave out.' })
  const sequence = BigInt(match[2] ?? '0')
  if (match[1] === String(epoch)) return sequence
  const newest = await lastSequence(ctx.db, storeId)
  // What came after a restore was numbered anew: a cursor beyond the end would never hear of it.
  const resumeAfter = `${epoch}-${sequence > newest ? newest : sequence}`
  throw new Problem('log_restarted', `Read again from after=${resumeAfter}.`, { members: { resumeAfter } })
}

function toWire(row: EventRow): Event {
  return {
    id: row.id,
    type: row.type,
    sequence: Number.parseInt(row.sequence, 10),
    createdAt: row.created_at.toISOString(),
    checkoutId: row.checkout_id,
    checkoutVersion: row.checkout_version,
    data: row.data,
  }
}
