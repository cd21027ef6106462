import type {
  Actor,
  CreateWebhookEndpoint,
  Page,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
  WebhookEndpointSecret,
} from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { type EndpointId, isId, newId, type StoreId } from '../../ids.ts'
import { invalid, Problem } from '../../problems.ts'
import { readSecretsKeys, type SecretsKey } from '../../secrets/key-file.ts'
import { appendEvent, newEvent } from '../append.ts'
import { securityHours } from '../security.ts'
import { type Endpoint, endpointToWire, newSecret, rollTo } from './endpoint.ts'
import * as rows from './endpoint-rows.ts'
import { resealSecrets, sealSecrets } from './seal-secrets.ts'

/** Every event is delivered to each of them, so their number is limited. */
const endpointsPerStoreMax = 16
/** Security events also go to those of the last day: deleted ones, and URLs before a change. */
const pastEndpointsMax = 48
const overlapSecondsDefault = 86_400

/** The HTTP layer has checked the URL's form; every try checks where it leads. */
export async function createEndpoint(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  input: CreateWebhookEndpoint,
  now: Date,
): Promise<WebhookEndpointSecret> {
  const secret = newSecret()
  const id = newId('we', ctx.config.cell, now)
  const endpoint: Endpoint = {
    id,
    storeId,
    url: input.url,
    types: [...new Set(input.types ?? [])],
    isOrdered: input.ordered ?? false,
    secrets: sealSecrets(readKeys(ctx), id, [secret]),
    createdAt: now,
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
  }
  await ctx.db.transaction(async (tx) => {
    await rows.lockEndpoints(tx, storeId)
    await refuseTaken(tx, storeId, input.url, null)
    await refuseTooMany(tx, storeId, endpointsPerStoreMax)
    await rows.insertEndpoint(tx, endpoint)
    await tellChange(ctx, tx, actor, { change: 'created', endpoint }, now)
  })
  return { ...endpointToWire(endpoint), secret: secret.secret }
}

export async function readEndpoint(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
): Promise<WebhookEndpoint> {
  const endpoint = isId('we', endpointId) ? await rows.readEndpoint(ctx.db, storeId, endpointId) : null
  return endpointToWire(endpoint ?? refuseUnknown())
}

export async function listEndpoints(
  ctx: Context,
  storeId: StoreId,
  query: { cursor: string | null; limit: number },
): Promise<Page<WebhookEndpoint>> {
  if (query.cursor !== null && !isId('we', query.cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  const found = await rows.listEndpoints(ctx.db, storeId, {
    before: query.cursor ?? 'we~',
    limit: query.limit + 1,
  })
  const page = found.slice(0, query.limit)
  return {
    data: page.map(endpointToWire),
    nextCursor: found.length > query.limit ? (page.at(-1)?.id ?? null) : null,
  }
}

/** One of a store's endpoints. */
type EndpointKey = { readonly storeId: StoreId; readonly endpointId: string }

export async function updateEndpoint(
  ctx: Context,
  { storeId, endpointId }: EndpointKey,
  actor: Actor,
  change: UpdateWebhookEndpoint,
  now: Date,
): Promise<WebhookEndpoint> {
  const changed = await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    if (change.url !== undefined) await refuseTaken(tx, storeId, change.url, endpoint.id)
    const changed: Endpoint = {
      ...endpoint,
      url: change.url ?? endpoint.url,
      types: change.types ? [...new Set(change.types)] : endpoint.types,
      isOrdered: change.ordered ?? endpoint.isOrdered,
      secrets: sealSecrets(readKeys(ctx), endpoint.id, endpoint.secrets),
      ...(change.status === 'enabled' && { disabledAt: null, disabledReason: null, failingSince: null }),
      ...(change.status === 'disabled' &&
        endpoint.disabledAt === null && { disabledAt: now, disabledReason: 'store' }),
    }
    const isMoved = changed.url !== endpoint.url
    const isSwitched = (changed.disabledAt === null) !== (endpoint.disabledAt === null)
    if (isMoved) {
      await refuseTooMany(tx, storeId, Number.POSITIVE_INFINITY)
      const id = newId('we', ctx.config.cell, now)
      const secrets = resealSecrets(readKeys(ctx), endpoint.id, id, endpoint.secrets)
      await rows.keepPrevious(tx, endpoint.id, { id, secrets })
    }
    await rows.updateEndpoint(tx, changed, isMoved || isSwitched)
    if (JSON.stringify(endpointToWire(changed)) !== JSON.stringify(endpointToWire(endpoint)))
      await tellChange(ctx, tx, actor, { change: 'updated', endpoint: changed }, now)
    return changed
  })
  ctx.db.wakeUps.send('events')
  return endpointToWire(changed)
}

