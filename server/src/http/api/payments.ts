import type * as Wire from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import Type, { type Static } from 'typebox'
import { listPayments, readPayment } from '../../checkouts/payments/list.ts'
import { type Decided, openDecisions } from '../../checkouts/payments/request-decision.ts'
import type { Context } from '../../context.ts'
import { actorOf, limitDefault, param, type Route, sendJson, storeOf, timesOf } from '../route.ts'
import { Actor, closed, cursor, limit, nextCursor, nullable, of, timestamp } from './shapes.ts'

const paymentFields = {
  transaction: Type.String(),
  payer: Type.String(),
  network: Type.String({ description: 'CAIP-2 identifier.' }),
  asset: Type.String(),
  amount: Type.String({ description: 'Integer amount in the asset’s smallest unit.' }),
  finality: Type.Enum(['included', 'safe', 'finalized', 'reversed']),
}

export const CheckoutPayment = of<Wire.CheckoutPayment>()(Type.Object(paymentFields, closed))

const dispositions = ['late', 'underpaid', 'overpaid', 'unmatched'] as const

export const PaymentHint = of<Wire.PaymentHint>()(
  Type.Object({ checkoutId: Type.String(), disposition: Type.Enum([...dispositions]) }, closed),
)

const PaymentNote = of<Wire.PaymentNote>()(
  Type.Object(
    { text: Type.String(), actor: Actor, notedAt: timestamp() },
    { ...closed, description: 'What the store has noted about it, for itself; absent if nothing.' },
  ),
)

export const Payment = of<Wire.Payment>()(
  Type.Object(
    {
      ...paymentFields,
      id: Type.String({ description: 'Begins with pay_.' }),
      checkoutId: nullable(Type.String()),
      payTo: Type.String(),
      disposition: Type.Enum(['exact', ...dispositions]),
      includedAt: timestamp(),
      safeAt: nullable(timestamp()),
      finalizedAt: nullable(timestamp()),
      acceptedAt: nullable(timestamp()),
      dismissedAt: nullable(timestamp()),
      hints: Type.Array(PaymentHint, {
        description:
          'For a payment without a checkout: the checkouts whose buyers named its transaction. A hint proves nothing.',
      }),
      note: Type.Optional(PaymentNote),
      refundedAmount: Type.Optional(
        Type.String({
          description:
            'What completed refunds have returned, in the asset’s smallest unit. Only when the payment is read by its id, and absent if it has had no refunds.',
        }),
      ),
      refundable: Type.Optional(
        Type.String({
          description:
            'What can still be refunded: refunds that are on their way have taken theirs. Present like refundedAmount.',
        }),
      ),
    },
    closed,
  ),
)

const units = (about: string) =>
  Type.Optional(Type.String({ pattern: '^(0|[1-9]\\d{0,77})$', description: about }))

const PaymentQuery = Type.Object(
  {
    limit,
    cursor,
    checkoutId: Type.Optional(Type.String({ maxLength: 40 })),
    disposition: Type.Optional(Type.Enum(['exact', ...dispositions])),
    network: Type.Optional(Type.String({ maxLength: 100, description: 'CAIP-2 identifier.' })),
    payer: Type.Optional(Type.String({ maxLength: 100, description: 'The sender’s address.' })),
    transaction: Type.Optional(Type.String({ maxLength: 100, description: 'The transaction’s hash.' })),
    minAmount: units('Only payments of this many smallest units of their asset or more.'),
    maxAmount: units('Only payments of this many smallest units of their asset or less.'),
    createdFrom: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only payments first seen at this time or later.' }),
    ),
    createdBefore: Type.Optional(
      Type.String({ format: 'date-time', description: 'Only payments first seen before this time.' }),
    ),
  },
  closed,
)

const PaymentPage = of<Wire.Page<Wire.Payment>>()(
  Type.Object({ data: Type.Array(Payment), nextCursor }, closed),
)
const AcceptPayment = of<Wire.AcceptPayment>()(
  Type.Object(
    {
      checkoutId: Type.Optional(
        Type.String({
          maxLength: 40,
          description: 'May be left out if the payment already belongs to a checkout.',
        }),
      ),
    },
    closed,
  ),
)

const note = Type.String({ description: '1 to 1,000 bytes of text, for the store alone.' })
const DismissPayment = of<Wire.DismissPayment>()(Type.Object({ note: Type.Optional(note) }, closed))
const NotePayment = of<Wire.NotePayment>()(Type.Object({ note: nullable(note) }, closed))

