import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import { cancelCheckout } from '../../checkouts/cancel.ts'
import type { CreateCheckoutVerb } from '../../checkouts/create.ts'
import { listCheckouts, readCheckout } from '../../checkouts/read.ts'
import { metadataKeysMax, metadataValueCharactersMax } from '../../stores/check-text.ts'
import {
  answer,
  callerOf,
  limitDefault,
  type Route,
  readIdempotencyKey,
  sendText,
  timesOf,
} from '../route.ts'
import { CheckoutPayment } from './payments.ts'
import { Refund } from './refunds.ts'
import { cursor, limit, nullable, object, of, pageOf, shape, timestamp, webUrl } from './shapes.ts'

/** The shapes of checkouts and payments. */
const statuses = ['OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED'] as const

const checkoutFields = {
  id: Type.String({ description: 'Begins with ch_.' }),
  orderId: Type.String({ description: 'The store’s own order identifier, exactly as sent.' }),
  priceAmount: Type.String({ description: 'Decimal amount in priceCurrency, exactly as sent.' }),
  priceCurrency: Type.String({ description: 'ISO 4217 code in upper case.' }),
  status: Type.Enum([...statuses]),
  expiresAt: Type.String({
    format: 'date-time',
    description: 'The checkout cannot be paid after this time.',
  }),
  checkoutUrl: Type.String({
    description: 'The hosted payment page. x402 clients can pay at this URL too.',
  }),
  createdAt: timestamp(),
  successRedirectUrl: nullable(Type.String()),
  cancelUrl: Type.Optional(Type.String({ description: 'Absent if none was given.' })),
}

export const Checkout = shape<Wire.Checkout>()(checkoutFields)

const Rate = shape<Wire.Rate>()(
  {
    rate: Type.String({ description: 'US dollars for one unit of priceCurrency.' }),
    source: Type.String(),
    time: timestamp(),
  },
  { description: 'How the price was converted; absent if it needed no rate.' },
)

export const StoreCheckout = shape<Wire.StoreCheckout>()({
  ...checkoutFields,
  payment: nullable(CheckoutPayment),
  linkId: Type.Optional(
    Type.String({ description: 'The link that it was made for. Absent if the store made it itself.' }),
  ),
  description: Type.Optional(Type.String({ description: 'Absent if none was given.' })),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'Absent if none was given.' }),
  ),
  rate: Type.Optional(Rate),
  refundedAmount: Type.Optional(
    Type.String({
      description:
        'What refunds have returned, in the asset’s smallest unit. Absent if there are no refunds.',
    }),
  ),
  refunds: Type.Optional(Type.Array(Refund, { description: 'Oldest first. Absent if there are none.' })),
})

export const CreateCheckout = shape<Wire.CreateCheckout>()({
  orderId: Type.String({ description: '1 to 255 bytes of UTF-8. Need not be unique.' }),
  priceAmount: Type.String({
    description: 'A decimal above zero, as a string: at most 15 digits before the point and 6 after it.',
    examples: ['12.50'],
  }),
  priceCurrency: Type.String({
    description: 'ISO 4217 code, in upper or lower case.',
    examples: ['USD'],
  }),
  successRedirectUrl: Type.Optional(
    webUrl(
      'Where the buyer goes after paying. An https URL without credentials. Null is the same as leaving it out.',
    ),
  ),
  cancelUrl: Type.Optional(
    webUrl('Where a buyer can go back to without paying. The same rules as for successRedirectUrl.'),
  ),
  expiresInSeconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 604_800,
      description:
        '300 at least, except for a test store. Default: 86400, or 3600 if an exchange rate is locked.',
    }),
  ),
  description: Type.Optional(
    nullable(
      Type.String({
        description: 'What is paid for: 1 to 500 bytes of plain text, shown on the payment page.',
        examples: ['Two tickets for Saturday'],
      }),
    ),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: metadataValueCharactersMax }), {
      maxProperties: metadataKeysMax,
      description:
        'The store’s own values, by names of 1 to 40 bytes. Returned to the store and part of its events; the buyer never sees them.',
    }),
  ),
})

const CheckoutPage = of<Wire.Page<Wire.StoreCheckout>>()(pageOf(StoreCheckout))

const price = (about: string) =>
  Type.Optional(
    Type.String({
      pattern: '^(0|[1-9]\\d{0,14})(\\.\\d{1,6})?$',
      description: `${about} Needs priceCurrency.`,
    }),
  )

const CheckoutQuery = object({
  limit,
  cursor,
  status: Type.Optional(Type.Enum([...statuses])),
  orderId: Type.Optional(Type.String({ maxLength: 255 })),
  linkId: Type.Optional(
    Type.String({ maxLength: 40, description: 'Only checkouts that were made for this link.' }),
  ),
  priceCurrency: Type.Optional(Type.String({ maxLength: 3, description: 'ISO 4217 code.' })),
  minPrice: price('Only checkouts of this price or more.'),
  maxPrice: price('Only checkouts of this price or less.'),
  createdFrom: Type.Optional(
    Type.String({ format: 'date-time', description: 'Only checkouts created at this time or later.' }),
  ),
  createdBefore: Type.Optional(
    Type.String({ format: 'date-time', description: 'Only checkouts created before this time.' }),
  ),
})

/** The store's checkouts. */
export function checkoutRoutes(createCheckout: CreateCheckoutVerb): Route[] {
  return [createRoute(createCheckout), ...otherRoutes()]
}

function createRoute(createCheckout: CreateCheckoutVerb): Route {
  return {
    method: 'POST',
    path: '/api/v1/checkouts',
    operationId: 'createCheckout',
    // The database refuses a create if its store or key has changed since the caller was read.
    needsFreshCaller: false,
    summary: 'Create a checkout',
    scope: 'checkouts:write',
    body: CreateCheckout,
    requestHeaders: {
      'Idempotency-Key':
        '1 to 255 visible ASCII characters. For at least 24 hours, a repeat with the same bytes gets the first answer again.',
    },
    answers: {
      201: {
        description: 'Created, with status OPEN.',
        schema: Checkout,
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
        callerOf(request),
        request.body as Wire.CreateCheckout,
        idempotency,
        ctx.now(),
      )
      reply.header('location', `${ctx.config.baseUrl}/api/v1/checkouts/${id}`)
      if (isReplay) reply.header('idempotency-replayed', 'true')
      return sendText(reply, 201, body)
    },
  }
}

function otherRoutes(): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/checkouts',
      operationId: 'listCheckouts',
      summary: 'List checkouts, newest first',
      scope: 'checkouts:read',
      query: CheckoutQuery,
      answers: { 200: { description: 'One page.', schema: CheckoutPage } },
      problems: [],
      handle: answer<Static<typeof CheckoutQuery>>(200, ({ ctx, storeId, input }) =>
        listCheckouts(ctx, storeId, { limit: limitDefault, ...input, ...timesOf(input) }),
      ),
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
          schema: StoreCheckout,
        },
      },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readCheckout(ctx, storeId, param('checkoutId'))),
    },
    {
      method: 'POST',
      path: '/api/v1/checkouts/:checkoutId/cancel',
      operationId: 'cancelCheckout',
      summary: 'Cancel an unpaid checkout',
      description: 'Canceling it again changes nothing and gives the same answer.',
      scope: 'checkouts:write',
      answers: { 200: { description: 'Canceled.', schema: StoreCheckout } },
      problems: ['not_found', 'payment_in_progress', 'not_cancelable'],
      handle: answer(200, ({ ctx, storeId, actor, param, now }) =>
        cancelCheckout(ctx, storeId, actor, param('checkoutId'), now),
      ),
    },
  ]
}
