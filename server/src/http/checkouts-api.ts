import type { CreateCheckout } from '@farthing/sdk'
import type { Static } from 'typebox'
import { cancelCheckout } from '../checkouts/cancel.ts'
import type { CreateCheckoutVerb } from '../checkouts/create.ts'
import { listCheckouts, readCheckout } from '../checkouts/read.ts'
import * as shapes from './checkout-schemas.ts'
import { readIdempotencyKey } from './idempotency.ts'
import {
  actorOf,
  caller,
  limitDefault,
  param,
  type Route,
  sendJson,
  sendText,
  storeOf,
  timesOf,
} from './route.ts'

/** What the store is owed: its checkouts. */
export function checkoutRoutes(createCheckout: CreateCheckoutVerb): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/checkouts',
      operationId: 'createCheckout',
      // The database refuses a create if its store or key has changed since the caller was read.
      needsFreshCaller: false,
      summary: 'Create a checkout',
      scope: 'checkouts:write',
      body: shapes.CreateCheckout,
      requestHeaders: {
        'Idempotency-Key':
          '1 to 255 visible ASCII characters. For at least 24 hours, a repeat with the same bytes gets the first answer again.',
      },
      answers: {
        201: {
          description: 'Created, with status OPEN.',
          schema: shapes.Checkout,
          headers: {
            Location: 'The URL to read the checkout at.',
            'Idempotency-Replayed': 'true if this repeats the answer to an earlier request.',
          },
        },
      },
      problems: [
        'store_inactive',
        'wallet_required',
        'idempotency_in_progress',
        'idempotency_key_reused',
        'currency_unsupported',
        'rate_unavailable',
      ],
      async handle(ctx, request, reply) {
        const idempotency = readIdempotencyKey(request, 'POST /api/v1/checkouts')
        const { id, body, isReplay } = await createCheckout(
          caller(request),
          request.body as CreateCheckout,
          idempotency,
          ctx.now(),
        )
        reply.header('location', `${ctx.config.baseUrl}/api/v1/checkouts/${id}`)
        if (isReplay) reply.header('idempotency-replayed', 'true')
        return sendText(reply, 201, body)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/checkouts',
      operationId: 'listCheckouts',
      summary: 'List checkouts, newest first',
      scope: 'checkouts:read',
      query: shapes.CheckoutQuery,
      answers: { 200: { description: 'One page.', schema: shapes.CheckoutPage } },
      problems: [],
      async handle(ctx, request, reply) {
        const query = request.query as Static<typeof shapes.CheckoutQuery>
        const page = await listCheckouts(ctx, storeOf(request), {
          status: query.status ?? null,
          orderId: query.orderId ?? null,
          priceCurrency: query.priceCurrency ?? null,
          minPrice: query.minPrice ?? null,
          maxPrice: query.maxPrice ?? null,
          ...timesOf(query),
          cursor: query.cursor ?? null,
          limit: query.limit ?? limitDefault,
        })
        return sendJson(reply, 200, page)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/checkouts/:checkoutId',
      operationId: 'getCheckout',
      summary: 'Read a checkout',
      scope: 'checkouts:read',
      answers: {
        200: {
          description: 'The checkout, with its payment if there is one.',
          schema: shapes.StoreCheckout,
        },
      },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readCheckout(ctx, storeOf(request), param(request, 'checkoutId')))
      },
    },
    {
      method: 'POST',
      path: '/api/v1/checkouts/:checkoutId/cancel',
      operationId: 'cancelCheckout',
      summary: 'Cancel an unpaid checkout',
      description: 'Canceling it again changes nothing and gives the same answer.',
      scope: 'checkouts:write',
      answers: { 200: { description: 'Canceled.', schema: shapes.StoreCheckout } },
      problems: ['not_found', 'payment_in_progress', 'not_cancelable'],
      async handle(ctx, request, reply) {
        return sendJson(
          reply,
          200,
          await cancelCheckout(
            ctx,
            storeOf(request),
            actorOf(request),
            param(request, 'checkoutId'),
            ctx.now(),
          ),
        )
      },
    },
  ]
}
