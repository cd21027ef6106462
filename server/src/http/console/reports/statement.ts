import { toShown } from '../../../chains/families.ts'
import { numberText } from '../../../checkouts/buyer-receipts/receipt.ts'
import { tokenOf } from '../../../movements/fields.ts'
import { type PaidInvoice, type ReceiptRun, totalsOf, type WalletSum } from '../../../movements/statement.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showCount, showExactTime, showFours, showMoney, showTime } from '../formats.ts'
import { renderLedger } from '../parts.ts'
import type { Screen } from '../screen.ts'
import {
  type MonthReport,
  renderTotals,
  renderTypes,
  renderUnvalued,
  showAmount,
  showMonth,
  showValue,
} from './view.ts'

type Statement = MonthReport & {
  readonly wallets: readonly WalletSum[]
  readonly receipts: readonly ReceiptRun[]
  readonly invoices: readonly PaidInvoice[]
  /** As of now. */
  readonly open: { readonly undecided: number; readonly refunds: number }
}

/** A month as it is printed and handed on. What only serves the screen is left out on paper. */
export function renderStatement(screen: Screen, statement: Statement): Html {
  const { base, locale, now } = screen
  const texts = screen.texts.reports.statement
  const { month, store, isClosed, days } = statement
  const title = fill(texts.heading, { month: showMonth(locale, month) })
  const state = isClosed ? texts.final : texts.preliminary
  return html`<article class="statement"><div class="head plain"><div>
<p class="soft screen-only"><a href="${base}/reports?month=${month}">${screen.texts.reports.title}</a></p>
<h1>${title}</h1>${renderSeller(statement)}
<p class="soft">${fill(state, { time: showExactTime(locale, now), zone: store.timeZone })}</p></div>
<p class="screen-only"><button type="button" data-print>${texts.print}</button></p></div>
<section class="pane"><h2>${texts.totals}</h2>${renderTotals(screen, totalsOf(days))}
${renderUnvalued(screen, statement)}<p class="soft">${texts.fees}</p></section>
${renderWallets(screen, statement.wallets)}
${renderTypes(screen, statement)}
${renderSales(screen, statement)}
${renderReceipts(screen, statement.receipts)}
${renderInvoices(screen, statement.invoices)}
<section class="pane"><h2>${texts.open}</h2><p>${fill(texts.openItems, {
    undecided: showCount(locale, statement.open.undecided),
    refunds: showCount(locale, statement.open.refunds),
    time: showTime(locale, now, now),
  })}</p></section></article>`
}

function renderSeller({ store }: MonthReport): Html {
  const { name, legalName, legalAddress, taxId } = store
  const lines = [legalName ?? name, ...(legalAddress?.split('\n') ?? []), ...(taxId === null ? [] : [taxId])]
  return html`<p class="seller">${lines.map((line, place) => html`${place > 0 && html`<br>`}<bdi>${line}</bdi>`)}</p>`
}

function renderWallets({ locale, texts }: Screen, wallets: readonly WalletSum[]): Html | null {
  const { statement } = texts.reports
  if (wallets.length === 0) return null
  const rows = wallets.map((sum) => {
    const { symbol, networkName } = tokenOf(sum)
    const amount = (units: bigint) => showAmount(locale, sum, units)
    const address = showFours(toShown(sum.network, sum.wallet))
    return html`<tr><td class="wraps">${address}<br>${symbol}, ${networkName}</td>
<td class="num">${amount(sum.opening)}</td><td class="num">${amount(sum.received + sum.reversed)}</td>
<td class="num">${amount(sum.refunded)}</td><td class="num">${amount(sum.closing)}</td></tr>
`
  })
  const number = (text: string) => ({ number: text })
  const { wallet, opening, received, refunded, closing } = statement
  const columns = [wallet, ...[opening, received, refunded, closing].map(number)]
  return html`<section class="pane"><h2>${statement.wallets}</h2>
<p class="soft">${statement.walletsAbout}</p></section>${renderLedger(columns, rows, statement.wallets)}`
}

function renderSales({ locale, texts: { reports: texts } }: Screen, { days }: MonthReport): Html | null {
  if (days.length === 0) return null
  const rows = days.map(
    ({ day, currency, payments, gross, refunds }) => html`<tr><td>${day}</td>
<td class="num">${showCount(locale, payments)}</td><td class="num">${showValue(locale, gross, currency)}</td>
<td class="num">${showValue(locale, refunds, currency)}</td>
<td class="num">${showValue(locale, gross + refunds, currency)}</td></tr>
`,
  )
  const number = (text: string) => ({ number: text })
  const columns = [texts.day, ...[texts.payments, texts.gross, texts.refunds, texts.net].map(number)]
  return html`<section class="pane"><h2>${texts.perDay}</h2>
<p class="soft">${texts.statement.rounded}</p></section>${renderLedger(columns, rows, texts.perDay)}`
}

function renderReceipts({ locale, texts: { reports } }: Screen, runs: readonly ReceiptRun[]): Html | null {
  const texts = reports.statement
  if (runs.length === 0) return null
  const line = ({ series, year, first, last, count, void: gone }: ReceiptRun) => {
    const text = (number: number) => numberText({ series, year, number })
    const said = fill(texts.receiptRun, {
      first: text(first),
      last: text(last),
      count: showCount(locale, count),
    })
    return html`<li>${said}${
      gone.length > 0 && html` ${fill(texts.receiptsVoid, { numbers: gone.map(text).join(', ') })}`
    }</li>`
  }
  return html`<section class="pane"><h2>${texts.receipts}</h2><ul class="list">${runs.map(line)}</ul></section>`
}

function renderInvoices(
  { locale, now, texts: { reports } }: Screen,
  invoices: readonly PaidInvoice[],
): Html | null {
  const texts = reports.statement
  if (invoices.length === 0) return null
  const rows = invoices.map(
    ({ number, paidAt, priceAmount, priceCurrency }) => html`<tr><td><bdi>${number}</bdi></td>
<td>${showTime(locale, paidAt, now)}</td>
<td class="num">${showMoney(locale, priceAmount, priceCurrency)}</td></tr>
`,
  )
  const columns = [texts.invoice, texts.paidOn, { number: reports.amount }]
  return html`<section class="pane"><h2>${texts.invoices}</h2></section>${renderLedger(columns, rows, texts.invoices)}`
}
