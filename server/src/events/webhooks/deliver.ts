import assert from 'node:assert/strict'
import { signWebhook } from '@farthing/sdk/webhooks'
import type { Context } from '../../context.ts'
import { openBatcher } from '../../database/batch.ts'
import type { EndpointId } from '../../ids.ts'
import { readSecretsKeys } from '../../secrets/key-file.ts'
import { SealError } from '../../secrets/seal.ts'
import { eventToWire } from '../read.ts'
import { securityTypes } from '../security.ts'
import { chatBody, withoutUrl } from './chat.ts'
import { answerTimeoutMs, bodyOf, openClient, type Request, webhookHeaders } from './client.ts'
import { type Secret, secretsAt } from './endpoint.ts'
import { type Delivered, recordTry, writeTries } from './record.ts'
import type { Outcome } from './schedule.ts'
import { openSecret } from './seal-secrets.ts'
import { lockDueEndpoints, type Taken, takeDeliveries } from './take.ts'

/**
 * Delivers due webhooks. The pending rows are the queue: each is leased, tried, and recorded with the attempt's number
 * as the fence. When a process is killed its leases expire and others try again, so every event arrives at least once,
 * and always with the same id.
 *
 * No receiver delays another. An endpoint starts with one delivery at a time; quick successes double that, up to eight;
 * a slow or failed try resets it to one. So an endpoint that hangs takes one place of many, and while more than half of
 * all places are taken, failing endpoints get none.
 */
type Deliverer = {
  /**
   * Starts as many deliveries as there is room for. Returns whether there may be more; calls `again` when an endpoint
   * at its limit has room again.
   */
  step(again: () => void): Promise<boolean>
  /** Resolves when no delivery is in progress. */
  idle(): Promise<void>
}

/** A waiting socket costs only a few kilobytes. */
const placesMax = 2_000
const endpointsPerStep = 250
const paceMax = 8
/** A slower try sets the endpoint back to one at a time. */
const quickMs = 1_000
/** Bounds memory: at this number, every endpoint starts with one at a time again. */
const rememberedMax = 100_000
/** A try takes up to 15 s and the response body 2 s; the rest is for writing the result. */
const leaseSeconds = answerTimeoutMs / 1_000 + 15
const recordsPerBatch = 128

export function openDeliverer(ctx: Context): Deliverer {
  const out = new Map<EndpointId, number>()
  const paces = new Map<EndpointId, number>()
  /** Endpoints at their limit, which may have more waiting. */
  const hungry = new Set<EndpointId>()
  const running = new Set<Promise<void>>()
  const record = openBatcher<Delivered, boolean>({
    run: (batch) => writeTries(ctx.db, batch, { state: 'delivered' }),
    runAlone: async (delivered) =>
      (await writeTries(ctx.db, [delivered], { state: 'delivered' }))[0] ?? false,
    itemsMax: recordsPerBatch,
    inFlightMax: 1,
  })
  const attempt = openAttempt(ctx, record)
  const roomOf = (id: EndpointId) => (paces.get(id) ?? 1) - (out.get(id) ?? 0)

  async function run(taken: Taken, again: () => void): Promise<void> {
    let isQuick = false
    try {
      isQuick = await attempt(taken)
    } catch (error) {
      // The lease expires by itself, and then the delivery is tried again.
      ctx.metrics.deliveryTries.inc({ outcome: 'lost' })
      ctx.log.error(
        { deliveryId: taken.id, endpointId: taken.endpointId, err: error },
        error instanceof SealError
          ? 'could not sign a delivery; it is tried again when its lease expires. Put the key that sealed its endpoint’s secret back into SECRETS_KEY_FILE'
          : 'could not record the result of a delivery; it is tried again when its lease expires',
      )
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
        // A try that ended in the meantime may have reset an endpoint to one, which is less than it has in progress.
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

type RecordDelivered = (delivered: Delivered) => Promise<boolean>

/** Signs and posts a delivery once and records the outcome. True if it was delivered quickly. */
function openAttempt(ctx: Context, record: RecordDelivered): (taken: Taken) => Promise<boolean> {
  const post = openClient(ctx)
  let keys = readSecretsKeys(ctx.config.secretsKeyFile)

  function openSecrets(endpointId: EndpointId, secrets: readonly Secret[]): string[] {
    const isKnown = (one: Secret) => !('sealed' in one) || keys.some(({ id }) => id === one.keyId)
    // A key was added to the file since we read it.
    if (!secrets.every(isKnown)) keys = readSecretsKeys(ctx.config.secretsKeyFile)
    return secrets.map((one) => openSecret(keys, endpointId, one))
  }

  /** What is sent where. A line of text is not signed: its URL is the secret. */
  async function write(taken: Taken, startedAt: Date): Promise<Pick<Request, 'url' | 'headers' | 'body'>> {
    const { endpointId, format, event, mode } = taken
    if (format !== 'json') {
      const [url] = openSecrets(endpointId, taken.secrets)
      assert(url, 'the secret of such an endpoint is its URL')
      return { url, headers: webhookHeaders, body: chatBody(format, eventToWire(event), mode) }
    }
    const body = bodyOf(eventToWire(event))
    const secrets = secretsAt(taken.secrets, startedAt, securityTypes.includes(event.type))
    const signed = await signWebhook({
      id: event.id,
      timestamp: startedAt,
      body,
      secrets: openSecrets(endpointId, secrets),
    })
    return { url: taken.url, headers: { ...signed, ...webhookHeaders }, body }
  }

  return async (taken) => {
    const startedAt = ctx.now()
    const { mode, tries, format } = taken
    const request = await write(taken, startedAt)
    const { status, retryAfter, error, answer } = await post({ ...request, mode, tries })
    const shown = (text: string | null) =>
      text === null || format === 'json' ? text : withoutUrl(text, request.url)
    const durationMs = Math.max(0, ctx.now().getTime() - startedAt.getTime())
    const said = { status, retryAfter, error: shown(error), answer: shown(answer) }
    const outcome: Outcome = { ...said, startedAt, durationMs }
    const state = await recordTry(ctx, { taken, outcome }, Math.random(), record)
    ctx.metrics.deliveryTries.inc({ outcome: state === 'pending' ? 'retried' : state })
    return state === 'delivered' && durationMs <= quickMs
  }
}
