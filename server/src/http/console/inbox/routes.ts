import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { listLikely, readOwed } from '../../../checkouts/payments/likely-rows.ts'
import { openDecisions } from '../../../checkouts/payments/request-decision.ts'
import { findUnpaid } from '../../../checkouts/read.ts'
import type { Context } from '../../../context.ts'
import { lookBack } from '../../../events/look-back.ts'
import { actorOfSession } from '../../../members/announce.ts'
import { listUndecided, readUndecided } from '../../../payments/credits/undecided-rows.ts'
import { Problem } from '../../../problems.ts'
import { html } from '../../page/html.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { localeOf } from '../formats.ts'
import { renderApiLine } from '../parts.ts'
import { hasText, textsOf } from '../texts/choose.ts'
import { forMember, forStore, giveFormToken, sessionOf, storeOf } from '../visitor.ts'
import { type Result, renderInbox } from './render.ts'

const path = '/stores/:storeId/inbox'
const write = { config: { right: 'payments:write' } } as const
/**
 * As many as somebody decides in one go, besides the one that the address names; each that has no checkout takes a look
 * at those before it.
 */
const itemsMax = 20
const recentMax = 5

/** Money that completed no checkout: what it is, why, and what to do with it. */
export function mountInbox(scope: FastifyInstance, ctx: Context): void {
  const decide = openDecisions(ctx, (storeId) => forStore(ctx, storeId).db)

  scope.get(path, { config: { right: 'payments:read' } }, async (request, reply) => {
    const { storeId } = storeOf(request)
    const mine = forStore(ctx, storeId)
    const query = queryOf(request)
    const [listed, named, { events }] = await Promise.all([
      listUndecided(mine.db, storeId, itemsMax + 1),
      readUndecided(mine.db, storeId, query.payment),
      lookBack(
        mine,
        storeId,
        { type: 'payment.*', checkoutId: null, actor: null, isByActor: true },
        { to: null, limit: recentMax },
      ),
    ])
    const newest = listed.slice(0, itemsMax)
    const chosen = named?.paymentId ?? null
    const isListed = newest.some(({ paymentId }) => paymentId === chosen)
    const payments = named && !isListed ? [named, ...newest] : newest
    const isFinding = chosen !== null && query.find !== ''
    const [owed, found, ...likely] = await Promise.all([
      readOwed(mine.db, storeId, payments),
      isFinding ? findUnpaid(mine, storeId, query.find) : null,
      ...payments.map(async (payment) =>
        payment.checkoutId === null ? await listLikely(mine.db, storeId, ctx.config.cell, payment) : [],
      ),
    ])
    const main = renderInbox(request, {
      items: payments.map((payment, place) => ({
        payment,
        owed: owed.get(payment.paymentId) ?? null,
        likely: likely[place] ?? [],
        search: payment.paymentId === chosen && found ? { text: query.find, found } : null,
      })),
      opened: chosen ?? payments[0]?.paymentId ?? null,
      hasMore: listed.length > itemsMax,
      recent: events,
      result: query.said,
      locale: localeOf(request),
      now: ctx.now(),
      formField: formField(giveFormToken(ctx, request, reply)),
    })
    const [first] = payments
    return sendPage(ctx, request, reply, {
      screen: 'inbox',
      title: textsOf(request).inbox.title,
      isLive: true,
      main: html`${main}${renderApiLine(
        { ctx, texts: textsOf(request) },
        first
          ? {
              method: 'POST',
              path: `/payments/${first.paymentId}/accept`,
              body: { checkoutId: first.checkoutId ?? 'ch_…' },
            }
          : { path: '/payments?disposition=unmatched' },
      )}`,
    })
  })

  scope.post(`${path}/accept`, write, (request, reply) =>
    answer(request, reply, async (storeId, paymentId) => {
      const checkoutId = textOf(fieldsOf(request), 'checkoutId')
      const asked = { kind: 'accept', paymentId, checkoutId: checkoutId === '' ? null : checkoutId } as const
      const { isApplied } = await decide(
        forMember(ctx, request),
        storeId,
        actorOfSession(sessionOf(request)),
        asked,
        ctx.now(),
      )
      return isApplied ? 'accepted' : 'doing'
    }),
  )

  scope.post(`${path}/dismiss`, write, (request, reply) =>
    answer(request, reply, async (storeId, paymentId) => {
      const note = textOf(fieldsOf(request), 'note').trim().replaceAll(/\s+/g, ' ')
      const asked = { kind: 'dismiss', paymentId, checkoutId: null, ...(note !== '' && { note }) } as const
      const { isApplied } = await decide(
        forMember(ctx, request),
        storeId,
        actorOfSession(sessionOf(request)),
        asked,
        ctx.now(),
      )
      return isApplied ? 'dismissed' : 'doing'
    }),
  )
}

type Query = { readonly payment: string; readonly find: string; readonly said: Result | null }

function queryOf(request: FastifyRequest): Query {
  const given = (request.query ?? {}) as Readonly<Record<string, unknown>>
  const text = (name: string) => (typeof given[name] === 'string' ? given[name].slice(0, 300).trim() : '')
  const said = text('said')
  return {
    payment: text('payment'),
    find: text('find'),
    said: hasText(textsOf(request).inbox.results, said) ? said : null,
  }
}

/** Back to the inbox, which says what became of it: at the payment that is still there. */
async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  work: (storeId: ReturnType<typeof storeOf>['storeId'], paymentId: string) => Promise<Result>,
): Promise<FastifyReply> {
  const { storeId } = storeOf(request)
  const paymentId = textOf(fieldsOf(request), 'paymentId')
  const said = await work(storeId, paymentId).catch((error: unknown): Result => {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'invalid_request') return 'note'
    if (!hasText(textsOf(request).inbox.results, error.code)) throw error
    return error.code
  })
  const address = new URLSearchParams({ payment: paymentId.slice(0, 40), said })
  return reply.code(303).header('location', `/stores/${storeId}/inbox?${address}`).send()
}
