import type * as Wire from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import type { Static } from 'typebox'
import Type from 'typebox'
import type { Context } from '../../context.ts'
import type { Rails } from '../../payments/rail.ts'
import { createAddressRequest } from '../../refunds/address-requests/create.ts'
import { cancelRefund } from '../../refunds/cancel.ts'
import { createRefund } from '../../refunds/create.ts'
import { listRefunds, openRefundWaits, readRefund } from '../../refunds/read.ts'
import { declareRefund, nameTransaction } from '../../refunds/self-sent.ts'
import { prepareRefund, signRefund } from '../../refunds/sign.ts'
import { answer, limitDefault, type Route, readIdempotencyKey, sendJson } from '../route.ts'
import { cursor, limit, nullable, object, of, pageOf, shape, timestamp } from './shapes.ts'

const refundStatuses = ['REQUESTED', 'SIGNED', 'SENT', 'COMPLETED', 'DECLARED', 'FAILED', 'CANCELED'] as const

const AddressRequest = shape<Wire.AddressRequest>()(
  {
    status: Type.Enum(['OPEN', 'NAMED', 'CONFIRMED', 'EXPIRED'], {
      description:
        'OPEN: the buyer has not answered. NAMED: a member of the store has to confirm the buyer’s code.',
    }),
    expiresAt: timestamp(),
    address: Type.Optional(Type.String({ description: 'What the buyer named.' })),
    code: Type.Optional(
      Type.String({
        description: 'The only other place that shows it is the browser that named the address.',
      }),
    ),
  },
  { description: 'The link with which the buyer names an address. Absent if none was made.' },
)

export const Refund = shape<Wire.Refund>()({
  id: Type.String({ description: 'Begins with rf_.' }),
  paymentId: Type.String(),
  checkoutId: nullable(Type.String({ description: 'The checkout that the payment belongs to.' })),
  orderId: nullable(Type.String()),
  status: Type.Enum([...refundStatuses]),
  way: Type.Enum(['signed', 'self-sent'], {
    description:
      'signed: the wallet that received the payment signs, and Farthing sends it. self-sent: the store sends it by itself.',
  }),
  network: Type.String({ description: 'CAIP-2 identifier.' }),
  asset: Type.String(),
  amount: Type.String({ description: 'Integer amount in the asset’s smallest unit.' }),
  from: Type.String({ description: 'The store’s wallet that received the payment.' }),
  recipient: nullable(Type.String({ description: 'Null until the buyer has named an address.' })),
  reason: nullable(Type.String()),
  transaction: nullable(Type.String()),
  finality: nullable(Type.Enum(['included', 'safe', 'finalized'])),
  failure: nullable(Type.String({ description: 'Why it failed, or why it is not done yet.' })),
  isCanceling: Type.Boolean({
    description:
      'Whether a cancellation was requested and is waiting until no signature for the refund can move money.',
  }),
  declared: Type.Optional(
    Type.String({ description: 'The store’s reference for a transfer that cannot be proven.' }),
  ),
  createdAt: timestamp(),
  completedAt: nullable(timestamp()),
  addressRequest: Type.Optional(AddressRequest),
})

const RefundPage = of<Wire.Page<Wire.Refund>>()(pageOf(Refund))

const RefundQuery = object({
  limit,
  cursor,
  paymentId: Type.Optional(Type.String({ maxLength: 40, description: 'Only refunds of this payment.' })),
  checkoutId: Type.Optional(
    Type.String({ maxLength: 40, description: 'Only refunds of this checkout’s payments.' }),
  ),
  status: Type.Optional(Type.Enum([...refundStatuses])),
})

