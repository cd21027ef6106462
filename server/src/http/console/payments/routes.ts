import type { FastifyInstance } from 'fastify'
import { readCheckouts } from '../../../checkouts/list-rows.ts'
import { listPayments } from '../../../checkouts/payments/list.ts'
import { listWithReceived } from '../../../checkouts/read.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import type { Context } from '../../../context.ts'
import { readPayment } from '../../../payments/credits/store-rows.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { html } from '../../page/html.ts'
import { letPause } from '../../unread.ts'
import { sendPage } from '../document.ts'
import { localeOf } from '../formats.ts'
import { renderApiLine } from '../parts.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, sessionOf, storeOf } from '../visitor.ts'
import { exportRows } from './export.ts'
import { renderList, type Shown } from './list.ts'
import { checkoutQueryOf, type ListQuery, paymentQueryOf, readQuery, rowsPerPage } from './query.ts'
import { mainOf } from './received.ts'
import { openExports } from './running-exports.ts'

const path = '/stores/:storeId/payments'
const reading = { config: { right: 'payments:read' } } as const

/** What is owed and what came: the list, its search and its export. */
export function mountPayments(scope: FastifyInstance, ctx: Context): void {
  const startExport = openExports()

  scope.get(path, reading, async (request, reply) => {
    const { storeId } = storeOf(request)
    const mine = forStore(ctx, storeId)
    const query = readQuery(request)
    const { search } = query
    const found =
      search?.kind === 'checkout' && (await readCheckout(mine.db, storeId, search.text))
        ? `checkouts/${search.text}`
        : search?.kind === 'payment' && (await readPayment(mine.db, storeId, search.text))
          ? `payments/${search.text}`
          : null
    if (found) return reply.code(303).header('location', `/stores/${storeId}/${found}`).send()
    const locale = localeOf(request)
    const { rows, nextCursor } = await readShown(mine, query, storeId, locale.timeZone)
    const returned = await sumReturned(mine.db, storeId, paymentIdsOf(rows))
    const shown: Shown = { query, rows, nextCursor, returned, locale, now: ctx.now() }
    return sendPage(ctx, request, reply, {
      screen: 'payments',
      title: textsOf(request).payments.title,
      isLive: true,
      main: html`${renderList(request, shown)}${renderApiLine({ ctx, texts: textsOf(request) }, { path: apiPathOf(query, locale.timeZone) })}`,
    })
  })

  // Without HEAD, which would read all rows and send none.
  scope.get(`${path}/export`, { ...reading, exposeHeadRoute: false }, async (request, reply) => {
    const { storeId } = storeOf(request)
    const query = readQuery(request)
    const { timeZone } = localeOf(request)
    const by = { memberId: sessionOf(request).member.id, storeId }
    const rows = startExport(by, exportRows(forStore(ctx, storeId), storeId, timeZone, query))
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
  })
}

async function readShown(
  ctx: Context,
  query: ListQuery,
  storeId: Parameters<typeof readCheckouts>[1],
  timeZone: string,
): Promise<Pick<Shown, 'rows' | 'nextCursor'>> {
  // An id that is not there: nothing is like it.
  if (query.search?.kind === 'checkout' || query.search?.kind === 'payment')
    return { rows: { checkouts: [] }, nextCursor: null }
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

function paymentIdsOf(rows: Shown['rows']): string[] {
  if ('money' in rows) return rows.money.map(({ id }) => id)
  return rows.checkouts.flatMap(({ received }) => mainOf(received)?.paymentId ?? [])
}

/** The API's request for the same list. */
function apiPathOf(query: ListQuery, timeZone: string): string {
  const { search } = query
  if (search?.kind === 'checkout') return `/checkouts/${search.text}`
  if (search?.kind === 'payment') return `/payments/${search.text}`
  const isMoney = query.show === 'money'
  const asked = isMoney ? paymentQueryOf(query, timeZone) : checkoutQueryOf(query, timeZone)
  const parameters = Object.entries({ ...asked, limit: String(rowsPerPage) }).flatMap(([name, value]) =>
    value === null || value === undefined
      ? []
      : [[name, value instanceof Date ? value.toISOString() : value]],
  )
  return `/${isMoney ? 'payments' : 'checkouts'}?${new URLSearchParams(parameters)}`
}