const waiting = {
  description:
    'The decision is recorded and not applied yet: the payment is as it was. Repeat the request to learn the outcome.',
  schema: Payment,
  headers: { 'Retry-After': 'Seconds to wait before the request is repeated.' },
}

/** The payments that reached a store's wallets, and the store's decision on those that didn't match a checkout. */
export function paymentRoutes(ctx: Context): Route[] {
  return [...readingRoutes(), ...decidingRoutes(ctx)]
}

function readingRoutes(): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/payments',
      operationId: 'listPayments',
      summary: 'List payments, newest first',
      description:
        'All payments that have reached the store’s wallets since they were registered, including those that match no checkout. On networks where transfers carry a reference, one without it is not seen.',
      scope: 'payments:read',
      query: PaymentQuery,
      answers: { 200: { description: 'One page.', schema: PaymentPage } },
      problems: [],
      async handle(ctx, request, reply) {
        const query = request.query as Static<typeof PaymentQuery>
        const page = await listPayments(ctx, storeOf(request), {
          checkoutId: query.checkoutId ?? null,
          disposition: query.disposition ?? null,
          network: query.network ?? null,
          payer: query.payer ?? null,
          transaction: query.transaction ?? null,
          minAmount: query.minAmount ?? null,
          maxAmount: query.maxAmount ?? null,
          ...timesOf(query),
          cursor: query.cursor ?? null,
          limit: query.limit ?? limitDefault,
        })
        return sendJson(reply, 200, page)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/payments/:paymentId',
      operationId: 'getPayment',
      summary: 'Read a payment',
      scope: 'payments:read',
      answers: { 200: { description: 'The payment.', schema: Payment } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readPayment(ctx, storeOf(request), param(request, 'paymentId')))
      },
    },
  ]
}

function decidingRoutes(ctx: Context): Route[] {
  const decide = openDecisions(ctx)
  return [
    {
      method: 'POST',
      path: '/api/v1/payments/:paymentId/accept',
      operationId: 'acceptPayment',
      summary: 'Accept a payment for a checkout',
      description:
        'Completes the checkout with a payment that is late, underpaid, overpaid or unmatched. A hint does not prove who paid. Accepting it again changes nothing.',
      scope: 'payments:write',
      body: AcceptPayment,
      answers: { 200: { description: 'Accepted.', schema: Payment }, 202: waiting },
      problems: ['not_found', 'wallet_unproven', 'payment_in_progress', 'already_paid', 'payment_not_open'],
      async handle(ctx, request, reply) {
        const { checkoutId = null } = (request.body ?? {}) as Wire.AcceptPayment
        const asked = { kind: 'accept', paymentId: param(request, 'paymentId'), checkoutId } as const
        return send(reply, await decide(ctx, storeOf(request), actorOf(request), asked, ctx.now()))
      },
    },
    {
      method: 'POST',
      path: '/api/v1/payments/:paymentId/dismiss',
      operationId: 'dismissPayment',
      summary: 'Dismiss a payment',
      description:
        'Records that the store will do nothing more about it, with a note if you like. Dismissing it again changes nothing but the note.',
      scope: 'payments:write',
      body: DismissPayment,
      isBodyOptional: true,
      answers: { 200: { description: 'Dismissed.', schema: Payment }, 202: waiting },
      problems: ['not_found', 'wallet_unproven', 'payment_not_open'],
      async handle(ctx, request, reply) {
        const { note } = request.body as Wire.DismissPayment
        const paymentId = param(request, 'paymentId')
        const asked = {
          kind: 'dismiss',
          paymentId,
          checkoutId: null,
          ...(note !== undefined && { note }),
        } as const
        return send(reply, await decide(ctx, storeOf(request), actorOf(request), asked, ctx.now()))
      },
    },
    {
      method: 'POST',
      path: '/api/v1/payments/:paymentId/note',
      operationId: 'notePayment',
      summary: 'Note something about a payment',
      description:
        'Replaces the note that is there; null removes it. It decides nothing, and nobody but the store sees it.',
      scope: 'payments:write',
      body: NotePayment,
      answers: { 200: { description: 'Noted.', schema: Payment }, 202: waiting },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        const { note } = request.body as Wire.NotePayment
        const asked = {
          kind: 'note',
          paymentId: param(request, 'paymentId'),
          checkoutId: null,
          note,
        } as const
        return send(reply, await decide(ctx, storeOf(request), actorOf(request), asked, ctx.now()))
      },
    },
  ]
}

function send(reply: FastifyReply, { payment, isApplied }: Decided): FastifyReply {
  return isApplied ? sendJson(reply, 200, payment) : sendJson(reply.header('retry-after', '1'), 202, payment)
}
