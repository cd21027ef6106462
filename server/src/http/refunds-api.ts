import type * as Wire from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import type { Static } from 'typebox'
import type { Context } from '../context.ts'
import type { Rails } from '../payments/rail.ts'
import { cancelRefund } from '../refunds/cancel.ts'
import { makeClaim } from '../refunds/claims/make.ts'
import { createRefund } from '../refunds/create.ts'
import { declareRefund } from '../refunds/declare.ts'
import { nameTransaction } from '../refunds/name-transaction.ts'
import { prepareRefund } from '../refunds/prepare.ts'
import { listRefunds, readRefund } from '../refunds/read.ts'
import { signRefund } from '../refunds/sign.ts'
import { openRefundWaits } from '../refunds/wait.ts'
import { readIdempotencyKey } from './idempotency.ts'
import * as shapes from './refund-schemas.ts'
import { actorOf, limitDefault, param, type Route, sendJson, storeOf } from './route.ts'

const oneRefund = '/api/v1/refunds/:refundId'
const retryAfter = { 'Retry-After': 'Seconds to wait before the refund is read again.' }

/** Money that goes back: the store asks for it, its wallet signs it, Farthing sends it and tells what became of it. */
export function refundRoutes(ctx: Context, rails: Rails): Route[] {
  return [...askingRoutes(), ...movingRoutes(ctx, rails)]
}

