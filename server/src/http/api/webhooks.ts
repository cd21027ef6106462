import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import type { Context } from '../../context.ts'
import { reachOf } from '../../events/webhooks/address.ts'
import { listDeliveries, readDelivery, redeliver, redeliverSince } from '../../events/webhooks/deliveries.ts'
import {
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  readEndpoint,
  rollSecret,
  testEndpoint,
  updateEndpoint,
} from '../../events/webhooks/endpoints.ts'
import { invalid } from '../../problems.ts'
import { checkWebUrl } from '../../stores/check-text.ts'
import { answer, limitDefault, parseTime, type Route } from '../route.ts'
import { eventType, eventTypes } from './event-types.ts'
import { cursor, limit, nullable, object, of, PageQuery, pageOf, shape, timestamp } from './shapes.ts'

const types = Type.Array(eventType(), {
  maxItems: eventTypes.length,
  description: 'The event types to deliver. An empty list means every type.',
})

const ordered = Type.Boolean({
  description:
    'Deliver one event at a time, in the order of the log. A failing delivery holds up all later ones until it succeeds or is given up.',
})

const url = Type.String({
  maxLength: 2048,
  description:
    'An https URL on port 443 or 8443, at a public address. Test stores of a local deployment may also use http to localhost.',
})

const format = Type.Enum(['json', 'slack', 'discord'], {
  description:
    'json: the event, signed. slack and discord: a line of text in the form that these services take, without a signature. The URL is a secret then: it is shown masked. An endpoint keeps its format.',
})

const status = Type.Enum(['enabled', 'disabled'])

export const WebhookEndpoint = shape<Wire.WebhookEndpoint>()({
  id: Type.String({ description: 'Begins with we_.' }),
  url: Type.String({ description: 'Masked if the format is slack or discord.' }),
  format,
  types,
  ordered,
  status,
  disabledReason: nullable(
    Type.Enum(['store', 'gone', 'failing'], {
      description:
        'store: the store disabled it. gone: the receiver answered 410. failing: no delivery succeeded for three days.',
    }),
  ),
  failingSince: nullable(timestamp()),
  createdAt: timestamp(),
})

const WebhookEndpointSecret = shape<Wire.WebhookEndpointSecret>()({
  ...WebhookEndpoint.properties,
  secret: Type.String({
    description:
      'Signs the deliveries, as defined by Standard Webhooks 1.0. Shown only when it is created. Empty if the format is slack or discord.',
    examples: ['whsec_…'],
  }),
})

export const CreateWebhookEndpoint = shape<Wire.CreateWebhookEndpoint>()({
  url,
  format: Type.Optional(format),
  types: Type.Optional(types),
  ordered: Type.Optional(ordered),
})

export const UpdateWebhookEndpoint = shape<Wire.UpdateWebhookEndpoint>()(
  {
    url: Type.Optional(url),
    types: Type.Optional(types),
    ordered: Type.Optional(ordered),
    status: Type.Optional(status),
  },
  { minProperties: 1 },
)

const RollSecret = shape<Wire.RollSecret>()({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 86_400,
      description: 'How long deliveries are also signed with the old secret.',
    }),
  ),
})

const TestEvent = shape<{ eventId: string }>()({ eventId: Type.String() })

export const DeliveryAttempt = shape<Wire.DeliveryAttempt>()({
  attempt: Type.Integer(),
  startedAt: timestamp(),
  durationMs: nullable(
    Type.Integer({ description: 'Null if the attempt was interrupted; it may or may not have arrived.' }),
  ),
  status: nullable(Type.Integer({ description: 'The receiver’s HTTP status; null if it did not answer.' })),
  error: nullable(Type.String({ description: 'Why there was no answer.' })),
  answer: nullable(Type.String({ description: 'The first 4 KiB of the receiver’s answer.' })),
})

const deliveryState = Type.Enum(['pending', 'delivered', 'undeliverable'])

export const Delivery = shape<Wire.Delivery>()({
  id: Type.String({ description: 'Begins with dlv_.' }),
  endpointId: Type.String(),
  eventId: Type.String(),
  eventType: eventType(),
  sequence: Type.Integer(),
  state: deliveryState,
  tries: Type.Integer({
    description: 'Attempts finished since the delivery was created or last redelivered.',
  }),
  nextTryAt: nullable(timestamp()),
  attempts: Type.Array(DeliveryAttempt, { description: 'Newest first, at most 20.' }),
})