export const CreateRefund = shape<Wire.CreateRefund>()({
  amount: Type.Optional(
    Type.String({
      pattern: '^[1-9]\\d{0,77}$',
      description: 'Integer amount in the asset’s smallest unit. Default: all that is left of the payment.',
      examples: ['5000000'],
    }),
  ),
  recipient: Type.Optional(
    Type.String({
      maxLength: 100,
      description:
        'The payer who signed, which is the default. A key cannot choose another recipient; a member of the store can, in the console.',
    }),
  ),
  reason: Type.Optional(
    Type.String({
      description: '1 to 500 bytes of plain text, which the buyer reads.',
      examples: ['One cup was broken'],
    }),
  ),
  way: Type.Optional(
    Type.Enum(['signed', 'self-sent'], {
      default: 'signed',
      description:
        'signed: the wallet that received the payment signs, and Farthing sends it. self-sent: the store sends it by itself and names the transaction. It cannot be changed later.',
    }),
  ),
})

const RefundTypedData = shape<Wire.RefundTypedData>()(
  {
    domain: object({
      name: Type.String(),
      version: Type.String(),
      chainId: Type.Integer(),
      verifyingContract: Type.String(),
    }),
    types: Type.Record(Type.String(), Type.Array(object({ name: Type.String(), type: Type.String() }))),
    primaryType: Type.String(),
    message: object({
      from: Type.String(),
      to: Type.String(),
      value: Type.String(),
      validAfter: Type.String(),
      validBefore: Type.String(),
      nonce: Type.String(),
    }),
  },
  {
    description:
      'EIP-712 typed data as eth_signTypedData_v4 takes it. Compare recipient and amount before you sign.',
  },
)

const expiresAt = Type.String({
  format: 'date-time',
  description: 'Until when it can be signed and presented.',
})

export const PreparedRefund = of<Wire.PreparedRefund>()(
  Type.Union([
    object({ refund: Refund, typedData: RefundTypedData, expiresAt }),
    object({
      refund: Refund,
      transaction: Type.String({
        description:
          'On networks where the wallet signs a whole transaction: the transaction to sign, in base64.',
      }),
      expiresAt,
    }),
  ]),
)

const oneOfBoth = { minProperties: 1, maxProperties: 1 }

export const PresentRefund = shape<Wire.PresentRefund>()(
  {
    signature: Type.Optional(
      Type.String({
        maxLength: 20_000,
        description:
          'Hex, up to 4,096 bytes: the signature of typedData, or what a contract wallet accepts by ERC-1271, also wrapped by ERC-6492.',
      }),
    ),
    transaction: Type.Optional(
      Type.String({
        maxLength: 4_000,
        description:
          'On networks where the wallet signs a whole transaction: the signed transaction, in base64.',
      }),
    ),
  },
  oneOfBoth,
)

export const NameTransaction = shape<Wire.NameTransaction>()(
  {
    transaction: Type.Optional(
      Type.String({ maxLength: 200, description: 'The hash of the transaction that paid the refund.' }),
    ),
    reference: Type.Optional(
      Type.String({
        description:
          'Instead of a transaction, if the transfer cannot be looked up here: 1 to 500 bytes. The refund is DECLARED for good.',
        examples: ['Withdrawal 4711 at the exchange'],
      }),
    ),
  },
  oneOfBoth,
)

const AddressRequestLink = shape<Wire.AddressRequestLink>()({
  url: Type.String({ description: 'For the buyer. Shown only in this answer.' }),
  expiresAt: timestamp(),
})

const oneRefund = '/api/v1/refunds/:refundId'
const retryAfter = { 'Retry-After': 'Seconds to wait before the refund is read again.' }

/** Refunds: the store requests one, its wallet signs it, and Farthing sends it and reports the outcome. */
export function refundRoutes(ctx: Context, rails: Rails): Route[] {
  return [...requestRoutes(), ...signingRoutes(ctx, rails), ...otherWayRoutes(rails)]
}

function requestRoutes(): Route[] {
  return [createRoute(), ...readingRoutes()]
}

