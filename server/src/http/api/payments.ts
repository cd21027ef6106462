import type * as Wire from '@farthing/sdk'
import Type, { type Static } from 'typebox'
import { listPayments, readPayment } from '../../checkouts/payments/list.ts'
import { openDecisions } from '../../checkouts/payments/request-decision.ts'
import type { Context } from '../../context.ts'
import { answer, limitDefault, type Route, sendJson, timesOf } from '../route.ts'
import { Actor, cursor, limit, nullable, object, of, pageOf, shape, timestamp } from './shapes.ts'

const paymentFields = {
  transaction: Type.String(),
  payer: Type.String(),
  network: Type.String({ description: 'CAIP-2 identifier.' }),
  asset: Type.String(),
  amount: Type.String({ description: 'Integer amount in the asset’s smallest unit.' }),
  finality: Type.Enum(['included', 'safe', 'finalized', 'reversed']),
}

export const CheckoutPayment = shape<Wire.CheckoutPayment>()(paymentFields)

const dispositions = ['late', 'underpaid', 'overpaid', 'unmatched'] as const

export const PaymentHint = shape<Wire.PaymentHint>()({
  checkoutId: Type.String(),
  disposition: Type.Enum([...dispositions]),
})

const PaymentNote = shape<Wire.PaymentNote>()(
  { text: Type.String(), actor: Actor, notedAt: timestamp() },
  { description: 'The store’s own note about it; absent if there is none.' },
)

const BuyerReceipt = shape<Wire.BuyerReceipt>()(
  {
    number: Type.String({
      description:
        'Consecutive per store and year, such as 2026-000017. After the database was restored another series begins, such as 2026-TPDKQ4-000001.',
    }),
    issuedOn: Type.String({ description: 'The day in the store’s time zone.', examples: ['2026-11-19'] }),
    voidAt: nullable(timestamp()),
    legalName: nullable(Type.String()),
    legalAddress: nullable(Type.String()),
    taxId: nullable(Type.String()),
  },
  {
    description:
      'The buyer’s receipt, with the seller’s data as they were when it was made. Void once the chain has taken the payment back for good. Only when the payment is read by its id and has completed its checkout.',
  },
)

export const Payment = shape<Wire.Payment>()({
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
        'What can still be refunded. Refunds that are on their way are already subtracted. Present when refundedAmount is.',
    }),
  ),
  receipt: Type.Optional(BuyerReceipt),
})

const units = (about: string) =>
  Type.Optional(Type.String({ pattern: '^(0|[1-9]\\d{0,77})$', description: about }))

const PaymentQuery = object({
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
})

const PaymentPage = of<Wire.Page<Wire.Payment>>()(pageOf(Payment))
const AcceptPayment = shape<Wire.AcceptPayment>()({
  checkoutId: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'May be left out if the payment already belongs to a checkout.',
    }),
  ),
})

const note = Type.String({ description: '1 to 1,000 bytes of text, for the store alone.' })
const DismissPayment = shape<Wire.DismissPayment>()({ note: Type.Optional(note) })
const NotePayment = shape<Wire.NotePayment>()({ note: nullable(note) })

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
      handle: answer<Static<typeof PaymentQuery>>(200, ({ ctx, storeId, input }) =>
        listPayments(ctx, storeId, { limit: limitDefault, ...input, ...timesOf(input) }),
      ),
    },
    {
      method: 'GET',
      path: '/api/v1/payments/:paymentId',
      operationId: 'getPayment',
      summary: 'Read a payment',
      scope: 'payments:read',
      answers: { 200: { description: 'The payment.', schema: Payment } },
      problems: ['not_found'],
      handle: answer(200, ({ ctx, storeId, param }) => readPayment(ctx, storeId, param('paymentId'))),
    },
  ]
}

function decidingRoutes(ctx: Context): Route[] {
  const decide = openDecisions(ctx)
  const by = <Input>(read: (input: Input) => Omit<Parameters<typeof decide>[3], 'paymentId'>) =>
    answer<Input>(200, async ({ ctx, reply, storeId, actor, param, input, now }) => {
      const asked = { ...read(input), paymentId: param('paymentId') }
      const { payment, isApplied } = await decide(ctx, storeId, actor, asked, now)
      return isApplied ? payment : sendJson(reply.header('retry-after', '1'), 202, payment)
    })
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
      handle: by<Wire.AcceptPayment>(({ checkoutId = null }) => ({ kind: 'accept', checkoutId })),
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
      handle: by<Wire.DismissPayment>(({ note }) => ({
        ...{ kind: 'dismiss', checkoutId: null },
        ...(note !== undefined && { note }),
      })),
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
      handle: by<Wire.NotePayment>(({ note }) => ({ kind: 'note', checkoutId: null, note })),
    },
  ]
}