const after = Type.String({
  maxLength: 40,
  description: 'Start after this cursor of the event log. Send either after or since.',
})

export const Redeliver = shape<Wire.Redeliver>()({
  after: Type.Optional(after),
  since: Type.Optional(
    Type.String({ format: 'date-time', description: 'Start at this time. Send either after or since.' }),
  ),
  include: Type.Optional(
    Type.Enum(['undelivered', 'all'], {
      default: 'undelivered',
      description:
        'undelivered: only events that were never delivered, including those that happened while the endpoint was disabled.',
    }),
  ),
})

export const Redelivered = shape<Wire.Redelivered>()({
  count: Type.Integer({ description: 'How many deliveries are sent again now.' }),
  cursor: Type.String({ description: 'Pass it as after to continue.' }),
  hasMore: Type.Boolean(),
})

const WebhookEndpointPage = of<Wire.Page<Wire.WebhookEndpoint>>()(pageOf(WebhookEndpoint))

const DeliveryPage = of<Wire.Page<Wire.Delivery>>()(pageOf(Delivery))

const DeliveryQuery = object({
  limit,
  cursor,
  state: Type.Optional(deliveryState),
  type: Type.Optional(eventType()),
  eventId: Type.Optional(Type.String({ maxLength: 40 })),
})

const one = '/api/v1/webhook-endpoints/:endpointId'

/** A store's webhook endpoints and the deliveries to them. */
export function webhookRoutes(): Route[] {
  return [...endpointRoutes(), ...secretRoutes(), ...deliveryRoutes()]
}

function endpointRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/webhook-endpoints',
      operationId: 'createWebhookEndpoint',
      summary: 'Register a webhook endpoint',
      description:
        'Events that happen from now on are delivered to its URL. The secret is shown only in this answer.',
      scope: 'webhooks:write',
      body: CreateWebhookEndpoint,
      answers: { 201: { description: 'Registered and enabled.', schema: WebhookEndpointSecret } },
      problems: ['endpoint_exists', 'endpoint_limit'],
      handle: answer<Wire.CreateWebhookEndpoint>(201, async ({ ctx, storeId, caller, actor, input, now }) => {
        checkUrl(ctx, caller.holder.store.mode, input.url)
        return await createEndpoint(ctx, storeId, actor, input, now)
      }),
    },
    {
      method: 'GET',
      path: '/api/v1/webhook-endpoints',
      operationId: 'listWebhookEndpoints',
      summary: 'List the store’s webhook endpoints, newest first',
      scope: 'webhooks:read',
      query: PageQuery,
      answers: { 200: { description: 'One page.', schema: WebhookEndpointPage } },
      problems: [],
      handle: answer<Static<typeof PageQuery>>(200, ({ ctx, storeId, input }) => {
        const { limit = limitDefault, cursor = null } = input
        return listEndpoints(ctx, storeId, { cursor, limit })
      }),
    },
    {
      method: 'GET',
      path: one,
      operationId: 'getWebhookEndpoint',
      summary: 'Read a webhook endpoint',
      scope: 'webhooks:read',
      answers: { 200: { description: 'The endpoint.', schema: WebhookEndpoint } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readEndpoint(ctx, storeId, param('endpointId'))),
    },
    {
      method: 'PATCH',
      path: one,
      operationId: 'updateWebhookEndpoint',
      summary: 'Change, disable or enable a webhook endpoint',
      description:
        'Fields that you leave out stay unchanged. Disabling an endpoint gives up its pending deliveries. After enabling it again, redeliver from the last event you received.',
      scope: 'webhooks:write',
      body: UpdateWebhookEndpoint,
      answers: { 200: { description: 'The changed endpoint.', schema: WebhookEndpoint } },
      problems: ['not_found', 'endpoint_exists', 'endpoint_limit'],
      handle: answer<Wire.UpdateWebhookEndpoint>(
        200,
        async ({ ctx, storeId, caller, actor, param, input, now }) => {
          if (input.url !== undefined) checkUrl(ctx, caller.holder.store.mode, input.url)
          return await updateEndpoint(ctx, { storeId, endpointId: param('endpointId') }, actor, input, now)
        },
      ),
    },
    {
      method: 'DELETE',
      path: one,
      operationId: 'deleteWebhookEndpoint',
      summary: 'Delete a webhook endpoint',
      scope: 'webhooks:write',
      answers: {
        200: { description: 'The deleted endpoint, shown as disabled.', schema: WebhookEndpoint },
      },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, actor, param, now }) =>
        deleteEndpoint(ctx, { storeId, endpointId: param('endpointId') }, actor, now),
      ),
    },
  ]
}

function secretRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: `${one}/roll-secret`,
      operationId: 'rollWebhookSecret',
      summary: 'Replace a webhook endpoint’s secret',
      description:
        'Deliveries are signed with both secrets during the overlap. Rolling again within it ends the oldest secret at once.',
      scope: 'webhooks:write',
      body: RollSecret,
      answers: {
        200: { description: 'The endpoint with its new secret.', schema: WebhookEndpointSecret },
      },
      problems: ['not_found'],
      handle: answer<Wire.RollSecret>(200, ({ ctx, storeId, actor, param, input, now }) =>
        rollSecret(ctx, { storeId, endpointId: param('endpointId') }, actor, input.overlapSeconds, now),
      ),
    },
    {
      method: 'POST',
      path: `${one}/test`,
      operationId: 'testWebhookEndpoint',
      summary: 'Send a test event to a webhook endpoint',
      description: 'Sends an event of type webhook_endpoint.test to this endpoint only.',
      scope: 'webhooks:write',
      answers: { 202: { description: 'The event is on its way.', schema: TestEvent } },
      problems: ['not_found', 'endpoint_disabled'],
      handle: answer(202, ({ ctx, storeId, actor, param, now }) =>
        testEndpoint(ctx, { storeId, endpointId: param('endpointId') }, actor, now),
      ),
    },
  ]
}

function deliveryRoutes(): Route[] {
  return [
    {
      method: 'GET',
      path: `${one}/deliveries`,
      operationId: 'listDeliveries',
      summary: 'List the deliveries to a webhook endpoint, newest event first',
      description:
        'Each delivery shows its last 20 attempts: when, how long, and what the receiver answered. Deliveries are kept for 30 days after they finish.',
      scope: 'webhooks:read',
      query: DeliveryQuery,
      answers: { 200: { description: 'One page.', schema: DeliveryPage } },
      problems: ['not_found'],
      handle: answer<Static<typeof DeliveryQuery>>(200, ({ ctx, storeId, param, input }) => {
        const { state = null, type = null, eventId = null, cursor = null, limit = limitDefault } = input
        return listDeliveries(ctx, storeId, param('endpointId'), { state, type, eventId, cursor, limit })
      }),
    },
    {
      method: 'POST',
      path: `${one}/redeliver`,
      operationId: 'redeliverSince',
      summary: 'Redeliver events to a webhook endpoint from a point in the log',
      description:
        'Each request covers up to 5,000 events of the log. While hasMore is true, continue with the returned cursor.',
      scope: 'webhooks:write',
      body: Redeliver,
      answers: { 202: { description: 'The deliveries are on their way.', schema: Redelivered } },
      problems: ['not_found', 'endpoint_disabled', 'log_restarted', 'log_truncated'],
      handle: answer<Wire.Redeliver>(202, ({ ctx, storeId, param, input }) => {
        const { after = null, since, include } = input
        const from = since === undefined ? null : parseTime('/since', since)
        return redeliverSince(ctx, storeId, param('endpointId'), { after, since: from, include })
      }),
    },
    {
      method: 'GET',
      path: '/api/v1/deliveries/:deliveryId',
      operationId: 'getDelivery',
      summary: 'Read a delivery',
      scope: 'webhooks:read',
      answers: { 200: { description: 'The delivery and its attempts.', schema: Delivery } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readDelivery(ctx, storeId, param('deliveryId'))),
    },
    {
      method: 'POST',
      path: '/api/v1/deliveries/:deliveryId/redeliver',
      operationId: 'redeliver',
      summary: 'Redeliver one event',
      description:
        'Sends it at once, and allows it all attempts again. A delivery that is in progress is left alone.',
      scope: 'webhooks:write',
      answers: { 202: { description: 'The delivery is on its way.', schema: Delivery } },
      problems: ['not_found', 'endpoint_disabled'],
      handle: answer(202, ({ ctx, storeId, param }) => redeliver(ctx, storeId, param('deliveryId'))),
    },
  ]
}

export function checkUrl(ctx: Context, mode: Wire.StoreMode, url: string): void {
  const mistakes = checkWebUrl('/url', url, mode)
  const all = mistakes.length > 0 ? mistakes : reachOf(ctx.config, mode).check('/url', new URL(url))
  if (all.length > 0) throw invalid(...all)
}
