import type { FastifyReply } from 'fastify'
import { Refusal } from '../../../members/refusal.ts'
import { openBankWriter } from '../../../movements/bank.ts'
import { type Book, openBook, openExport, openWrittenBook } from '../../../movements/export.ts'
import { addDetails, openWriter, spreadsheet, standard } from '../../../movements/formats.ts'
import { formatOf, listMappings, hasDetails as needsDetails } from '../../../movements/mappings.ts'
import { daysOf, isMonth, monthOf, monthRange } from '../../../movements/month.ts'
import { closeRange, findFirstBooked } from '../../../movements/rows.ts'
import { listPaidInvoices, readDaySums, readReceipts, readWallets } from '../../../movements/statement.ts'
import { countUndecided } from '../../../payments/credits/store-payments.ts'
import { countForStore } from '../../../refunds/read.ts'
import { readStore } from '../../../stores/rows.ts'
import { addMonths, knownZone } from '../../../zone.ts'
import type { Exports } from '../../exports.ts'
import { html } from '../../page/html.ts'
import { letPause } from '../../server.ts'
import { renderApiLine } from '../parts.ts'
import type { Screen, StoreRoutes } from '../screen.ts'
import { mountMappings, readMapping } from './mappings.ts'
import { renderStatement } from './statement.ts'
import { type Files, files, type MonthReport, renderReport } from './view.ts'

const path = '/reports'
const reading = 'payments:read'

/** Ten years: the longest that anybody has to keep books. */
const monthsMax = 120

/** Beyond this many it is enough to know that there are many. */
const undecidedMax = 1_000

/** The store's books: a month's sums, its files, and its statement on paper. */
export function mountReports(routes: StoreRoutes, exports: Exports): void {
  const { get } = routes
  mountMappings(routes)
  get(path, reading, async (screen) => {
    const report = await readReport(screen)
    const main = renderReport(screen, report)
    const line = renderApiLine(screen, { path: `/movements?month=${report.month}` })
    return screen.send({ screen: 'reports', title: screen.texts.reports.title, main: html`${main}${line}` })
  })

  get(`${path}/statement`, reading, async (screen) => {
    const report = await readReport(screen)
    const { month, zone, store } = report
    const range = monthRange(month, zone)
    const { db } = screen.ctx
    const days = daysOf(month)
    const [wallets, receipts, invoices, undecided, refunds] = await Promise.all([
      readWallets(db, store.id, range),
      readReceipts(db, store.id, days),
      listPaidInvoices(db, store.id, range),
      countUndecided(db, store.id, undecidedMax),
      countForStore(db, store.id),
    ])
    const statement = { ...report, wallets, receipts, invoices, open: { undecided, refunds } }
    return screen.send({
      screen: 'reports',
      title: screen.texts.reports.statement.title,
      main: renderStatement(screen, statement),
    })
  })

  // Without HEAD, which would read all lines and send none.
  get(`${path}/export`, reading, (screen) => sendFile(screen, exports), { exposeHeadRoute: false })
}

async function readReport(screen: Screen): Promise<MonthReport> {
  const { ctx, storeId, now } = screen
  const store = await readStore(ctx.db, storeId)
  if (!store) throw new Refusal('not_found')
  const zone = knownZone(store.timeZone)
  const current = monthOf(now, zone)
  const asked = screen.asked('month')
  const first = await findFirstBooked(ctx.db, storeId)
  const months = monthsBetween(first === null ? current : monthOf(first, zone), current)
  const month = isMonth(asked) && asked <= current ? asked : current
  const range = monthRange(month, zone)
  const isClosed = await closeRange(ctx.db, storeId, range)
  const { types, days } = await readDaySums(ctx.db, storeId, range, zone)
  const mappings = await listMappings(ctx.db, storeId)
  return { store, zone, month, months, isClosed, types, days, mappings, isEmpty: first === null }
}

/** The newest first. */
function monthsBetween(first: string, last: string): string[] {
  const months = [last]
  while (months.length < monthsMax && (months.at(-1) ?? '') > first)
    months.push(addMonths(months.at(-1) ?? last, -1))
  return months
}

async function sendFile(screen: Screen, exports: Exports): Promise<FastifyReply> {
  const { ctx, reply, storeId, session } = screen
  const store = await readStore(ctx.db, storeId)
  if (!store) throw new Refusal('not_found')
  const zone = knownZone(store.timeZone)
  const asked = screen.asked('month')
  const month = isMonth(asked) ? asked : monthOf(screen.now, zone)
  const own = screen.asked('mapping')
  const mapping = own === '' ? null : await readMapping(screen, own)
  const kind = files.find((each) => each === screen.asked('file')) ?? 'movements'
  const hasDetails = screen.asked('details') === 'yes' && kind !== 'bank'
  const book = mapping
    ? openWrittenBook(openWriter(formatOf(mapping, screen.texts.reports.types), zone), needsDetails(mapping))
    : bookOf(screen, kind, { month, zone, currency: store.reportCurrency, hasDetails })
  const { text } = await openExport(exports.inTurn(ctx), storeId, monthRange(month, zone), book)
  const rows = exports.start({ id: session.member.id, storeId }, text)
  if (!rows) throw new Refusal('exports_max')
  letPause(reply.raw)
  return reply
    .headers({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${mapping ? `mapping-${mapping.place}` : kind}-${month}.csv"`,
      'x-content-type-options': 'nosniff',
    })
    .send(rows)
}

type Wanted = {
  readonly month: string
  readonly zone: string
  readonly currency: string
  readonly hasDetails: boolean
}

function bookOf({ texts, locale }: Screen, kind: Files, wanted: Wanted): Book {
  const { month, zone, currency, hasDetails } = wanted
  const { types, headings, bank } = texts.reports
  switch (kind) {
    case 'movements':
      return hasDetails
        ? openWrittenBook(openWriter(addDetails(standard), zone), true)
        : openBook('csv', zone)
    case 'spreadsheet': {
      const format = spreadsheet({ headings, types }, locale.tag)
      return openWrittenBook(openWriter(hasDetails ? addDetails(format, headings) : format, zone), hasDetails)
    }
    case 'bank': {
      const { date, amount, description, reference, rounding } = bank
      const writer = openBankWriter({
        ...{ currency, zone, words: types, rounding },
        lastDay: daysOf(month).to,
        headings: [date, amount, description, reference],
      })
      return openWrittenBook(writer)
    }
  }
}
