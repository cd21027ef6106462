import { signWebhook } from '@farthing/sdk/webhooks'
import type { Context } from '../../context.ts'
import { openBatcher } from '../../database/batch.ts'
import type { EndpointId } from '../../ids.ts'
import { eventToWire } from '../read.ts'
import { answerTimeoutMs, openClient } from './client.ts'
import {
  type Delivered,
  lockDueEndpoints,
  type Taken,
  takeDeliveries,
  writeDelivered,
} from './delivery-rows.ts'
import { secretsAt } from './endpoint.ts'
import type { Outcome } from './schedule.ts'
import { settle } from './settle.ts'

/**
 * Delivers what is due. The pending rows are the queue: they are leased, tried, and settled with the attempt's number as
 * fence. A process that is killed leaves leases behind, and when they end others try again: so every event arrives at
 * least once, and always with the same id.
 *
 * Nobody waits for somebody else's receiver. An endpoint starts with one delivery at a time; quick successes double that,
 * up to eight; a slow or failed try sets it back to one. So an endpoint that hangs holds one place of many, and while more
 * than half of all places are taken, endpoints that are known to fail get none.
 */
export type Deliverer = {
  /** Takes what there is room for and sends it off. Says whether there may be more; `again` is called when there is. */
  step(again: () => void): Promise<boolean>
  /** When nothing is under way any more. */
  idle(): Promise<void>
}

/** Sockets that wait cost little: a few kilobytes each. */
const placesMax = 2_000
const endpointsPerStep = 250
const paceMax = 8
/** Slower than this is slow. */
const quickMs = 1_000
/** Bounds memory: beyond it every endpoint starts slowly again. */
const rememberedMax = 100_000
/** A try takes 15 s and the answer's body 2 s; the rest is for writing it down. */
const leaseSeconds = answerTimeoutMs / 1_000 + 15
const recordsPerBatch = 128

export function openDeliverer(ctx: Context): Deliverer {
  const post = openClient(ctx)
  const out = new Map<EndpointId, number>()
  const paces = new Map<EndpointId, number>()
  /** Endpoints that had as much as they may have, and perhaps more behind it. */
  const hungry = new Set<EndpointId>()
  const running = new Set<Promise<void>>()
  const record = openBatcher<Delivered, boolean>({
    run: (batch) => writeDelivered(ctx.db, batch),
    runAlone: async (delivered) => (await writeDelivered(ctx.db, [delivered]))[0] ?? false,
    itemsMax: recordsPerBatch,
    inFlightMax: 1,
  })
  const roomOf = (id: EndpointId) => (paces.get(id) ?? 1) - (out.get(id) ?? 0)

  async function attempt(taken: Taken): Promise<boolean> {
    const startedAt = ctx.now()
    const body = JSON.stringify(eventToWire(taken.event))
    const signed = await signWebhook({
      id: taken.event.id,
      timestamp: startedAt,
      body,
      secrets: secretsAt(taken.secrets, startedAt),
    })
    const answer = await post({
      url: taken.url,
      mode: taken.mode,
      turn: taken.tries,
      headers: { ...signed, 'content-type': 'application/json', 'user-agent': 'Farthing-Webhooks/1' },
      body,
    })
    const durationMs = Math.max(0, ctx.now().getTime() - startedAt.getTime())
    const outcome: Outcome = { ...answer, startedAt, durationMs }
    const settled = await settle(ctx, { taken, outcome }, Math.random(), record)
    ctx.metrics.deliveryTries.inc({ outcome: settled })
    return settled === 'delivered' && durationMs <= quickMs
  }

  async function run(taken: Taken, again: () => void): Promise<void> {
    let isQuick = false
    try {
      isQuick = await attempt(taken)
    } catch (error) {
      // The lease ends by itself, and then it is tried again.
      ctx.metrics.deliveryTries.inc({ outcome: 'lost' })
      ctx.log.error({ deliveryId: taken.id, err: error }, 'what came of a delivery could not be written')
    }
    const { endpointId } = taken
    const left = (out.get(endpointId) ?? 1) - 1
    if (left === 0) out.delete(endpointId)
    else out.set(endpointId, left)
    if (paces.size >= rememberedMax) paces.clear()
    paces.set(endpointId, isQuick ? Math.min(2 * (paces.get(endpointId) ?? 1), paceMax) : 1)
    if (hungry.delete(endpointId)) again()
  }

  return {
    async step(again) {
      const places = placesMax - running.size
      if (places <= 0) {
        await Promise.race(running)
        return true
      }
      const full = [...out.keys()].filter((id) => roomOf(id) <= 0)
      const isCrowded = running.size > placesMax / 2
      const taken = await ctx.db.transaction(async (tx) => {
        const limit = Math.min(endpointsPerStep, Math.ceil(places / paceMax))
        const due = await lockDueEndpoints(tx, full, isCrowded, limit)
        if (due.length === 0) return []
        // A try that ended meanwhile may have set an endpoint back: it has more under way than it may have now.
        for (const id of due) if (roomOf(id) <= 0) hungry.add(id)
        const wanted = due.map((id) => ({ id, room: roomOf(id) })).filter(({ room }) => room > 0)
        return await takeDeliveries(tx, wanted, leaseSeconds)
      })
      for (const delivery of taken) {
        const { endpointId } = delivery
        out.set(endpointId, (out.get(endpointId) ?? 0) + 1)
        if (roomOf(endpointId) <= 0) hungry.add(endpointId)
        ctx.metrics.deliveryLag.observe(delivery.lagSeconds)
        const task = run(delivery, again).finally(() => {
          running.delete(task)
          ctx.metrics.deliveriesOut.set(running.size)
        })
        running.add(task)
      }
      ctx.metrics.deliveriesOut.set(running.size)
      return taken.length > 0
    },
    async idle() {
      await Promise.all(running)
    },
  }
}