function askingRoutes(): Route[] {
  return [
    {
      method: 'POST',
      path: '/api/v1/payments/:paymentId/refunds',
      operationId: 'createRefund',
      summary: 'Create a refund of a payment',
      description:
        'Reserves the amount, so that no other refund can return it too. Nothing moves until the wallet that was paid has signed. The payment must be final.',
      scope: 'refunds:write',
      body: shapes.CreateRefund,
      isBodyOptional: true,
      requestHeaders: {
        'Idempotency-Key':
          '1 to 255 visible ASCII characters. A repeat with the same bytes gets the same refund, as it is by then.',
      },
      answers: {
        201: {
          description: 'Created, with status REQUESTED.',
          schema: shapes.Refund,
          headers: { Location: 'The URL to read the refund at.' },
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
      async handle(ctx, request, reply) {
        const { amount, recipient, reason, way } = (request.body ?? {}) as Wire.CreateRefund
        const refund = await createRefund(
          ctx,
          storeOf(request),
          { actor: actorOf(request), mayChooseRecipient: false },
          {
            paymentId: param(request, 'paymentId'),
            amount: amount === undefined ? null : BigInt(amount),
            recipient: recipient ?? null,
            reason: reason ?? null,
            way: way ?? 'signed',
            idempotency: readIdempotencyKey(request, 'POST /api/v1/payments/:paymentId/refunds'),
          },
          ctx.now(),
        )
        reply.header('location', `${ctx.config.baseUrl}/api/v1/refunds/${refund.id}`)
        return sendJson(reply, 201, refund)
      },
    },
    {
      method: 'GET',
      path: '/api/v1/refunds',
      operationId: 'listRefunds',
      summary: 'List refunds, newest first',
      scope: 'refunds:read',
      query: shapes.RefundQuery,
      answers: { 200: { description: 'One page.', schema: shapes.RefundPage } },
      problems: [],
      async handle(ctx, request, reply) {
        const { limit = limitDefault, ...query } = request.query as Static<typeof shapes.RefundQuery>
        return sendJson(reply, 200, await listRefunds(ctx, storeOf(request), { limit, ...query }))
      },
    },
    {
      method: 'GET',
      path: oneRefund,
      operationId: 'getRefund',
      summary: 'Read a refund',
      scope: 'refunds:read',
      answers: { 200: { description: 'The refund.', schema: shapes.Refund } },
      problems: ['not_found'],
      async handle(ctx, request, reply) {
        return sendJson(reply, 200, await readRefund(ctx, storeOf(request), param(request, 'refundId')))
      },
    },
    {
      method: 'POST',
      path: `${oneRefund}/cancel`,
      operationId: 'cancelRefund',
      summary: 'Cancel a refund that nobody has signed',
      description:
        'If something was handed out to be signed, a signature may exist: then the refund counts until that can no longer be used, and is CANCELED by itself after that. Canceling it again changes nothing.',
      scope: 'refunds:write',
      answers: {
        200: { description: 'Canceled.', schema: shapes.Refund },
        202: {
          description:
            'It will be canceled once what was handed out to be signed has expired. No signature is taken for it any more.',
          schema: shapes.Refund,
          headers: retryAfter,
        },
      },
      problems: ['not_found', 'refund_in_progress'],
      async handle(ctx, request, reply) {
        const refund = await cancelRefund(
          ctx,
          storeOf(request),
          actorOf(request),
          param(request, 'refundId'),
          ctx.now(),
        )
        return send(reply, refund, refund.status === 'CANCELED', 60)
      },
    },
  ]
}

/** How the money moves: what the wallet signs, what the store sent by itself, and where the buyer wants it. */
function movingRoutes(ctx: Context, rails: Rails): Route[] {
  const waitForOutcome = openRefundWaits(ctx)
  return [
    {
      method: 'POST',
      path: `${oneRefund}/prepare`,
      operationId: 'prepareRefund',
      summary: 'Get what the wallet has to sign',
      description:
        'Ask for it when the signer is ready. Asking again gives the same nonce, amount and recipient. From the first time on, the refund counts until that can no longer move money, even if it is canceled.',
      scope: 'refunds:write',
      answers: { 200: { description: 'What to sign.', schema: shapes.PreparedRefund } },
      problems: [
        'not_found',
        'refund_canceled',
        'refund_in_progress',
        'refund_slots_used',
        'refund_exceeds_payment',
        'payment_not_open',
        'payment_not_final',
      ],
      async handle(ctx, request, reply) {
        const { expiresAt, ...prepared } = await prepareRefund(
          ctx,
          rails,
          storeOf(request),
          param(request, 'refundId'),
        )
        return sendJson(reply, 200, { ...prepared, expiresAt: expiresAt.toISOString() })
      },
    },
    {
      method: 'POST',
      path: `${oneRefund}/signature`,
      operationId: 'signRefund',
      summary: 'Present what the wallet signed',
      description:
        'The refund is sent from here, at no cost for the store. Waits a few seconds for its outcome. Presenting it again changes nothing.',
      scope: 'refunds:write',
      body: shapes.PresentRefund,
      answers: {
        200: { description: 'Completed: its transfer is on the chain.', schema: shapes.Refund },
        202: { description: 'Signed, and on its way.', schema: shapes.Refund, headers: retryAfter },
      },
      problems: [
        'not_found',
        'refund_canceled',
        'refund_in_progress',
        'payment_not_open',
        'payment_not_final',
        'settlement_unavailable',
      ],
      async handle(ctx, request, reply) {
        const { signature, transaction } = request.body as Wire.PresentRefund
        const id = param(request, 'refundId')
        const presented = signature === undefined ? { transaction: transaction ?? '' } : { signature }
        const signed = await signRefund(ctx, rails, storeOf(request), id, presented)
        const refund = signed.status === 'COMPLETED' ? signed : await waitForOutcome(storeOf(request), id)
        return send(reply, refund, refund.status === 'COMPLETED', 2)
      },
    },
    {
      method: 'POST',
      path: `${oneRefund}/transaction`,
      operationId: 'nameRefundTransaction',
      summary: 'Say how the store has sent a refund by itself',
      description:
        'For refunds whose way is sent. A transaction proves the refund once it is final: a transfer of exactly this amount of the same token to the recipient, from a wallet that the store has proven. A reference is recorded as the store’s word, for good.',
      scope: 'refunds:write',
      body: shapes.NameTransaction,
      answers: {
        200: { description: 'COMPLETED or DECLARED.', schema: shapes.Refund },
        202: {
          description: 'The transaction is being looked for, and not final yet.',
          schema: shapes.Refund,
          headers: retryAfter,
        },
      },
      problems: ['not_found', 'refund_canceled', 'refund_in_progress'],
      async handle(ctx, request, reply) {
        const { transaction, reference } = request.body as Wire.NameTransaction
        const [storeId, actor, id] = [storeOf(request), actorOf(request), param(request, 'refundId')]
        const refund =
          transaction === undefined
            ? await declareRefund(ctx, storeId, actor, id, reference ?? '')
            : await nameTransaction(ctx, rails, storeId, actor, id, transaction)
        return send(reply, refund, refund.status !== 'SENT', 30)
      },
    },
    {
      method: 'POST',
      path: `${oneRefund}/claim`,
      operationId: 'createRefundClaim',
      summary: 'Make a link at which the buyer names an address',
      description:
        'For payments whose sender may be an exchange. A member of the store confirms the address in the console. Another link replaces the one before and what was named with it.',
      scope: 'refunds:write',
      answers: { 201: { description: 'The link.', schema: shapes.RefundClaimLink } },
      problems: ['not_found', 'claim_closed'],
      async handle(ctx, request, reply) {
        const [storeId, actor] = [storeOf(request), actorOf(request)]
        return sendJson(reply, 201, await makeClaim(ctx, storeId, actor, param(request, 'refundId')))
      },
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
