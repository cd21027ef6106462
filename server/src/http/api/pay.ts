import type * as Wire from '@farthing/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { isFinal, toWire } from '../../checkouts/checkout.ts'
import type { PayLink } from '../../checkouts/links/pay.ts'
import {
  MalformedPayment,
  type PayAnswer,
  type PayEngine,
  type PayRequest,
  payCheckout,
} from '../../checkouts/pay.ts'
import type { Context } from '../../context.ts'
import { linkPathOf } from '../../links/link.ts'
import { readPaymentHeader } from '../../payments/payload.ts'
import { invalid, Problem } from '../../problems.ts'
import { addressBucket } from '../limits.ts'
import { type Route, sendJson, sendText } from '../route.ts'
import { Checkout } from './checkouts.ts'
import { object, shape } from './shapes.ts'

const SignedOffer = object({
  format: Type.Literal('jws'),
  acceptIndex: Type.Integer(),
  signature: Type.String(),
})
const SignedOffers = object({ info: object({ offers: Type.Array(SignedOffer) }), schema: Type.Object({}) })

const quote = Type.Optional(
  Type.String({
    description:
      'Only for a link: what it offers, for five minutes. Send it back in accepted, as x402 clients do.',
  }),
)

export const TermsSchema = shape<Wire.PaymentRequired>()({
  x402Version: Type.Literal(2),
  error: Type.Optional(Type.String()),
  resource: object({ url: Type.String(), description: Type.String(), mimeType: Type.String() }),
  accepts: Type.Array(
    object({
      scheme: Type.Literal('exact'),
      network: Type.String({ description: 'CAIP-2 identifier.' }),
      asset: Type.String({ description: 'Token contract address.' }),
      amount: Type.String({ description: 'Integer amount in the token’s smallest unit.' }),
      payTo: Type.String(),
      maxTimeoutSeconds: Type.Integer(),
      extra: Type.Union(
        [
          object({ name: Type.String(), version: Type.String(), quote }),
          object({ feePayer: Type.String(), memo: Type.String(), quote }),
          object({ simulated: Type.Literal(true), quote }),
        ],
        {
          description:
            'What else the payer signs. EVM: name and version of the token’s EIP-712 domain. Solana: the fee payer and a memo. The simulated network: nothing. A link’s quote is not signed.',
        },
      ),
    }),
  ),
  extensions: Type.Optional(object({ 'offer-receipt': SignedOffers })),
})

const answers = {
  200: {
    description: 'Paid.',
    schema: Checkout,
    headers: {
      'PAYMENT-RESPONSE':
        'Base64 of the settlement as JSON. With a signed receipt in `extensions`, if the deployment signs receipts.',
    },
  },
  202: {
    description:
      'The payment was claimed, but its outcome is not known yet. Repeat the same request with the same payment; do not sign another.',
    schema: Checkout,
    headers: {
      'PAYMENT-RESPONSE':
        'Base64 of the settlement as JSON: settlement_pending, and the transaction if it is known.',
      'Retry-After': 'Seconds to wait.',
    },
  },
  402: {
    description: 'Not paid yet. The body lists the ways to pay.',
    schema: TermsSchema,
    headers: {
      'PAYMENT-REQUIRED': 'Base64 of the same JSON.',
      Link: 'Where the docs for programs are: /llms.txt, with rel="describedby".',
      'PAYMENT-RESPONSE': 'Only if a payment was refused: base64 of the failed settlement, with the reason.',
    },
  },
}

/** The path of checkoutUrl, without the checkout's id. */
export function pagePathOf(ctx: Context): string {
  return new URL(ctx.config.checkoutPageUrl).pathname.replace(/\/$/, '')
}

/** Pages of any origin may read the ways to pay, and pay: there is no cookie or key to abuse. */
export const crossOrigin = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'PAYMENT-REQUIRED, PAYMENT-RESPONSE, Link, Retry-After, X-Request-Id',
}

