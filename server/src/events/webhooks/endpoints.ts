import type {
  Actor,
  CreateWebhookEndpoint,
  Page,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
  WebhookEndpointSecret,
} from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import { type EndpointId, isId, newId, type StoreId } from '../../ids.ts'
import { invalid, Problem } from '../../problems.ts'
import { readSecretsKeys, type SecretsKey } from '../../secrets/key-file.ts'
import { appendEvent, newEvent } from '../append.ts'
import type { Queue } from '../rows.ts'
import { securityHours } from '../security.ts'
import { maskUrl } from './chat.ts'
import {
  type Endpoint,
  type EndpointFacts,
  endpointToWire,
  newSecret,
  rollTo,
  secretUrl,
} from './endpoint.ts'
import { resealSecrets, sealSecrets } from './seal-secrets.ts'

/** Every event is delivered to each of them, so their number is limited. */
const endpointsPerStoreMax = 16
/** Security events also go to endpoints that were deleted, and URLs that were replaced, within the last day. */
const pastEndpointsMax = 48
const overlapSecondsDefault = 86_400

/** SQL: `EndpointFacts`. The secrets are read only to sign or change them. */
const factColumns = `id, store_id as "storeId", url, format, types, is_ordered as "isOrdered", created_at as "createdAt",
  disabled_at as "disabledAt", disabled_reason as "disabledReason", failing_since as "failingSince"`
/** SQL: `Endpoint`. */
export const endpointColumns = `${factColumns}, secrets`

/** The HTTP layer has checked the URL's form; every try checks where it leads. */
export async function createEndpoint(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  input: CreateWebhookEndpoint,
  now: Date,
): Promise<WebhookEndpointSecret> {
  const { format = 'json' } = input
  const isSigned = format === 'json'
  const secret = isSigned ? newSecret() : secretUrl(input.url)
  const id = newId('we', ctx.config.cell, now)
  const endpoint: Endpoint = {
    id,
    storeId,
    url: isSigned ? input.url : maskUrl(input.url),
    format,
    types: [...new Set(input.types ?? [])],
    isOrdered: input.ordered ?? false,
    secrets: sealSecrets(readKeys(ctx), id, [secret]),
    createdAt: now,
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
  }
  await ctx.db.transaction(async (tx) => {
    await lockEndpoints(tx, storeId)
    await refuseTaken(tx, storeId, endpoint.url, null)
    await refuseTooMany(tx, storeId, endpointsPerStoreMax)
    await insertEndpoint(tx, endpoint)
    await tellChange(ctx, tx, actor, { change: 'created', endpoint }, now)
  })
  return { ...endpointToWire(endpoint), secret: isSigned ? secret.secret : '' }
}

export async function readEndpoint(
  ctx: Context,
  storeId: StoreId,
  endpointId: string,
): Promise<WebhookEndpoint> {
  const [endpoint] = await ctx.db.query<EndpointFacts>(
    `select ${factColumns} from webhook_endpoints where store_id = $1 and id = $2 and deleted_at is null`,
    [storeId, endpointId],
  )
  return endpointToWire(endpoint ?? refuseUnknown())
}

/** Newest first. */
export async function listEndpoints(
  ctx: Context,
  storeId: StoreId,
  query: { cursor: string | null; limit: number },
): Promise<Page<WebhookEndpoint>> {
  if (query.cursor !== null && !isId('we', query.cursor)) {
    throw invalid({ pointer: 'cursor', code: 'cursor', detail: 'Must be a cursor from an earlier answer.' })
  }
  const found = await ctx.db.query<EndpointFacts>(
    `select ${factColumns} from webhook_endpoints where store_id = $1 and id < $2 and deleted_at is null
     order by id desc limit $3`,
    [storeId, query.cursor ?? 'we~', query.limit + 1],
  )
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
    const moved = movedTo(endpoint, change.url)
    await refuseTaken(tx, storeId, moved.url, endpoint.id)
    const changed: Endpoint = {
      ...endpoint,
      url: moved.url,
      types: change.types ? [...new Set(change.types)] : endpoint.types,
      isOrdered: change.ordered ?? endpoint.isOrdered,
      secrets: sealSecrets(readKeys(ctx), endpoint.id, moved.secrets),
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
      await keepPrevious(tx, endpoint.id, { id, secrets })
    }
    await writeEndpoint(tx, changed, isMoved || isSwitched)
    if (JSON.stringify(endpointToWire(changed)) !== JSON.stringify(endpointToWire(endpoint)))
      await tellChange(ctx, tx, actor, { change: 'updated', endpoint: changed }, now)
    return changed
  })
  ctx.db.wakeUps.send('events')
  return endpointToWire(changed)
}

