import assert from 'node:assert/strict'
import { findByNumber } from '../../../checkouts/buyer-receipts/read.ts'
import { listPayments } from '../../../checkouts/payments/list.ts'
import { listWithReceived, readCheckouts } from '../../../checkouts/read.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import type { Context } from '../../../context.ts'
import type { StoreId } from '../../../ids.ts'
import { Refusal } from '../../../members/refusal.ts'
import { readPayment } from '../../../payments/credits/store-payments.ts'
import { findRefund, sumReturned } from '../../../refunds/rows.ts'
import type { Exports } from '../../exports.ts'
import { html } from '../../page/html.ts'
import { letPause } from '../../server.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { exportRows } from './export.ts'
import { checkoutQueryOf, type ListQuery, paymentQueryOf, readQueries, rowsPerPage } from './query.ts'
import type { Search } from './search.ts'
import { mainOf, type PaymentList, renderList } from './view.ts'

const path = '/payments'

/** What is owed and what came: the list, its search and its export. */
export function mountPayments({ get }: StoreRoutes, ctx: Context, exports: Exports): void {
  get(path, 'payments:read', async (screen) => {
    const { storeId, ctx: mine } = screen
    const { timeZone } = screen.locale
    const queries = readQueries(screen)
    const named = await findNamed(mine, storeId, queries[0]?.search ?? null)
    if (named) return screen.go(`/${named}`)
    const { query, rows, nextCursor } = await readFirst(mine, queries, storeId, timeZone)
    const returned = await sumReturned(mine.db, storeId, paymentIdsOf(rows))
    const shown: PaymentList = { query, rows, nextCursor, returned }
    const api = apiPathOf(query, rows, timeZone)
    const line = api && renderApiLine(screen, { path: api })
    return screen.send({
      screen: 'payments',
      title: screen.texts.payments.title,
      isLive: true,
      main: html`${renderList(screen, shown)}${line}`,
    })
  })

  // Without HEAD, which would read all rows and send none.
  const sendRows = (screen: Screen) => {
    const { ctx: mine, reply, storeId, session, locale } = screen
    const [query = assert.fail('no query')] = readQueries(screen)
    const by = { id: session.member.id, storeId }
    const rows = exports.start(by, exportRows(exports.inTurn(mine), storeId, locale.timeZone, query))
    if (!rows) throw new Refusal('exports_max')
    // With a filter that hardly anything fits, there may be nothing to send for minutes.
    letPause(reply.raw)
    const name = `${query.show}-${ctx.now().toISOString().slice(0, 10)}.csv`
    return reply
      .headers({
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${name}"`,
        'x-content-type-options': 'nosniff',
      })
      .send(rows)
  }
  get(`${path}/export`, 'payments:read', sendRows, { exposeHeadRoute: false })
}

/** The screen of what an id names. */
async function findNamed(ctx: Context, storeId: StoreId, search: Search | null): Promise<string | null> {
  switch (search?.kind) {
    case 'checkout':
      return (await readCheckout(ctx.db, storeId, search.id)) && `checkouts/${search.id}`
    case 'payment':
      return (await readPayment(ctx.db, storeId, search.id)) && `payments/${search.id}`
    case 'refund':
      return (await findRefund(ctx.db, storeId, search.id)) && `refunds/${search.id}`
    case 'receipt': {
      const id = await findByNumber(ctx.db, storeId, search.number)
      return id !== null && (await readCheckout(ctx.db, storeId, id)) ? `checkouts/${id}` : null
    }
    default:
      return null
  }
}

/** The first way to read a search that finds something; if none does, the first that could still look further back. */
async function readFirst(
  ctx: Context,
  queries: readonly ListQuery[],
  storeId: StoreId,
  timeZone: string,
): Promise<Pick<PaymentList, 'query' | 'rows' | 'nextCursor'>> {
  const read: Pick<PaymentList, 'query' | 'rows' | 'nextCursor'>[] = []
  for (const query of queries) {
    const shown = { query, ...(await readShown(ctx, query, storeId, timeZone)) }
    const { rows } = shown
    if (('money' in rows ? rows.money : rows.checkouts).length > 0) return shown
    read.push(shown)
  }
  return read.find(({ nextCursor }) => nextCursor !== null) ?? read[0] ?? assert.fail('no query')
}

async function readShown(
  ctx: Context,
  query: ListQuery,
  storeId: StoreId,
  timeZone: string,
): Promise<Pick<PaymentList, 'rows' | 'nextCursor'>> {
  // An id that is not there: nothing is like it.
  if (isIdKind(query.search)) return { rows: { checkouts: [] }, nextCursor: null }
  if (query.show === 'checkouts') {
    const asked = { ...checkoutQueryOf(query, timeZone), limit: rowsPerPage }
    const { data, nextCursor } = await listWithReceived(ctx, storeId, asked)
    return { rows: { checkouts: data }, nextCursor }
  }
  const asked = { ...paymentQueryOf(query, timeZone), limit: rowsPerPage }
  const { data, nextCursor } = await listPayments(ctx, storeId, asked)
  const ids = data.flatMap(({ checkoutId }) => checkoutId ?? [])
  const of = ids.length > 0 ? await readCheckouts(ctx.db, storeId, ids) : new Map()
  return { rows: { money: data, of }, nextCursor }
}

function paymentIdsOf(rows: PaymentList['rows']): string[] {
  if ('money' in rows) return rows.money.map(({ id }) => id)
  return rows.checkouts.flatMap(({ received }) => mainOf(received)?.paymentId ?? [])
}

function isIdKind(search: Search | null): boolean {
  return ['checkout', 'payment', 'refund', 'receipt'].includes(search?.kind ?? '')
}

/** The API's request for the same list; null if it has none: only people guess what they look for. */
function apiPathOf(query: ListQuery, rows: PaymentList['rows'], timeZone: string): string | null {
  const { search } = query
  if (search?.kind === 'words' || search?.kind === 'short' || search?.kind === 'receipt') return null
  if (search?.kind === 'price' && search.currency === null) return null
  if (search && 'id' in search && search.kind !== 'link') return `/${search.kind}s/${search.id}`
  const isMoney = query.show === 'money'
  const { windowRows: _, ...asked } = isMoney
    ? paymentQueryOf(query, timeZone)
    : { ...checkoutQueryOf(query, timeZone), ...orderOf(search, rows) }
  const parameters = Object.entries({ ...asked, limit: String(rowsPerPage) }).flatMap(([name, value]) =>
    value instanceof Date ? [[name, value.toISOString()]] : typeof value === 'string' ? [[name, value]] : [],
  )
  return `/${isMoney ? 'payments' : 'checkouts'}?${new URLSearchParams(parameters)}`
}

/** The order's id as the store writes it. */
function orderOf(search: Search | null, rows: PaymentList['rows']): { orderId?: string } {
  if (search?.kind !== 'order') return {}
  const [first] = 'checkouts' in rows ? rows.checkouts : []
  return { orderId: first?.checkout.orderId ?? search.text }
}
