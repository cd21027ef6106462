import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import { actAs, actWithTouch } from '../../../members/act.ts'
import { type Action, readTouch } from '../../../members/confirm.ts'
import { Refusal } from '../../../members/refusal.ts'
import { openRails } from '../../../payments/rails.ts'
import { Problem } from '../../../problems.ts'
import { cancelRefund } from '../../../refunds/cancel.ts'
import { confirmClaim, judgeNamed } from '../../../refunds/claims/confirm.ts'
import { makeClaim } from '../../../refunds/claims/make.ts'
import { declareRefund } from '../../../refunds/declare.ts'
import { nameTransaction } from '../../../refunds/name-transaction.ts'
import { readRefund } from '../../../refunds/read.ts'
import { readRefund as readOwn } from '../../../refunds/rows.ts'
import { fieldsOf, textOf, touchOf } from '../fields.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, sessionOf, storeOf } from '../visitor.ts'
import { sendLink } from './acts-claim.ts'
import { readOne, sendOne } from './send.ts'
import { isTheirs } from './turn.ts'
import { wordsOf } from './words.ts'

const path = '/stores/:storeId/refunds/:refundId'
const writing = { config: { right: 'refunds:write' } } as const

type Acting = Parameters<Parameters<typeof actAs>[4]>[0]

/**
 * What a store does about a refund without its wallet. What says who gets the money, or that it was paid where nobody can
 * look, takes a touch.
 */
export function mountActs(scope: FastifyInstance, ctx: Context): void {
  const rails = openRails(ctx)

  scope.post(`${path}/cancel`, writing, (request, reply) =>
    answer(ctx, request, reply, (id) =>
      asMember(ctx, request, ({ ctx: mine, actor }) =>
        cancelRefund(mine, storeOf(request).storeId, actor, id, ctx.now()),
      ),
    ),
  )

  scope.post(`${path}/transaction`, writing, (request, reply) =>
    answer(ctx, request, reply, (id) =>
      asMember(ctx, request, ({ ctx: mine, actor }) => {
        const transaction = textOf(fieldsOf(request), 'transaction').trim()
        return nameTransaction(mine, rails, storeOf(request).storeId, actor, id, transaction)
      }),
    ),
  )

  scope.post(`${path}/declare`, writing, (request, reply) =>
    answer(ctx, request, reply, (id) => {
      const reference = textOf(fieldsOf(request), 'reference')
      const values = { refundId: id, reference }
      return byTouch(ctx, request, 'refund.declare', values, async (acting) => {
        await requireTheirs(acting, request, id)
        return await declareRefund(acting.ctx, storeOf(request).storeId, acting.actor, id, reference.trim())
      })
    }),
  )

  /** A link alone pays nobody: what is named with it takes a touch. */
  scope.post(`${path}/claim`, writing, async (request, reply) => {
    const { storeId } = storeOf(request)
    const id = idOf(request)
    try {
      const link = await asMember(ctx, request, ({ ctx: mine, actor }) => makeClaim(mine, storeId, actor, id))
      return await sendLink(await readOne(ctx, request, reply, null), reply, link)
    } catch (error) {
      return await refuse(ctx, request, reply, error)
    }
  })

  scope.post(`${path}/confirm`, writing, (request, reply) =>
    answer(ctx, request, reply, async (id) => {
      const { storeId } = storeOf(request)
      const fields = fieldsOf(request)
      const [address, code] = [textOf(fields, 'address'), textOf(fields, 'code')]
      const values = { refundId: id, address, code }
      const judged = await judgeNamed(forStore(ctx, storeId), storeId, id)
      return await byTouch(ctx, request, 'refund.confirm', values, async (acting) => {
        await requireTheirs(acting, request, id)
        // What the passkey confirmed is the address that was shown.
        const { claim } = await readRefund(acting.ctx, storeId, id)
        if (claim?.address !== address) throw new Problem('claim_closed', 'Another address was named.')
        return await confirmClaim(acting.ctx, storeId, acting.actor, id, judged, code, ctx.now())
      })
    }),
  )
}

function idOf(request: FastifyRequest): string {
  const { refundId } = request.params as { refundId: string }
  if (!isId('rf', refundId)) throw new Refusal('not_found')
  return refundId
}

async function requireTheirs(
  { ctx, actor, role }: Acting,
  request: FastifyRequest,
  id: string,
): Promise<void> {
  const refund = await readOwn(ctx.db, storeOf(request).storeId, id)
  if (refund && !isTheirs(role, actor.id, refund))
    throw new Refusal('role', { detail: textsOf(request).refunds.notTheirs })
}

async function asMember<Result>(
  ctx: Context,
  request: FastifyRequest,
  work: (acting: Acting) => Promise<Result>,
): Promise<Result> {
  const { storeId } = storeOf(request)
  return await actAs(forStore(ctx, storeId), storeId, sessionOf(request), 'refunds:write', work)
}

async function byTouch(
  ctx: Context,
  request: FastifyRequest,
  action: Action,
  values: Readonly<Record<string, string>>,
  work: (acting: Acting) => Promise<unknown>,
): Promise<unknown> {
  const { storeId } = storeOf(request)
  const touch = await readTouch(ctx, sessionOf(request), touchOf(fieldsOf(request)))
  const wanted = { action, values }
  return await actWithTouch(forStore(ctx, storeId), storeId, touch, 'refunds:write', wanted, ctx.now(), work)
}

/** Shows the refund as it has become, or with the reason why nothing changed. */
async function answer(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (id: string) => Promise<unknown>,
): Promise<FastifyReply> {
  const id = idOf(request)
  try {
    await work(id)
  } catch (error) {
    return await refuse(ctx, request, reply, error)
  }
  return reply
    .code(303)
    .header('location', `/stores/${storeOf(request).storeId}/refunds/${id}`)
    .send()
}

async function refuse(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<FastifyReply> {
  const isNotTheirs = error instanceof Refusal && error.reason === 'role'
  const problem = isNotTheirs ? (error.detail ?? null) : wordsOf(request, error)
  if (problem !== null) return await sendOne(ctx, request, reply, problem)
  if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
  throw error
}
