import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { systemActor } from '../actor.ts'
import { appendEvent, newEvent } from '../append.ts'
import { type Delivered, writeDelivered, writeFailed } from './delivery-rows.ts'
import { type Endpoint, endpointToWire } from './endpoint.ts'
import { disableEndpoint, noteTry } from './endpoint-rows.ts'
import { judge } from './schedule.ts'

/**
 * An endpoint that has only failed for this long is disabled. That is a little less than all tries of a delivery take,
 * so the store of a dead endpoint is notified once, not once per event.
 */
const failingSecondsMax = 72 * 60 * 60

/** The result of a try: `lost` if another one has overtaken it. */
export type Settled = 'delivered' | 'pending' | 'undeliverable' | 'lost'

/**
 * Records the result of a try, all or nothing: the attempt, the delivery's new state, what it shows about the endpoint,
 * and the event that tells the store that an endpoint was disabled or a delivery given up. The common case, a success
 * at a healthy, unordered endpoint, does not touch the endpoint's row and goes through `record` in batches.
 */
export async function settle(
  ctx: Context,
  delivered: Delivered,
  random: number,
  record: (delivered: Delivered) => Promise<boolean>,
): Promise<Settled> {
  const { taken, outcome } = delivered
  const now = ctx.now()
  const verdict = judge(outcome, taken.tries + 1, now, random)
  if (verdict.state === 'delivered' && !taken.isOrdered && !taken.isFailing)
    return (await record(delivered)) ? 'delivered' : 'lost'
  return await ctx.db.transaction(async (tx) => {
    // The endpoint's row first: everyone who locks both does it in this order.
    const seen = await noteTry(tx, taken.endpointId, {
      isSuccess: verdict.state === 'delivered',
      // On an ordered endpoint the next delivery may go now.
      nextSeconds: verdict.state === 'pending' ? verdict.delaySeconds : taken.isOrdered ? 0 : null,
      restSeconds: verdict.state === 'pending' ? verdict.restSeconds : 0,
      failingSecondsMax,
    })
    const isNewest =
      verdict.state === 'delivered'
        ? (await writeDelivered(tx, [delivered]))[0]
        : await writeFailed(tx, delivered, verdict)
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

/** Skips these events themselves: an endpoint that refuses them would create new ones forever. */
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
