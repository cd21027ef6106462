import { listPayments } from '../../../checkouts/payments/list.ts'
import { listWithReceived, readCheckouts } from '../../../checkouts/read.ts'
import { readCheckout } from '../../../checkouts/rows.ts'
import type { Context } from '../../../context.ts'
import { readPayment } from '../../../payments/credits/store-payments.ts'
import { sumReturned } from '../../../refunds/rows.ts'
import { html } from '../../page/html.ts'
import { letPause } from '../../server.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { exportRows, openExports } from './export.ts'
import { checkoutQueryOf, type ListQuery, paymentQueryOf, readQuery, rowsPerPage } from './query.ts'
import { mainOf, type PaymentList, renderList } from './view.ts'

const path = '/payments'

/** What is owed and what came: the list, its search and its export. */
export function mountPayments({ get }: StoreRoutes, ctx: Context): void {
  const startExport = openExports()

  get(path, 'payments:read', async (screen) => {
    const { storeId, ctx: mine } = screen
    const query = readQuery(screen)
    const { search } = query
    const found =
      search?.kind === 'checkout' && (await readCheckout(mine.db, storeId, search.text))
        ? `checkouts/${search.text}`
        : search?.kind === 'payment' && (await readPayment(mine.db, storeId, search.text))
          ? `payments/${search.text}`
          : null
    if (found) return screen.go(`/${found}`)
    const { timeZone } = screen.locale
    const { rows, nextCursor } = await readShown(mine, query, storeId, timeZone)
    const returned = await sumReturned(mine.db, storeId, paymentIdsOf(rows))
    const shown: PaymentList = { query, rows, nextCursor, returned }
    const line = renderApiLine(screen, { path: apiPathOf(query, timeZone) })
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
    const query = readQuery(screen)
    const by = { memberId: session.member.id, storeId }
    const rows = startExport(by, exportRows(mine, storeId, locale.timeZone, query))
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

async function readShown(
  ctx: Context,
  query: ListQuery,
  storeId: Parameters<typeof readCheckouts>[1],
  timeZone: string,
): Promise<Pick<PaymentList, 'rows' | 'nextCursor'>> {
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

function paymentIdsOf(rows: PaymentList['rows']): string[] {
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
