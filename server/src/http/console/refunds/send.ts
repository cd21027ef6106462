import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { toWire } from '../../../refunds/refund.ts'
import { readRefund } from '../../../refunds/rows.ts'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { formField } from '../form-field.ts'
import { readerOf } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, giveFormToken, sessionOf, storeOf } from '../visitor.ts'
import { renderOne } from './one.ts'
import type { One } from './screen.ts'
import { isTheirs } from './turn.ts'

/** The screen of the refund in the path. */
export async function sendOne(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  problem: string | null,
): Promise<FastifyReply> {
  const one = await readOne(ctx, request, reply, problem)
  const { wire } = one
  return sendPage(ctx, request, reply, {
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: `${textsOf(request).refunds.id} ${wire.orderId ?? wire.id}`,
    isLive: problem === null,
    main: html`${renderOne(one)}${renderApiLine(request, ctx.config.baseUrl, { path: `/refunds/${wire.id}` })}`,
  })
}

export async function readOne(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  problem: string | null,
): Promise<One> {
  const { storeId, role } = storeOf(request)
  const { refundId } = request.params as { refundId: string }
  const refund = isId('rf', refundId) ? await readRefund(forStore(ctx, storeId).db, storeId, refundId) : null
  if (!refund) throw new Refusal('not_found')
  const field = formField(giveFormToken(ctx, request, reply))
  return {
    ...{ ctx, request, refund, wire: toWire(refund), problem, reader: readerOf(request), formField: field },
    isTheirs: isTheirs(role, sessionOf(request).member.id, refund),
  }
}