function createRoute(): Route {
  return {
    method: 'POST',
    path: '/api/v1/payments/:paymentId/refunds',
    operationId: 'createRefund',
    summary: 'Create a refund of a payment',
    description:
      'Reserves the amount, so that no other refund can return it too. Nothing moves until the wallet that received the payment has signed. The payment must be final.',
    scope: 'refunds:write',
    body: CreateRefund,
    isBodyOptional: true,
    requestHeaders: {
      'Idempotency-Key':
        '1 to 255 visible ASCII characters. A repeat with the same bytes gets the same refund in its current state.',
    },
    answers: {
      201: {
        description: 'Created, with status REQUESTED.',
        schema: Refund,
        headers: { Location: 'The URL of the refund.' },
      },
    },
    problems: [
      'not_found',
      'recipient_needs_member',
      'wallet_unproven',
      'payment_not_open',
      'payment_not_final',
      'payment_refunded',
      'refund_exceeds_payment',
      'idempotency_key_reused',
    ],
    handle: answer<Wire.CreateRefund>(
      201,
      async ({ ctx, request, reply, storeId, actor, param, input, now }) => {
        const { amount, recipient = null, reason = null, way = 'signed' } = input
        const asked = {
          ...{ paymentId: param('paymentId'), recipient, reason, way },
          amount: amount === undefined ? null : BigInt(amount),
          idempotency: readIdempotencyKey(request, 'POST /api/v1/payments/:paymentId/refunds'),
        }
        const refund = await createRefund(ctx, storeId, { actor, mayChooseRecipient: false }, asked, now)
        reply.header('location', `${ctx.config.baseUrl}/api/v1/refunds/${refund.id}`)
        return refund
      },
    ),
  }
}

function readingRoutes(): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/refunds',
      operationId: 'listRefunds',
      summary: 'List refunds, newest first',
      scope: 'refunds:read',
      query: RefundQuery,
      answers: { 200: { description: 'One page.', schema: RefundPage } },
      problems: [],
      handle: answer<Static<typeof RefundQuery>>(200, ({ ctx, storeId, input }) =>
        listRefunds(ctx, storeId, { limit: limitDefault, ...input }),
      ),
    },
    {
      method: 'GET',
      path: oneRefund,
      operationId: 'getRefund',
      summary: 'Read a refund',
      scope: 'refunds:read',
      answers: { 200: { description: 'The refund.', schema: Refund } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readRefund(ctx, storeId, param('refundId'))),
    },
    {
      method: 'POST',
      path: `${oneRefund}/cancel`,
      operationId: 'cancelRefund',
      summary: 'Cancel a refund that nobody has signed',
      description:
        'If the refund was prepared, a signature may exist: then its amount stays reserved until that signature can no longer be used, and only then is it CANCELED. Canceling it again changes nothing.',
      scope: 'refunds:write',
      answers: {
        200: { description: 'Canceled.', schema: Refund },
        202: {
          description:
            'It will be canceled once no signature for it can be used. New signatures are refused.',
          schema: Refund,
          headers: retryAfter,
        },
      },
      problems: ['not_found', 'refund_in_progress'],
      handle: answer(200, async ({ ctx, reply, storeId, actor, param, now }) => {
        const refund = await cancelRefund(ctx, storeId, actor, param('refundId'), now)
        return send(reply, refund, refund.status === 'CANCELED', 60)
      }),
    },
  ]
}

