import type { Delivery, Page, Redeliver, Redelivered } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { firstIdAt, isId, type StoreId } from '../../ids.ts'
import { invalid, Problem } from '../../problems.ts'
import { parseCursor, refuseTruncated } from '../read.ts'
import { readLogEnd } from '../rows.ts'
import { securityHours } from '../security.ts'
import * as rows from './delivery-rows.ts'
import { forgetEndpoints, makeDue } from './endpoint-rows.ts'
import { changeEndpoint, readEndpoint, refuseDisabled } from './endpoints.ts'

/** Per request, so that it stays one short transaction. */
const eventsPerRedelivery = 5_000
/** How long a finished delivery can be read and redelivered. Events themselves are kept. */
const keptDays = 30
const rowsPerRun = 2_000

/** What was sent to an endpoint and what it answered, newest event first. */
export async function listDeliveries(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
  query: {
    state: string | null
    type: string | null
    eventId: string | null
    cursor: string | null
    limit: number
  },
): Promise<Page<Delivery>> {
  const endpoint = await readEndpoint(ctx, storeId, endpointId)
  if (query.cursor !== null && !isId('evt', query.cursor))
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  if (query.eventId !== null && !isId('evt', query.eventId))
    throw invalid({ pointer: 'eventId', code: 'id', detail: 'Must be an event id, which begins with evt_.' })
  const found = await rows.listDeliveries(ctx.db, storeId, {
    endpointId: endpoint.id as `we_${string}`,
    state: query.state,
    type: query.type,
    eventId: query.eventId,
    before: query.cursor ?? 'evt~',
    limit: query.limit + 1,
  })
  const data = found.slice(0, query.limit)
  return { data, nextCursor: found.length > query.limit ? (data.at(-1)?.eventId ?? null) : null }
}

export async function readDelivery(ctx: Context, storeId: StoreId, deliveryId: string): Promise<Delivery> {
  const [delivery] = isId('dlv', deliveryId)
    ? await rows.listDeliveries(ctx.db, storeId, { deliveryId, before: 'evt~', limit: 1 })
    : []
  if (!delivery) throw new Problem('not_found', 'No such delivery.')
  return delivery
}

/** Delivers one event to its endpoint again, now and with all its tries. */
export async function redeliver(ctx: Context, storeId: StoreId, deliveryId: string): Promise<Delivery> {
  const { id, endpointId } = await readDelivery(ctx, storeId, deliveryId)
  await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    refuseDisabled(endpoint)
    await rows.restartDelivery(tx, id as `dlv_${string}`)
    await makeDue(tx, endpoint.id)
  })
  ctx.db.wakeUps.send('events')
  return await readDelivery(ctx, storeId, deliveryId)
}

/** Redelivers everything after a point to an endpoint, a limited number per call; the answer says how to continue. */
export async function redeliverSince(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
  { after, since, include }: { after: string | null; since: Date | null; include: Redeliver['include'] },
): Promise<Redelivered> {
  if ((after === null) === (since === null))
    throw invalid({
      pointer: '/after',
      code: 'choice',
      detail: 'Send either after (a cursor) or since (a time).',
    })
  // Before taking the lock: numbering the store's events waits for it.
  const start = since && (await rows.lastSequenceBefore(ctx.db, storeId, since))
  const answer = await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    refuseDisabled(endpoint)
    const end = await readLogEnd(tx, storeId)
    const from = start ?? parseCursor(end, '/after', after)
    if (start === null) refuseTruncated(end, from)
    await rows.holdEvents(tx, storeId, from, eventsPerRedelivery)
    const { count, last, seen } = await rows.redeliverEvents(tx, endpoint.id, {
      storeId,
      after: from,
      since,
      isAll: include === 'all',
      limit: eventsPerRedelivery,
    })
    await makeDue(tx, endpoint.id)
    return { count, cursor: `${end.epoch}-${last ?? from}`, hasMore: seen === eventsPerRedelivery }
  })
  ctx.db.wakeUps.send('events')
  return answer
}

/** Gives up deliveries to disabled endpoints, and deletes deliveries that finished long ago. */
export async function tidyDeliveries(ctx: Context, now: Date): Promise<void> {
  while ((await rows.giveUpDisabled(ctx.db, rowsPerRun)) === rowsPerRun);
  const before = firstIdAt('dlv', ctx.config.cell, new Date(now.getTime() - keptDays * 86_400_000))
  while ((await rows.forgetDeliveries(ctx.db, before, keptDays, rowsPerRun)) === rowsPerRun);
  await forgetEndpoints(ctx.db, securityHours)
}