const shared = {
  scope: null,
  requestHeaders: {
    'PAYMENT-SIGNATURE':
      'Base64 of the x402 payment. Without it, the answer for an unpaid checkout is 402 with the ways to pay. Version 1’s X-PAYMENT is not read.',
  },
  answers,
  problems: [
    'malformed_payment',
    'not_found',
    'already_paid',
    'payment_in_progress',
    'checkout_expired',
    'checkout_canceled',
    'authorization_used',
    'payment_not_applied',
    'payment_identifier_reused',
    'settlement_unavailable',
  ],
} as const

/** `open` is the address that people open too. */
type Payable = { readonly pay: readonly Route[]; readonly open: Route }

/** The payer's endpoints: no key, any origin, any body. The API's path and checkoutUrl do the same. */
export function payRoutes(ctx: Context, engine: PayEngine): Payable {
  const apiUrl = `${ctx.config.baseUrl}/api/v1/checkouts`
  const pageUrl = ctx.config.checkoutPageUrl
  const pagePath = `${pagePathOf(ctx)}/:checkoutId`
  const requests: Route[] = [
    {
      ...shared,
      method: 'POST',
      path: '/api/v1/checkouts/:checkoutId',
      operationId: 'payCheckout',
      summary: 'Pay a checkout with x402',
      description:
        'Call it without a payment to get the ways to pay, sign one of them, then call it again with the payment.',
      handle: (ctx, request, reply) => pay(ctx, engine, apiUrl, request, reply),
    },
    {
      ...shared,
      method: 'POST',
      path: pagePath,
      operationId: 'payCheckoutPage',
      summary: 'Pay a checkout at its checkoutUrl',
      description: 'The same operation as payCheckout, at the URL that buyers open.',
      handle: (ctx, request, reply) => pay(ctx, engine, pageUrl, request, reply),
    },
  ]
  const open: Route = {
    ...shared,
    method: 'GET',
    path: pagePath,
    operationId: 'openCheckoutPage',
    summary: 'Open a checkoutUrl',
    description:
      'Clients that prefer text/html, as browsers do, get the payment page. All other clients, and every request that carries a payment, get the same answer as from payCheckout. HEAD gets the headers of the same answer, and ignores a payment.',
    handle: (ctx, request, reply) => pay(ctx, engine, pageUrl, request, reply),
  }
  return { pay: requests, open }
}

async function pay(
  ctx: Context,
  engine: PayEngine,
  url: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { checkoutId } = request.params as { checkoutId: string }
  const asked = readRequest(request, `${url}/${checkoutId}`)
  return await send(ctx, engine, asked, payCheckout(ctx, engine, checkoutId, asked), reply)
}

/** A link's address, which programs pay like a checkout's. */
export function payLinkRoutes(ctx: Context, engine: PayEngine, payLink: PayLink): Payable {
  const path = `${pagePathOf(ctx)}/${linkPathOf(':linkId')}`
  const handle: Route['handle'] = async (ctx, request, reply) => {
    const { linkId } = request.params as { linkId: string }
    const chosen = readAmount(request)
    const url = `${ctx.config.checkoutPageUrl}/${linkPathOf(linkId)}`
    const asked = readRequest(request, chosen === null ? url : `${url}?amount=${chosen}`)
    const answer = payLink(linkId, { ...asked, amount: chosen })
    return await send(ctx, engine, asked, answer, reply)
  }
  const link = {
    ...shared,
    path,
    handle,
    query: Type.Object({ amount }),
    problems: [...shared.problems, 'link_closed', 'link_ended', 'rate_limited', 'rate_unavailable'],
  } as const
  const post: Route = {
    ...link,
    method: 'POST',
    operationId: 'payLink',
    summary: 'Pay a link with x402',
    description:
      'As payCheckout. The checkout is made together with the claim of a payment; asking for the ways to pay writes nothing.',
  }
  const open: Route = {
    ...link,
    method: 'GET',
    operationId: 'openLinkPage',
    summary: 'Open a link’s url',
    description:
      'Clients that prefer text/html, as browsers do, get the link’s page. All other clients, and every request that carries a payment, get the same answer as from payLink.',
  }
  return { pay: [post], open }
}

