import type { PaymentRequired } from '@farthing/sdk'
import { encodePaymentRequiredHeader, encodePaymentResponseHeader } from '@x402/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { toWire } from '../checkouts/checkout.ts'
import { MalformedPayment, type PayAnswer, payCheckout } from '../checkouts/pay.ts'
import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { type Route, sendJson } from './route.ts'
import * as schemas from './schemas.ts'

const answers = {
  200: {
    description: 'Paid.',
    schema: schemas.Checkout,
    headers: { 'PAYMENT-RESPONSE': 'Base64 of the settlement’s JSON.' },
  },
  402: {
    description: 'Not paid yet: the ways to pay.',
    schema: schemas.PaymentRequired,
    headers: { 'PAYMENT-REQUIRED': 'Base64 of the same JSON.' },
  },
}

/** The payer's door: no key, any origin, any body. The same operation stands on the API's path and on checkoutUrl. */
export function payRoutes(ctx: Context): Route[] {
  const apiUrl = `${ctx.config.baseUrl}/api/v1/checkouts`
  const pageUrl = ctx.config.checkoutPageUrl
  const shared = {
    isKeyed: false,
    requestHeaders: {
      'PAYMENT-SIGNATURE': 'Base64 of the x402 payment. Without it the answer is 402 with the ways to pay.',
    },
    answers,
    problems: [
      'malformed_payment',
      'not_found',
      'already_paid',
      'payment_in_progress',
      'checkout_expired',
      'checkout_canceled',
      'settlement_unavailable',
    ],
  } as const
  return [
    {
      ...shared,
      method: 'POST',
      path: '/api/v1/checkouts/:checkoutId',
      operationId: 'payCheckout',
      summary: 'Pay a checkout with x402',
      description:
        'Call it without a payment to get the ways to pay, sign one, and call it again with the payment.',
      handle: (request, reply) => pay(ctx, apiUrl, request, reply),
    },
    {
      ...shared,
      method: 'POST',
      path: `${new URL(pageUrl).pathname.replace(/\/$/, '')}/:checkoutId`,
      operationId: 'payCheckoutPage',
      summary: 'Pay a checkout at its checkoutUrl',
      description: 'The same operation as payCheckout, at the address that people open.',
      handle: (request, reply) => pay(ctx, pageUrl, request, reply),
    },
  ]
}

async function pay(
  ctx: Context,
  url: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { checkoutId } = request.params as { checkoutId: string }
  const payment = readPayment(request.headers['payment-signature'])
  const answer = await payCheckout(ctx, checkoutId, { resourceUrl: `${url}/${checkoutId}`, payment }).catch(
    (error) => {
      if (!(error instanceof MalformedPayment)) throw error
      throw new Problem(error.code, error.message, {
        headers: { 'payment-required': encodeRequired(error.required) },
      })
    },
  )
  return render(ctx, answer, reply)
}

/** The protocol's type wants "namespace:reference" spelled as a type; ours are read from a table. */
function encodeRequired(required: PaymentRequired): string {
  return encodePaymentRequiredHeader(required as Parameters<typeof encodePaymentRequiredHeader>[0])
}

function render(ctx: Context, answer: PayAnswer, reply: FastifyReply): FastifyReply {
  if (answer.kind === 'required') {
    reply.header('payment-required', encodeRequired(answer.required))
    return sendJson(reply, 402, answer.required)
  }
  const { transaction, network, payer } = answer.payment
  reply.header(
    'payment-response',
    encodePaymentResponseHeader({
      success: true,
      transaction,
      network: network as `${string}:${string}`,
      payer,
    }),
  )
  return sendJson(reply, 200, toWire(ctx, answer.checkout))
}

/**
 * Node joins repeated headers with a comma and its base64 decoder skips what it does not know, so two readers could
 * take one header for two payments. Only canonical base64 is read: encoding it again must give the same text.
 */
function readPayment(header: string | string[] | undefined): 'none' | 'unreadable' | 'present' {
  if (header === undefined) return 'none'
  if (typeof header !== 'string' || header === '') return 'unreadable'
  const bytes = Buffer.from(header, 'base64')
  if (bytes.toString('base64') !== header) return 'unreadable'
  try {
    const payload: unknown = JSON.parse(bytes.toString())
    const isVersion2 =
      typeof payload === 'object' && payload !== null && 'x402Version' in payload && payload.x402Version === 2
    return isVersion2 ? 'present' : 'unreadable'
  } catch {
    return 'unreadable'
  }
}
