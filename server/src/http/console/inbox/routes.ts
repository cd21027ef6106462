import type { FastifyReply } from 'fastify'
import {
  type Held,
  holdDecision,
  holdDismissals,
  listHeld,
  togetherMax,
  undoDecisions,
} from '../../../checkouts/payments/hold-decision.ts'
import { listLikely, readOwed } from '../../../checkouts/payments/likely.ts'
import { findUnpaid } from '../../../checkouts/read.ts'
import { lookBack } from '../../../events/read.ts'
import { isId } from '../../../ids.ts'
import { networks } from '../../../networks.ts'
import {
  countUndecided,
  listUndecided,
  readPayments,
  readUndecided,
  type StorePayment,
} from '../../../payments/credits/store-payments.ts'
import { Problem } from '../../../problems.ts'
import { html } from '../../page/html.ts'
import { renderApiLine } from '../parts.ts'
import { type Screen, type StoreRoutes, withQuery } from '../screen.ts'
import { hasText } from '../texts/choose.ts'
import { type Inbox, type InboxQuery, kinds, type Result, renderInbox } from './view.ts'

const path = '/inbox'
const write = 'payments:write'
/**
 * How many payments a member decides about at a time, besides the one in the URL. Each payment without a checkout costs
 * a query for likely checkouts.
 */
const itemsMax = 20
const recentMax = 5
/** How soon a screen with a decision that waits looks again: twice while it can be undone. */
const lookAgainSeconds = 5
/** How many payments of each kind are read for a filter, which no index covers. */
const filteredRows = 1_000

