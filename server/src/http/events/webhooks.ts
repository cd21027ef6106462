import type {
  CreateWebhookEndpoint,
  Redeliver,
  RollSecret,
  StoreMode,
  UpdateWebhookEndpoint,
} from '@farthing/sdk'
import type { Static } from 'typebox'
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
import { actorOf, caller, limitDefault, param, parseTime, type Route, sendJson, storeOf } from '../route.ts'
import { PageQuery } from '../schemas.ts'
import * as schemas from './schemas.ts'

const one = '/api/v1/webhook-endpoints/:endpointId'

/** A store's webhook endpoints and the deliveries to them. */
export function webhookRoutes(): Route[] {
  return [...endpointRoutes(), ...deliveryRoutes()]
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
      body: schemas.CreateWebhookEndpoint,
      answers: { 201: { description: 'Registered and enabled.', schema: schemas.WebhookEndpointSecret } },
      problems: ['endpoint_exists', 'endpoint_limit'],
      async handle(ctx, request, reply) {
        const body = request.body as CreateWebhookEndpoint
        checkUrl(ctx, caller(request).holder.store.mode, body.url)
        return sendJson(
          reply,
          201,
          await createEndpoint(ctx, storeOf(request), actorOf(request), body, ctx.now()),
        )
      },
    },
    {
      method: 'GET',
      path: '/api/v1/webhook-endpoints',
      operationId: 'listWebhookEndpoints',
      summary: 'List the store’s webhook endpoints, newest first',
      scope: 'webhooks:read',
      query: PageQuery,
      answers: { 200: { description: 'One page.', schema: schemas.WebhookEndpointPage } },
      problems: [],
      async handle(ctx, request, reply) {
        const { limit = limitDefault, cursor = null } = request.query as Static<typeof PageQuery>
        return sendJson(reply, 200, await listEndpoints(ctx, storeOf(request), { cursor, limit }))
      },
    },
    {
      method: 'GET',
      path: one,
      operationId: 'getWebhookEndpoint',
      summary: 'Read a webhook endpoint',
      scope: 'webhooks:read',
      answers: { 200: { description: 'The endpoint.', schema: schemas.WebhookEndpoint } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readEndpoint(ctx, storeOf(request), param(request, 'endpointId')))
      },
    },
    {
      method: 'PATCH',
      path: one,
      operationId: 'updateWebhookEndpoint',
      summary: 'Change, disable or enable a webhook endpoint',
      description:
        'Fields that you leave out stay unchanged. Disabling an endpoint gives up its pending deliveries. After enabling it again, redeliver from the last event you received.',
      scope: 'webhooks:write',
      body: schemas.UpdateWebhookEndpoint,
      answers: { 200: { description: 'The changed endpoint.', schema: schemas.WebhookEndpoint } },
      problems: ['not_found', 'endpoint_exists', 'endpoint_limit'],
      async handle(ctx, request, reply) {
        const body = request.body as UpdateWebhookEndpoint
        if (body.url !== undefined) checkUrl(ctx, caller(request).holder.store.mode, body.url)
        const endpointId = param(request, 'endpointId')
        return sendJson(
          reply,
          200,
          await updateEndpoint(ctx, storeOf(request), actorOf(request), endpointId, body, ctx.now()),
        )
      },
    },
    {
      method: 'DELETE',
      path: one,
      operationId: 'deleteWebhookEndpoint',
      summary: 'Delete a webhook endpoint',
      scope: 'webhooks:write',
      answers: {
        200: { description: 'The deleted endpoint, shown as disabled.', schema: schemas.WebhookEndpoint },
      },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const endpointId = param(request, 'endpointId')
        return sendJson(
          reply,
          200,
          await deleteEndpoint(ctx, storeOf(request), actorOf(request), endpointId, ctx.now()),
        )
      },
    },
    {
      method: 'POST',
      path: `${one}/roll-secret`,
      operationId: 'rollWebhookSecret',
      summary: 'Replace a webhook endpoint’s secret',
      description:
        'Deliveries are signed with both secrets during the overlap. Rolling again within it ends the oldest secret at once.',
      scope: 'webhooks:write',
      body: schemas.RollSecret,
      answers: {
        200: { description: 'The endpoint with its new secret.', schema: schemas.WebhookEndpointSecret },
      },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const { overlapSeconds } = request.body as RollSecret
        const endpointId = param(request, 'endpointId')
        return sendJson(
          reply,
          200,
          await rollSecret(ctx, storeOf(request), actorOf(request), endpointId, overlapSeconds, ctx.now()),
        )
      },
    },
    {
      method: 'POST',
      path: `${one}/test`,
      operationId: 'testWebhookEndpoint',
      summary: 'Send a test event to a webhook endpoint',
      description: 'Sends an event of type webhook_endpoint.test to this endpoint only.',
      scope: 'webhooks:write',
      answers: { 202: { description: 'The event is on its way.', schema: schemas.TestEvent } },
      problems: ['not_found', 'endpoint_disabled'],
      async handle(ctx, request, reply) {
        const endpointId = param(request, 'endpointId')
        return sendJson(
          reply,
          202,
          await testEndpoint(ctx, storeOf(request), actorOf(request), endpointId, ctx.now()),
        )
      },
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
        'Each delivery shows its last 20 attempts: when, how long, and what the receiver answered. Kept for 30 days after it is finished.',
      scope: 'webhooks:read',
      query: schemas.DeliveryQuery,
      answers: { 200: { description: 'One page.', schema: schemas.DeliveryPage } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const query = request.query as Static<typeof schemas.DeliveryQuery>
        const page = await listDeliveries(ctx, storeOf(request), param(request, 'endpointId'), {
          state: query.state ?? null,
          type: query.type ?? null,
          eventId: query.eventId ?? null,
          cursor: query.cursor ?? null,
          limit: query.limit ?? limitDefault,
        })
        return sendJson(reply, 200, page)
      },
    },
    {
      method: 'POST',
      path: `${one}/redeliver`,
      operationId: 'redeliverSince',
      summary: 'Redeliver events to a webhook endpoint from a point in the log',
      description:
        'Each request covers up to 5,000 events of the log. While hasMore is true, continue with the returned cursor.',
      scope: 'webhooks:write',
      body: schemas.Redeliver,
      answers: { 202: { description: 'The deliveries are on their way.', schema: schemas.Redelivered } },
      problems: ['not_found', 'endpoint_disabled', 'log_restarted'],
      async handle(ctx, request, reply) {
        const body = request.body as Redeliver
        const answer = await redeliverSince(ctx, storeOf(request), param(request, 'endpointId'), {
          after: body.after ?? null,
          since: body.since === undefined ? null : parseTime('/since', body.since),
          include: body.include,
        })
        return sendJson(reply, 202, answer)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/deliveries/:deliveryId',
      operationId: 'getDelivery',
      summary: 'Read a delivery',
      scope: 'webhooks:read',
      answers: { 200: { description: 'The delivery and its attempts.', schema: schemas.Delivery } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readDelivery(ctx, storeOf(request), param(request, 'deliveryId')))
      },
    },
    {
      method: 'POST',
      path: '/api/v1/deliveries/:deliveryId/redeliver',
      operationId: 'redeliver',
      summary: 'Redeliver one event',
      description:
        'Sends it at once, with a full set of attempts ahead of it. A delivery that is in progress is left alone.',
      scope: 'webhooks:write',
      answers: { 202: { description: 'The delivery is on its way.', schema: schemas.Delivery } },
      problems: ['not_found', 'endpoint_disabled'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 202, await redeliver(ctx, storeOf(request), param(request, 'deliveryId')))
      },
    },
  ]
}

export function checkUrl(ctx: Context, mode: StoreMode, url: string): void {
  const mistakes = checkWebUrl('/url', url, mode)
  const all = mistakes.length > 0 ? mistakes : reachOf(ctx.config, mode).check('/url', new URL(url))
  if (all.length > 0) throw invalid(...all)
}