/**
 * The row stays, hidden, until its deliveries are deleted. Pending deliveries are given up, except those of security
 * events, which it gets for another day.
 */
export async function deleteEndpoint(
  ctx: Context,
  { storeId, endpointId }: EndpointKey,
  actor: Actor,
  now: Date,
): Promise<WebhookEndpoint> {
  return endpointToWire(
    await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
      await rows.deleteEndpoint(tx, endpoint.id)
      const deleted: Endpoint = {
        ...endpoint,
        disabledAt: now,
        disabledReason: endpoint.disabledReason ?? 'store',
      }
      await tellChange(ctx, tx, actor, { change: 'deleted', endpoint: deleted }, now)
      return deleted
    }),
  )
}

/**
 * Creates a new secret. The previous one also signs during the overlap; one that was already being replaced stops at
 * once.
 */
export async function rollSecret(
  ctx: Context,
  { storeId, endpointId }: EndpointKey,
  actor: Actor,
  overlapSeconds: number | undefined,
  now: Date,
): Promise<WebhookEndpointSecret> {
  const secret = newSecret()
  const endpoint = await changeEndpoint(ctx, storeId, endpointId, async (tx, before) => {
    const end = new Date(now.getTime() + (overlapSeconds ?? overlapSecondsDefault) * 1_000)
    const secrets = sealSecrets(readKeys(ctx), before.id, rollTo(secret, before.secrets, end, now))
    const rolled: Endpoint = { ...before, secrets }
    await rows.updateSecrets(tx, rolled)
    await tellChange(ctx, tx, actor, { change: 'updated', endpoint: rolled }, now)
    return rolled
  })
  return { ...endpointToWire(endpoint), secret: secret.secret }
}

/** Adds an event to the store's log that goes to this endpoint only, whatever types it subscribes to. */
export async function testEndpoint(
  ctx: Context,
  { storeId, endpointId }: EndpointKey,
  actor: Actor,
  now: Date,
): Promise<{ eventId: string }> {
  const { event_id: eventId } = await changeEndpoint(ctx, storeId, endpointId, async (tx, endpoint) => {
    refuseDisabled(endpoint)
    const data = { webhookEndpoint: endpointToWire(endpoint) }
    const event = newEvent(ctx, storeId, actor, { type: 'webhook_endpoint.test', data }, now)
    await appendEvent(tx, event)
    return event
  })
  return { eventId }
}

/** Runs `work` on one of the store's endpoints while its row is locked. */
export async function changeEndpoint<Result>(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
  work: (tx: Transaction, endpoint: Endpoint) => Promise<Result>,
): Promise<Result> {
  return await ctx.db.transaction(async (tx) => {
    await rows.lockEndpoints(tx, storeId)
    const endpoint = isId('we', endpointId) ? await rows.lockEndpoint(tx, storeId, endpointId) : null
    return await work(tx, endpoint ?? refuseUnknown())
  })
}

export function refuseDisabled({ disabledAt, disabledReason }: Endpoint): void {
  if (disabledAt !== null)
    throw new Problem('endpoint_disabled', `The endpoint is disabled (${disabledReason}). Enable it first.`)
}

/** Read at every change, which is rare: once a new key is first in the file, nothing is sealed with the old one. */
function readKeys({ config }: Context): readonly SecretsKey[] {
  return readSecretsKeys(config.secretsKeyFile)
}

function refuseUnknown(): never {
  throw new Problem('not_found', 'No such webhook endpoint.')
}

/** Reports a change in the store's log, without secrets. */
async function tellChange(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  told: { readonly change: 'created' | 'updated' | 'deleted'; readonly endpoint: Endpoint },
  now: Date,
): Promise<void> {
  const { change, endpoint } = told
  const data = { webhookEndpoint: endpointToWire(endpoint) }
  await appendEvent(
    tx,
    newEvent(ctx, endpoint.storeId, actor, { type: `webhook_endpoint.${change}`, data }, now),
  )
}

async function refuseTooMany(tx: Transaction, storeId: StoreId, liveMax: number): Promise<void> {
  const { live, past } = await rows.countEndpoints(tx, storeId, securityHours)
  if (live >= liveMax)
    throw new Problem('endpoint_limit', `A store can have at most ${liveMax} webhook endpoints.`)
  if (past >= pastEndpointsMax) {
    throw new Problem(
      'endpoint_limit',
      `A store can delete endpoints and change their URLs at most ${pastEndpointsMax} times in ${securityHours} hours.`,
    )
  }
}

async function refuseTaken(
  tx: Transaction,
  storeId: StoreId,
  url: string,
  self: EndpointId | null,
): Promise<void> {
  const taken = await rows.findEndpointByUrl(tx, storeId, url)
  if (taken !== null && taken !== self)
    throw new Problem('endpoint_exists', `The endpoint ${taken} already has this URL.`)
}