/** Where an endpoint's events go after a change. A masked URL, sent back as it was read, changes nothing. */
function movedTo({ url, format, secrets }: Endpoint, next = url): Pick<Endpoint, 'url' | 'secrets'> {
  if (format === 'json' || next === url || maskUrl(next) === url)
    return { url: format === 'json' ? next : url, secrets }
  return { url: maskUrl(next), secrets: [secretUrl(next)] }
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
      await tx.query(
        `update webhook_endpoints set deleted_at = clock(), disabled_at = coalesce(disabled_at, clock()),
           disabled_reason = coalesce(disabled_reason, 'store')
         where id = $1`,
        [endpoint.id],
      )
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
    if (before.format !== 'json')
      throw invalid({
        pointer: '/endpointId',
        code: 'format',
        detail: 'Must be an endpoint that signs. The secret of this one is its URL: change that instead.',
      })
    const end = new Date(now.getTime() + (overlapSeconds ?? overlapSecondsDefault) * 1_000)
    const secrets = sealSecrets(readKeys(ctx), before.id, rollTo(secret, before.secrets, end, now))
    const rolled: Endpoint = { ...before, secrets }
    await tx.query('update webhook_endpoints set secrets = $2 where id = $1', [
      before.id,
      JSON.stringify(secrets),
    ])
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
    await lockEndpoints(tx, storeId)
    const [endpoint] = isId('we', endpointId)
      ? await tx.query<Endpoint>(
          `select ${endpointColumns} from webhook_endpoints
           where store_id = $1 and id = $2 and deleted_at is null for no key update`,
          [storeId, endpointId],
        )
      : []
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

/** Counts the store's endpoints, and how many more were deleted or changed their URL in the last hours. */
async function refuseTooMany(tx: Transaction, storeId: StoreId, liveMax: number): Promise<void> {
  const [counted] = await tx.query<{ live: number; past: number }>(
    `select count(*) filter (where deleted_at is null)::int as live,
       count(*) filter (where deleted_at > clock() - make_interval(hours => $2))::int as past
     from webhook_endpoints where store_id = $1`,
    [storeId, securityHours],
  )
  const { live, past } = counted ?? { live: 0, past: 0 }
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
  const [taken] = await tx.query<{ id: EndpointId }>(
    'select id from webhook_endpoints where store_id = $1 and url = $2 and deleted_at is null',
    [storeId, url],
  )
  if (taken && taken.id !== self)
    throw new Problem('endpoint_exists', `The endpoint ${taken.id} already has this URL.`)
}

/** Serialises changes to a store's endpoints, so that they can be counted. */
async function lockEndpoints(tx: Transaction, storeId: StoreId): Promise<void> {
  await tx.query('select id from stores where id = $1 for no key update', [storeId])
}

async function insertEndpoint(tx: Transaction, endpoint: Endpoint): Promise<void> {
  await tx.query(
    `insert into webhook_endpoints (id, store_id, url, types, is_ordered, secrets, created_at, format)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      endpoint.id,
      endpoint.storeId,
      endpoint.url,
      endpoint.types,
      endpoint.isOrdered,
      JSON.stringify(endpoint.secrets),
      endpoint.createdAt,
      endpoint.format,
    ],
  )
}

/**
 * Writes the fields that the store may change, and the secrets, which may have been sealed since they were read. The
 * endpoint is due at once, because deliveries may have been waiting. A pause that the receiver asked for goes on unless
 * `isRested`.
 */
async function writeEndpoint(tx: Transaction, endpoint: Endpoint, isRested: boolean): Promise<void> {
  await tx.query(
    `update webhook_endpoints set url = $2, types = $3, is_ordered = $4, disabled_at = $5, disabled_reason = $6,
       failing_since = $7, held_until = case when $8 then null else held_until end, due_at = clock(), secrets = $9
     where id = $1`,
    [
      endpoint.id,
      endpoint.url,
      endpoint.types,
      endpoint.isOrdered,
      endpoint.disabledAt,
      endpoint.disabledReason,
      endpoint.failingSince,
      isRested,
      JSON.stringify(endpoint.secrets),
    ],
  )
}

/** Keeps the URL and secrets that an endpoint had before a change, as a deleted endpoint. */
async function keepPrevious(
  tx: Transaction,
  endpointId: EndpointId,
  kept: Pick<Endpoint, 'id' | 'secrets'>,
): Promise<void> {
  await tx.query(
    `insert into webhook_endpoints (id, store_id, url, format, types, is_ordered, secrets, created_at, disabled_at,
       disabled_reason, deleted_at)
     select $2, store_id, url, format, types, is_ordered, $3, created_at, coalesce(disabled_at, clock()),
       coalesce(disabled_reason, 'store'), clock()
     from webhook_endpoints where id = $1`,
    [endpointId, kept.id, JSON.stringify(kept.secrets)],
  )
}

/** Endpoints that are due for a delivery, and those whose deliveries have been failing. */
export async function measureEndpoints(
  db: Database,
): Promise<{ readonly due: Queue; readonly failing: Queue; readonly disabled: number }> {
  const [row] = await db.query<{
    due: number
    due_at: Date | null
    failing: number
    failing_since: Date | null
    disabled: number
  }>(
    `select count(*) filter (where due_at <= clock())::integer as due, min(due_at) filter (where due_at <= clock()) as due_at,
       count(*) filter (where failing_since is not null and disabled_at is null)::integer as failing,
       min(failing_since) filter (where disabled_at is null) as failing_since,
       count(*) filter (where disabled_reason = 'failing')::integer as disabled
     from webhook_endpoints where deleted_at is null`,
  )
  return {
    due: { count: row?.due ?? 0, oldestAt: row?.due_at ?? null },
    failing: { count: row?.failing ?? 0, oldestAt: row?.failing_since ?? null },
    disabled: row?.disabled ?? 0,
  }
}

/** An endpoint whose deliveries fail. */
export type Troubled = {
  readonly id: EndpointId
  readonly url: string
  /** Null if it was disabled because its deliveries failed. */
  readonly failingSince: Date | null
}

/** A store has few endpoints, so there is no limit. */
export async function listTroubled(db: Database, storeId: StoreId): Promise<Troubled[]> {
  return await db.query<Troubled>(
    `select id, url, case when disabled_at is null then failing_since end as "failingSince" from webhook_endpoints
     where store_id = $1 and deleted_at is null
       and (disabled_reason in ('failing', 'gone') or disabled_at is null and failing_since is not null) order by id`,
    [storeId],
  )
}