function readAmount({ query }: FastifyRequest): string | null {
  const { amount = null } = query as { amount?: unknown }
  if (amount === null || (typeof amount === 'string' && decimalForm.test(amount))) return amount
  throw invalid({ pointer: 'amount', code: 'amount', detail: 'Must be a decimal, such as 12.50.' })
}

/** The form of the limits that a store can set for a link's price. */
const decimalForm = /^\d{1,15}(\.\d{1,6})?$/

const amount = Type.Optional(
  Type.String({
    description: 'The price in the link’s currency, if the link lets the buyer choose it. Otherwise ignored.',
    examples: ['12.50'],
  }),
)

function readRequest(request: FastifyRequest, resourceUrl: string): PayRequest {
  return {
    resourceUrl,
    // HEAD only asks for headers, so it must not charge anyone.
    payment: readPaymentHeader(
      request.method === 'HEAD' ? undefined : request.headers['payment-signature'],
      request.headers['x-payment'],
    ),
    address: addressBucket(request.ip),
  }
}

async function send(
  ctx: Context,
  engine: PayEngine,
  { resourceUrl }: PayRequest,
  asked: Promise<PayAnswer>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const answer = await asked.catch((error) => {
    if (!(error instanceof MalformedPayment)) throw error
    throw new Problem(error.code, error.message, {
      headers: { 'payment-required': encode(JSON.stringify(error.required)), link: docsLink(ctx) },
    })
  })
  return render(ctx, engine, resourceUrl, answer, reply)
}

/** Absolute, because the payment page may be on another host than the docs. */
function docsLink({ config }: Context): string {
  return `<${config.baseUrl}/llms.txt>; rel="describedby"; type="text/plain"`
}

/** Encodes JSON for a header, as x402 requires. Its own library takes 50 µs for this, a fifth of a whole 402. */
function encode(json: string): string {
  return Buffer.from(json).toString('base64')
}

function render(
  ctx: Context,
  { issuer }: PayEngine,
  resourceUrl: string,
  answer: PayAnswer,
  reply: FastifyReply,
): FastifyReply {
  switch (answer.kind) {
    case 'required': {
      const terms = JSON.stringify(answer.required)
      reply.header('payment-required', encode(terms)).header('link', docsLink(ctx))
      if (answer.refused) {
        const { reason: errorReason, message: errorMessage, network, payer } = answer.refused
        reply.header(
          'payment-response',
          encodeSettlement({
            success: false,
            errorReason,
            ...(errorMessage !== undefined && { errorMessage }),
            transaction: '',
            network,
            payer,
          }),
        )
      }
      return sendText(reply, 402, terms)
    }
    case 'paid': {
      const { checkout, payment } = answer
      const { transaction, network, payer } = payment
      const extensions =
        issuer && isFinal(checkout, payment) ? issuer.signReceipt(resourceUrl, payment, ctx.now()) : null
      const settlement = { success: true, transaction, network, payer, ...(extensions && { extensions }) }
      reply.header('payment-response', encodeSettlement(settlement))
      return sendJson(reply, 200, toWire(ctx, checkout))
    }
    case 'pending': {
      const { transaction, network, payer } = answer
      reply.header('retry-after', String(pendingRetrySeconds))
      reply.header(
        'payment-response',
        encodeSettlement({ success: false, errorReason: 'settlement_pending', transaction, network, payer }),
      )
      return sendJson(reply, 202, toWire(ctx, answer.checkout))
    }
  }
}

/** Two blocks on Base: by then the payment has most likely settled. */
const pendingRetrySeconds = 4

function encodeSettlement(settlement: Wire.Settlement): string {
  return encode(JSON.stringify(settlement))
}
