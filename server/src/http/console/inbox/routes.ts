import type { FastifyReply } from 'fastify'
import { listLikely, readOwed } from '../../../checkouts/payments/likely.ts'
import { openDecisions } from '../../../checkouts/payments/request-decision.ts'
import { findUnpaid } from '../../../checkouts/read.ts'
import type { Context } from '../../../context.ts'
import { lookBack } from '../../../events/read.ts'
import { listUndecided, readUndecided } from '../../../payments/credits/store-payments.ts'
import { Problem } from '../../../problems.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { hasText } from '../texts/choose.ts'
import { forStore } from '../visitor.ts'
import { type Result, renderInbox } from './view.ts'

const path = '/inbox'
const write = 'payments:write'
/**
 * How many payments a member decides about at a time, besides the one in the URL. Each payment without a checkout costs
 * a query for likely checkouts.
 */
const itemsMax = 20
const recentMax = 5

/** Money that completed no checkout: why it did not, and the decisions about it. */
export function mountInbox({ get, post }: StoreRoutes, ctx: Context): void {
  const decide = openDecisions(ctx, (storeId) => forStore(ctx, storeId).db)

  get(path, 'payments:read', async (screen) => {
    const { storeId, ctx: mine } = screen
    const query = queryOf(screen)
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
    const main = renderInbox(screen, {
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
    })
    const [first] = payments
    return screen.send({
      screen: 'inbox',
      title: screen.texts.inbox.title,
      isLive: true,
      main: html`${main}${renderApiLine(
        screen,
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

  post(`${path}/accept`, write, (screen) =>
    answer(screen, async ({ memberCtx, storeId, actor, now, field }, paymentId) => {
      const checkoutId = field('checkoutId')
      const asked = { kind: 'accept', paymentId, checkoutId: checkoutId === '' ? null : checkoutId } as const
      const { isApplied } = await decide(memberCtx, storeId, actor, asked, now)
      return isApplied ? 'accepted' : 'doing'
    }),
  )

  post(`${path}/dismiss`, write, (screen) =>
    answer(screen, async ({ memberCtx, storeId, actor, now, field }, paymentId) => {
      const note = field('note').trim().replaceAll(/\s+/g, ' ')
      const asked = { kind: 'dismiss', paymentId, checkoutId: null, ...(note !== '' && { note }) } as const
      const { isApplied } = await decide(memberCtx, storeId, actor, asked, now)
      return isApplied ? 'dismissed' : 'doing'
    }),
  )
}

type Query = { readonly payment: string; readonly find: string; readonly said: Result | null }

/** An order's id may have 255 characters. */
const findLengthMax = 300

function queryOf({ request, asked, texts }: Screen): Query {
  const { find } = request.query as { find?: unknown }
  const said = asked('said')
  return {
    payment: asked('payment'),
    find: typeof find === 'string' ? find.slice(0, findLengthMax).trim() : '',
    said: hasText(texts.inbox.results, said) ? said : null,
  }
}

/** Goes back to the inbox, which shows the result. */
async function answer(
  screen: Screen,
  work: (screen: Screen, paymentId: string) => Promise<Result>,
): Promise<FastifyReply> {
  const paymentId = screen.field('paymentId')
  const said = await work(screen, paymentId).catch((error: unknown): Result => {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'invalid_request') return 'note'
    if (!hasText(screen.texts.inbox.results, error.code)) throw error
    return error.code
  })
  return screen.go(`/inbox?${new URLSearchParams({ payment: paymentId.slice(0, 40), said })}`)
}
