import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { cancelCheckout } from '../../../checkouts/cancel.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import { listClaims, listCredits, listTold } from '../../../checkouts/trail-rows.ts'
import type { Context } from '../../../context.ts'
import { readEvents } from '../../../events/read.ts'
import { isId } from '../../../ids.ts'
import { actorOfSession } from '../../../members/announce.ts'
import { Refusal } from '../../../members/refusal.ts'
import { mayAct } from '../../../members/rights.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { readPayment } from '../../../payments/credits/store-rows.ts'
import { Problem } from '../../../problems.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { readerOf } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { readStanding, type Standing } from '../refunds/standing.ts'
import { forMember, forStore, giveFormToken, sessionOf, storeOf } from '../visitor.ts'
import { renderPayment } from './render.ts'
import type { Trail } from './trail.ts'

const oneCheckout = '/stores/:storeId/checkouts/:checkoutId'
const reading = { config: { right: 'payments:read' } } as const
/** A checkout has a handful; this many only after many reorganisations or notes. */
const eventsMax = 100
const standingsMax = 5

/** One payment: a checkout with all that came for it, or money without a checkout. */
export function mountPayment(scope: FastifyInstance, ctx: Context): void {
  scope.get(oneCheckout, reading, async (request, reply) => {
    const { storeId, role } = storeOf(request)
    const { checkoutId } = request.params as { checkoutId: string }
    const mine = forStore(ctx, storeId)
    const row = isId('ch', checkoutId) ? await readCheckout(mine.db, storeId, checkoutId) : null
    if (!row) throw new Refusal('not_found')
    const log = { checkoutId, type: null, actor: null, after: null, limit: eventsMax }
    const [credits, claims, { data: events }] = await Promise.all([
      listCredits(mine.db, storeId, checkoutId),
      listClaims(mine.db, storeId, checkoutId),
      readEvents(mine, storeId, log),
    ])
    const ids = events.map(({ id }) => id)
    const told = mayAct(role, 'developers:read') ? await listTold(mine.db, storeId, ids) : []
    const paymentIds = credits.map(({ paymentId }) => paymentId)
    const [standings, returned] = await Promise.all([
      readStandings(mine, request, credits, true),
      sumReturned(mine.db, storeId, paymentIds),
    ])
    const refunds = standings.flatMap((each) => each.refunds)
    const trail = { checkout: row.checkout, credits, claims, events, told, refunds, returned }
    return send(ctx, request, reply, trail, standings, `/checkouts/${checkoutId}`)
  })

  scope.get('/stores/:storeId/payments/:paymentId', reading, async (request, reply) => {
    const { storeId } = storeOf(request)
    const { paymentId } = request.params as { paymentId: string }
    const mine = forStore(ctx, storeId)
    const payment = isId('pay', paymentId) ? await readPayment(mine.db, storeId, paymentId) : null
    if (!payment) throw new Refusal('not_found')
    if (payment.checkoutId !== null)
      return reply.code(303).header('location', `/stores/${storeId}/checkouts/${payment.checkoutId}`).send()
    const [standings, returned] = await Promise.all([
      readStandings(mine, request, [payment], payment.mayDecide),
      sumReturned(mine.db, storeId, [paymentId]),
    ])
    const refunds = standings.flatMap((each) => each.refunds)
    const trail = { checkout: null, credits: [payment], claims: [], events: [], told: [], refunds, returned }
    return send(ctx, request, reply, trail, standings, `/payments/${paymentId}`)
  })

  scope.post(`${oneCheckout}/cancel`, { config: { right: 'payments:write' } }, async (request, reply) => {
    const { storeId } = storeOf(request)
    const { checkoutId } = request.params as { checkoutId: string }
    try {
      const actor = actorOfSession(sessionOf(request))
      await cancelCheckout(forMember(ctx, request), storeId, actor, checkoutId, ctx.now())
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'not_found') throw new Refusal('not_found')
      // It was paid or expired meanwhile: the screen shows that.
      if (error.code !== 'not_cancelable' && error.code !== 'payment_in_progress') throw error
    }
    const back = textOf(fieldsOf(request), 'from') === 'new' ? 'new' : 'checkouts'
    return reply.code(303).header('location', `/stores/${storeId}/${back}/${checkoutId}`).send()
  })
}

/** Of every payment, what can be refunded. More than a handful come for no checkout. */
async function readStandings(
  ctx: Context,
  request: FastifyRequest,
  credits: readonly CreditRow[],
  mayDecide: boolean,
): Promise<Standing[]> {
  const { storeId, role } = storeOf(request)
  return await Promise.all(
    credits.slice(0, standingsMax).map((credit) => readStanding(ctx, storeId, role, credit, mayDecide)),
  )
}

function send(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  trail: Trail,
  standings: readonly Standing[],
  apiPath: string,
): Promise<FastifyReply> {
  const field = formField(giveFormToken(ctx, request, reply))
  const main = renderPayment(ctx, request, trail, standings, readerOf(request), field)
  return sendPage(ctx, request, reply, {
    screen: 'payments',
    title: trail.checkout?.orderId ?? trail.credits[0]?.paymentId ?? '',
    isLive: true,
    main: html`${main}${renderApiLine(request, ctx.config.baseUrl, { path: apiPath })}`,
  })
}