/** The wallet signs, and Farthing sends. */
function signingRoutes(ctx: Context, rails: Rails): Route[] {
  const waitForOutcome = openRefundWaits(ctx)
  return [
    {
      method: 'POST',
      path: `${oneRefund}/prepare`,
      operationId: 'prepareRefund',
      summary: 'Get the data that the wallet signs',
      description:
        'Ask for it when the signer is ready. Asking again gives the same nonce, amount and recipient. From the first call on, its amount stays reserved until no signature for it can move money, even if it is canceled.',
      scope: 'refunds:write',
      answers: { 200: { description: 'What to sign.', schema: PreparedRefund } },
      problems: [
        'not_found',
        'refund_canceled',
        'refund_in_progress',
        'refund_slots_used',
        'refund_exceeds_payment',
        'payment_not_open',
        'payment_not_final',
      ],
      handle: answer(200, async ({ ctx, storeId, param }) => {
        const { expiresAt, ...prepared } = await prepareRefund(ctx, rails, storeId, param('refundId'))
        return { ...prepared, expiresAt: expiresAt.toISOString() }
      }),
    },
    {
      method: 'POST',
      path: `${oneRefund}/signature`,
      operationId: 'signRefund',
      summary: 'Present the wallet’s signature',
      description:
        'Farthing sends the refund at no cost for the store, and waits a few seconds for its outcome. Presenting it again changes nothing.',
      scope: 'refunds:write',
      body: PresentRefund,
      answers: {
        200: { description: 'Completed: its transfer is on the chain.', schema: Refund },
        202: { description: 'Signed, and on its way.', schema: Refund, headers: retryAfter },
      },
      problems: [
        'not_found',
        'refund_canceled',
        'refund_in_progress',
        'payment_not_open',
        'payment_not_final',
        'settlement_unavailable',
      ],
      handle: answer<Wire.PresentRefund>(200, async ({ ctx, reply, storeId, param, input }) => {
        const { signature, transaction = '' } = input
        const presented = signature === undefined ? { transaction } : { signature }
        const signed = await signRefund(ctx, rails, storeId, param('refundId'), presented)
        const isDone = signed.status === 'COMPLETED'
        const refund = isDone ? signed : await waitForOutcome(storeId, param('refundId'))
        return send(reply, refund, refund.status === 'COMPLETED', 2)
      }),
    },
  ]
}

/** The store sends the refund itself, or the buyer first names an address. */
function otherWayRoutes(rails: Rails): Route[] {
  return [
    {
      method: 'POST',
      path: `${oneRefund}/transaction`,
      operationId: 'nameRefundTransaction',
      summary: 'Say how the store has sent a refund itself',
      description:
        'For refunds whose way is self-sent. A transaction proves the refund once it is final: a transfer of exactly this amount of the same token to the recipient, from a wallet that the store has proven. A reference is recorded as the store’s statement and cannot be changed.',
      scope: 'refunds:write',
      body: NameTransaction,
      answers: {
        200: { description: 'COMPLETED or DECLARED.', schema: Refund },
        202: {
          description: 'The transaction is not proven yet: it was not found so far, or is not final.',
          schema: Refund,
          headers: retryAfter,
        },
      },
      problems: ['not_found', 'refund_canceled', 'refund_in_progress'],
      handle: answer<Wire.NameTransaction>(200, async ({ ctx, reply, storeId, actor, param, input }) => {
        const { transaction, reference = '' } = input
        const id = param('refundId')
        const refund =
          transaction === undefined
            ? await declareRefund(ctx, storeId, actor, id, reference)
            : await nameTransaction(ctx, rails, storeId, id, { transaction, actor })
        return send(reply, refund, refund.status !== 'SENT', 30)
      }),
    },
    {
      method: 'POST',
      path: `${oneRefund}/address-request`,
      operationId: 'createAddressRequest',
      summary: 'Make a link for the buyer to name an address',
      description:
        'For payments whose sender may be an exchange. A member of the store confirms the address in the console. A new link replaces the previous one and the address named with it.',
      scope: 'refunds:write',
      answers: { 201: { description: 'The link.', schema: AddressRequestLink } },
      problems: ['not_found', 'address_request_closed'],
      handle: answer(201, ({ ctx, storeId, actor, param }) =>
        createAddressRequest(ctx, storeId, actor, param('refundId')),
      ),
    },
  ]
}

function send(
  reply: FastifyReply,
  refund: Wire.Refund,
  isDone: boolean,
  retryAfterSeconds: number,
): FastifyReply {
  if (isDone) return sendJson(reply, 200, refund)
  return sendJson(reply.header('retry-after', String(retryAfterSeconds)), 202, refund)
}
