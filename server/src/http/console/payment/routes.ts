import type { FastifyReply } from 'fastify'
import { readReceipt } from '../../../checkouts/buyer-receipts/read.ts'
import { cancelCheckout } from '../../../checkouts/cancel.ts'
import { nameOf } from '../../../checkouts/checkout.ts'
import { readOwed } from '../../../checkouts/payments/likely.ts'
import { openDecisions } from '../../../checkouts/payments/request-decision.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import { listClaims, listCredits, listTold } from '../../../checkouts/trail.ts'
import type { Context } from '../../../context.ts'
import { readEvents } from '../../../events/read.ts'
import { isId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { readPayment, type StorePayment } from '../../../payments/credits/store-payments.ts'
import { Problem } from '../../../problems.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import { mainOf } from '../payments/view.ts'
import { readRemainder } from '../refunds/routes.ts'
import type { Remainder } from '../refunds/view.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { forStore } from '../visitor.ts'
import type { TypedNote } from './notes.ts'
import type { Trail } from './trail.ts'
import { renderPayment } from './view.ts'

const oneCheckout = '/checkouts/:checkoutId'
const reading = 'payments:read'
/** A checkout has a handful of events. It reaches this number only after many reorganisations or notes. */
const eventsMax = 100
/** Hardly any checkout gets more payments than this. */
const remaindersMax = 5

/** One payment: a checkout with all money that arrived for it, or money without a checkout. */
export function mountPayment({ get, post }: StoreRoutes, outer: Context): void {
  const decide = openDecisions(outer, (storeId) => forStore(outer, storeId).db)

  get(oneCheckout, reading, (screen) => sendCheckout(screen, screen.part('checkoutId')))

  get('/payments/:paymentId', reading, async (screen) => {
    const payment = await readOwn(screen)
    if (payment.checkoutId !== null) return screen.go(`/checkouts/${payment.checkoutId}`)
    return await sendMoney(screen, payment)
  })

  post('/payments/:paymentId/note', 'payments:write', async (screen) => {
    const { memberCtx, storeId, actor, now, go } = screen
    const payment = await readOwn(screen)
    const { paymentId, checkoutId } = payment
    const text = screen.field('note').trim().replaceAll(/\s+/g, ' ')
    const asked = { paymentId, kind: 'note', checkoutId: null, note: text === '' ? null : text } as const
    try {
      const { isApplied } = await decide(memberCtx, storeId, actor, asked, now)
      const said = isApplied ? '' : '?said=waiting'
      return go(
        `/${checkoutId === null ? 'payments' : 'checkouts'}/${checkoutId ?? paymentId}${said}#note-${paymentId}`,
      )
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'not_found') throw new Refusal('not_found')
      const typed = { paymentId, text, isTooMany: error.code === 'rate_limited' }
      if (error.code !== 'invalid_request' && !typed.isTooMany) throw error
      return checkoutId === null
        ? await sendMoney(screen, payment, typed)
        : await sendCheckout(screen, checkoutId, typed)
    }
  })

  post(`${oneCheckout}/cancel`, 'payments:write', async ({ memberCtx, storeId, actor, now, part, go }) => {
    const checkoutId = part('checkoutId')
    try {
      await cancelCheckout(memberCtx, storeId, actor, checkoutId, now)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'not_found') throw new Refusal('not_found')
      // It was paid or expired meanwhile: the screen shows that.
      if (error.code !== 'not_cancelable' && error.code !== 'payment_in_progress') throw error
    }
    return go(`/checkouts/${checkoutId}`)
  })
}

async function readOwn({ ctx, storeId, part }: Screen): Promise<StorePayment> {
  const paymentId = part('paymentId')
  const payment = isId('pay', paymentId) ? await readPayment(ctx.db, storeId, paymentId) : null
  if (!payment) throw new Refusal('not_found')
  return payment
}

async function sendCheckout(
  screen: Screen,
  checkoutId: string,
  typed: TypedNote | null = null,
): Promise<FastifyReply> {
  const { storeId } = screen
  const { db } = screen.ctx
  const row = isId('ch', checkoutId) ? await readCheckout(db, storeId, checkoutId) : null
  if (!row) throw new Refusal('not_found')
  const log = { checkoutId, type: null, actor: null, after: null, limit: eventsMax }
  const [credits, claims, { data: events }, receipt] = await Promise.all([
    listCredits(db, storeId, checkoutId),
    listClaims(db, storeId, checkoutId),
    readEvents(screen.ctx, storeId, log),
    readReceipt(db, storeId, checkoutId),
  ])
  const ids = events.map(({ id }) => id)
  const told = screen.may('developers:read') ? await listTold(db, storeId, ids) : []
  const paymentIds = credits.map(({ paymentId }) => paymentId)
  const [remainders, returned] = await Promise.all([
    readRemainders(screen, credits, true),
    sumReturned(db, storeId, paymentIds),
  ])
  const refunds = remainders.flatMap((each) => each.refunds)
  const due = await readDue(screen, mainOf(credits))
  const trail = { checkout: row.checkout, receipt, credits, claims, events, told, refunds, returned, due }
  return await send(screen, trail, remainders, { apiPath: `/checkouts/${checkoutId}`, typed })
}

async function sendMoney(
  screen: Screen,
  payment: StorePayment,
  typed: TypedNote | null = null,
): Promise<FastifyReply> {
  const { paymentId, mayDecide } = payment
  const [remainders, returned] = await Promise.all([
    readRemainders(screen, [payment], mayDecide),
    sumReturned(screen.ctx.db, screen.storeId, [paymentId]),
  ])
  const refunds = remainders.flatMap((each) => each.refunds)
  const nothing = { checkout: null, receipt: null, claims: [], events: [], told: [], due: null }
  const trail = { ...nothing, credits: [payment], refunds, returned }
  return await send(screen, trail, remainders, { apiPath: `/payments/${paymentId}`, typed })
}

/** What the checkout of a payment asked for in its token, if that is not what came. */
async function readDue({ ctx, storeId }: Screen, main: CreditRow | null): Promise<bigint | null> {
  if (!main || (main.disposition === 'exact' && main.acceptedAt === null)) return null
  const due = (await readOwed(ctx.db, storeId, [main])).get(main.paymentId)?.due ?? null
  return due === main.amount ? null : due
}

/** How much of each payment can be refunded. */
async function readRemainders(
  screen: Screen,
  credits: readonly CreditRow[],
  mayDecide: boolean,
): Promise<Remainder[]> {
  const shown = credits.slice(0, remaindersMax)
  return await Promise.all(shown.map((credit) => readRemainder(screen, credit, mayDecide)))
}

function send(
  screen: Screen,
  trail: Trail,
  remainders: readonly Remainder[],
  { apiPath, typed }: { readonly apiPath: string; readonly typed: TypedNote | null },
): Promise<FastifyReply> {
  return screen.send({
    screen: 'payments',
    title: (trail.checkout && nameOf(trail.checkout)) ?? trail.credits[0]?.paymentId ?? '',
    status: typed ? 422 : 200,
    // The answer to a form has no address to be loaded from again.
    isLive: typed === null,
    main: html`${renderPayment(screen, trail, remainders, typed)}${renderApiLine(screen, { path: apiPath })}`,
  })
}
