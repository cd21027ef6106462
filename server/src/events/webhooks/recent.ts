import type { Context } from '../../context.ts'
import type { EventId, StoreId } from '../../ids.ts'
import { listRecent, type RecentDelivery } from './recent-rows.ts'

/** Deliveries looked through per endpoint and page, where a filter may match few of them. */
const lookedMax = 200

/** `next`: read on with it as `before`; null if that was all. */
export type RecentPage = { readonly deliveries: readonly RecentDelivery[]; readonly next: EventId | null }

/** What went to these endpoints, newest event first. An event's deliveries are never parted by a page. */
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
    // With all deliveries of the last event, and one more.
    limit: limit + endpointIds.length,
  })
  const end = found[limit - 1]?.eventId ?? null
  const deliveries = end === null ? found : found.filter(({ eventId }) => eventId >= end)
  const isCut = deliveries.length < found.length
  return { deliveries, next: isCut ? end : last }
}