/** Money that completed no checkout: why it did not, and the decisions about it. */
export function mountInbox({ get, post }: StoreRoutes): void {
  get(path, 'payments:read', async (screen) => {
    const inbox = await readInbox(screen)
    const isWaiting = inbox.items.some(({ held }) => held?.state === 'waiting')
    const first = inbox.items.find(({ held }) => held?.state !== 'waiting')?.payment
    return screen.send({
      screen: 'inbox',
      title: screen.texts.inbox.title,
      isLive: true,
      // What is undone or refused writes no event that would load the screen again.
      againSeconds: isWaiting ? lookAgainSeconds : null,
      main: html`${renderInbox(screen, inbox)}${renderApiLine(
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

  post(`${path}/accept`, write, (screen) => decide(screen, 'accept'))
  post(`${path}/dismiss`, write, (screen) => decide(screen, 'dismiss'))

  post(`${path}/dismiss-all`, write, (screen) =>
    answer(screen, '', async () => {
      const { ctx, memberCtx, storeId, actor, session, now } = screen
      // Only what the member saw: not what came since.
      const newest = screen.field('newest')
      if (!isId('pay', newest)) return 'not_found'
      const filter = filterOf(screen, screen.field)
      // The form is offered for a filter alone. One that is no longer known would put aside everything.
      if (filter.disposition === null && filter.network === null) return 'not_found'
      const shown = { ...filter, before: `${newest}~` }
      const { rows } = await listUndecided(ctx.db, storeId, togetherMax, shown, filteredRows)
      const paymentIds = rows.filter(({ mayDecide }) => mayDecide).map(({ paymentId }) => paymentId)
      const by = { actor, sessionId: session.id }
      await holdDismissals(memberCtx, storeId, by, { paymentIds, note: null }, now)
      return null
    }),
  )

  post(`${path}/undo`, write, (screen) =>
    answer(screen, screen.field('paymentId'), async () => {
      const [together, paymentId] = [screen.field('together'), screen.field('paymentId')]
      return await undoDecisions(screen.memberCtx, screen.storeId, { together, paymentId })
    }),
  )
}

async function decide(screen: Screen, kind: 'accept' | 'dismiss'): Promise<FastifyReply> {
  const { memberCtx, storeId, actor, session, now, field } = screen
  const paymentId = field('paymentId')
  return await answer(screen, paymentId, async () => {
    const [checkoutId, note] = [field('checkoutId'), field('note').trim().replaceAll(/\s+/g, ' ')]
    const asked = {
      ...{ kind, paymentId },
      checkoutId: checkoutId === '' ? null : checkoutId,
      note: note === '' ? null : note,
    }
    const whose = await holdDecision(memberCtx, storeId, { actor, sessionId: session.id }, asked, now)
    return whose === 'theirs' ? 'theirs' : null
  })
}

async function readInbox(screen: Screen): Promise<Inbox> {
  const { storeId, ctx } = screen
  const { db } = ctx
  const query = queryOf(screen)
  const filter = { ...query, before: query.before === '' ? 'pay~' : query.before }
  const isNarrow = query.disposition !== null || query.network !== null
  const window = isNarrow ? filteredRows : undefined
  const log = { type: 'payment.*', checkoutId: null, actor: null, isByActor: true } as const
  const [listed, named, held, count, { events }] = await Promise.all([
    listUndecided(db, storeId, itemsMax, filter, window),
    readUndecided(db, storeId, query.payment),
    listHeld(db, storeId),
    isNarrow ? countUndecided(db, storeId, togetherMax + 1, filter, window) : 0,
    lookBack(ctx, storeId, log, { to: null, limit: recentMax }),
  ])
  const open = withPayment(listed.rows, named)
  const shown = new Set(open.map(({ paymentId }) => paymentId))
  const { done, gone } = await readDone(screen, [...held.values()], {
    isShown: (paymentId) => shown.has(paymentId),
    isOnPage: (id) => id < filter.before && (listed.before === null || id >= listed.before),
  })
  const payments = [...open, ...done.filter((payment) => isOfKind(payment, query))].toSorted((a, b) =>
    a.paymentId < b.paymentId ? 1 : -1,
  )
  const isFinding = named !== null && query.find !== ''
  const undecided = payments.filter(({ paymentId }) => held.get(paymentId)?.state !== 'waiting')
  const unknown = undecided.filter(({ checkoutId, acceptedAt }) => checkoutId === null && acceptedAt === null)
  const [owed, found, ...likely] = await Promise.all([
    readOwed(db, storeId, payments),
    isFinding ? findUnpaid(ctx, storeId, query.find) : null,
    ...unknown.map((payment) => listLikely(db, storeId, ctx.config.cell, payment)),
  ])
  const likelyOf = new Map(unknown.map(({ paymentId }, place) => [paymentId, likely[place]]))
  return {
    items: payments.map((payment) => ({
      payment,
      held: held.get(payment.paymentId) ?? null,
      owed: owed.get(payment.paymentId) ?? null,
      likely: likelyOf.get(payment.paymentId) ?? [],
      search: payment === named && found ? { text: query.find, found } : null,
    })),
    ...{ gone, query, count, before: listed.before, recent: events },
  }
}

/**
 * Payments that need no decision any more, of those that were decided lately. They stay where they were, so that nothing
 * moves up under the pointer. `gone`: decisions that were refused, about payments that the network took back.
 */
async function readDone(
  { ctx: { db }, storeId }: Screen,
  held: readonly Held[],
  is: { readonly isShown: (paymentId: string) => boolean; readonly isOnPage: (paymentId: string) => boolean },
): Promise<{ readonly done: readonly StorePayment[]; readonly gone: readonly Held[] }> {
  const newest = (ids: readonly string[]) => ids.toSorted().slice(-itemsMax)
  const others = held.filter(({ paymentId }) => !is.isShown(paymentId))
  const refused = newest(others.flatMap(({ paymentId, state }) => (state === 'refused' ? paymentId : [])))
  const wanted = others.filter(({ paymentId, isOld }) => is.isOnPage(paymentId) && !isOld)
  const decided = newest(wanted.map(({ paymentId }) => paymentId))
  const read = await readPayments(db, storeId, [...new Set([...refused, ...decided])])
  const known = new Set(read.map(({ paymentId }) => paymentId))
  return {
    done: read.filter(({ paymentId }) => decided.includes(paymentId)),
    gone: others.filter(({ paymentId }) => refused.includes(paymentId) && !known.has(paymentId)),
  }
}

/** Whether a payment that is decided was in the list. What was accepted for a checkout is unmatched no longer. */
function isOfKind(payment: StorePayment, { disposition, network }: InboxQuery): boolean {
  const isKind = disposition === null || payment.disposition === disposition
  return (
    (isKind || (disposition === 'unmatched' && payment.acceptedAt !== null)) &&
    (network === null || payment.network === network)
  )
}

/** The list with the payment that the URL names, even if that is on another page. */
function withPayment(rows: readonly StorePayment[], named: StorePayment | null): readonly StorePayment[] {
  if (!named) return rows
  return [named, ...rows.filter(({ paymentId }) => paymentId !== named.paymentId)]
}

/** An order's id may have 255 characters. */
const findLengthMax = 300

function queryOf(screen: Screen): InboxQuery {
  const { request, asked, texts } = screen
  const { find } = request.query as { find?: unknown }
  const said = asked('said')
  return {
    ...filterOf(screen, asked),
    payment: asked('payment'),
    before: asked('before'),
    find: typeof find === 'string' ? find.slice(0, findLengthMax).trim() : '',
    said: hasText(texts.inbox.results, said) ? said : null,
    // A screen that loads itself again unfolds nothing by itself.
    isRefresh: request.headers['x-refresh'] !== undefined,
  }
}

function filterOf({ store }: Screen, read: (name: string) => string) {
  const network = networks.find(({ caip2, mode }) => mode === store.mode && caip2 === read('network'))
  return {
    disposition: kinds.find((kind) => kind === read('kind')) ?? null,
    network: network?.caip2 ?? null,
  }
}

/** Goes back to the inbox: to the payment, which shows what was decided, or to the sentence that says what went wrong. */
async function answer(
  screen: Screen,
  paymentId: string,
  work: () => Promise<Result | null>,
): Promise<FastifyReply> {
  const said = await work().catch((error: unknown): Result => {
    if (!(error instanceof Problem)) throw error
    if (error.code === 'invalid_request') return 'note'
    if (!hasText(screen.texts.inbox.results, error.code)) throw error
    return error.code
  })
  const { disposition, network } = filterOf(screen, screen.field)
  const [payment, before] = [paymentId.slice(0, 40), screen.field('before').slice(0, 40)]
  const to = withQuery('/inbox', { kind: disposition, network, before, payment, said })
  return screen.go(said === null && isId('pay', payment) ? `${to}#${payment}` : to)
}
