import type { Event } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { StoreId } from '../ids.ts'
import { type EventFilter, eventToWire } from './read.ts'
import { listEventsBack, readLogEnd } from './rows.ts'

/**
 * Events looked through per page where a filter may match few of them. Each may lie on a page of its own in PostgreSQL,
 * so this is what one look costs there at most, beside a few pages of the index.
 */
export const lookedMax = 250

/** Newest first. */
export type LookedBack = {
  readonly epoch: number
  readonly events: readonly Event[]
  /** The stretch of the log that was looked through, both included. */
  readonly from: bigint
  readonly to: bigint
  /** Look on with it as `to`; null at the beginning of the log. */
  readonly next: bigint | null
}

/** The store's log from an event backwards. `isByActor`: only what somebody caused. */
export async function lookBack(
  ctx: Context,
  storeId: StoreId,
  filter: EventFilter & { readonly isByActor: boolean },
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
  const rows = await listEventsBack(ctx.db, storeId, { ...filter, from, to, limit: page.limit })
  const events = rows.map(eventToWire)
  const oldest = events.length === page.limit ? BigInt(events.at(-1)?.sequence ?? 1) : from
  return { epoch, events, from: oldest, to, next: oldest > 1n ? oldest - 1n : null }
}
