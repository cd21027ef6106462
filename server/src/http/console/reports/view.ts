import { tokenOf } from '../../../movements/fields.ts'
import type { Mapping } from '../../../movements/mappings.ts'
import { daysOf } from '../../../movements/month.ts'
import { movementTypes, signedText } from '../../../movements/movement.ts'
import { type DaySum, type Totals, type TypeSum, totalsOf } from '../../../movements/statement.ts'
import type { Store } from '../../../stores/store.ts'
import { addDays, localTime } from '../../../zone.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { type Locale, showCount, showRounded } from '../formats.ts'
import { renderChart } from '../home/chart.ts'
import { renderChooser, renderHead, renderLedger } from '../parts.ts'
import type { Screen } from '../screen.ts'

/** A month of the store's books. */
export type MonthReport = {
  readonly store: Store
  readonly zone: string
  readonly month: string
  /** Those that people can choose from, the newest first. */
  readonly months: readonly string[]
  /** It is over, so nothing comes to it any more. */
  readonly isClosed: boolean
  readonly types: readonly TypeSum[]
  readonly days: readonly DaySum[]
  /** The store's own formats. */
  readonly mappings: readonly Mapping[]
  /** The store has no books yet. */
  readonly isEmpty: boolean
}

export const files = ['spreadsheet', 'bank', 'movements'] as const
export type Files = (typeof files)[number]

export function renderReport(screen: Screen, report: MonthReport): Html {
  const { base, locale } = screen
  const texts = screen.texts.reports
  const { month, months, isClosed, days } = report
  const choices = months.map((each): [string, string] => [each, showMonth(locale, each)])
  const head = renderHead(texts.title, { about: texts.about })
  if (report.isEmpty)
    return html`${head}<section class="pane empty"><h2>${texts.empty}</h2>
<p class="soft">${texts.emptyAbout}</p></section>`
  const state = fill(isClosed ? texts.closed : texts.running, { month: showMonth(locale, month) })
  const list = [
    ...files.map((file) => renderFile(screen, file, month)),
    ...report.mappings.map((mapping) => renderMapping(screen, mapping, month)),
  ]
  const toMapping =
    screen.may('payments:write') &&
    html`<li><a href="${base}/reports/mapping">${texts.mappings.make}</a></li>`
  return html`${head}
<form class="pane find" method="get">${renderChooser(texts.month, 'month', month, choices)}
<button class="quiet">${texts.show}</button></form>
<section class="pane"><p>${state}</p>${renderTotals(screen, totalsOf(days))}${renderUnvalued(screen, report)}</section>
<div class="split"><section class="pane">${renderDays(screen, report)}</section>
<section class="facts"><h2>${texts.take}</h2>
<p><a class="button" href="${base}/reports/statement?month=${month}">${texts.toStatement}</a></p>
<ul class="list">${list}${toMapping}
<li><a href="${base}/reports/audit">${texts.toAudit}</a></li></ul></section></div>
${renderTypes(screen, report)}`
}

export function showMonth({ tag }: Locale, month: string): string {
  const form = new Intl.DateTimeFormat(tag, { month: 'long', year: 'numeric', timeZone: 'UTC' })
  return form.format(new Date(`${month}-01T12:00:00Z`))
}

export function showValue(locale: Locale, millionths: bigint, currency: string): string {
  return showRounded(locale, signedText(millionths, 6), currency)
}

function showSigned(locale: Locale, of: Token, units: bigint): string {
  return `${showAmount(locale, of, units)} ${tokenOf(of).symbol}`
}

type Token = Pick<TypeSum, 'network' | 'asset'>

/** An amount under a heading that names the token. */
export function showAmount({ tag }: Locale, of: Token, units: bigint): string {
  const text = signedText(units, tokenOf(of).decimals)
  const digits = text.split('.')[1]?.length ?? 0
  const form = new Intl.NumberFormat(tag, { minimumFractionDigits: digits, maximumFractionDigits: digits })
  // As text, so that no digit is lost to a float.
  return form.format(text as unknown as number)
}

export function renderTotals({ locale, texts: { reports: texts } }: Screen, totals: readonly Totals[]): Html {
  if (totals.length === 0) return html`<p class="soft">${texts.nothing}</p>`
  const figure = (name: string, value: string) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`
  return html`${totals.map(
    ({ currency, payments, gross, refunds, net }) => html`<dl class="figures">
${figure(texts.gross, showValue(locale, gross, currency))}
${figure(texts.refunds, showValue(locale, refunds, currency))}
${figure(texts.net, showValue(locale, net, currency))}
${figure(texts.payments, showCount(locale, payments))}</dl>`,
  )}`
}

/** Money for whose day there was no reliable rate is in no sum. */
export function renderUnvalued(
  { locale, texts: { reports: texts } }: Screen,
  { types }: Pick<MonthReport, 'types'>,
): Html | null {
  const left = types.filter(({ unvalued }) => unvalued !== 0n)
  if (left.length === 0) return null
  const amounts = left.map((sum) => showSigned(locale, sum, sum.unvalued)).join(', ')
  return html`<p><small>${fill(texts.unvalued, { amounts })}</small></p>`
}

function renderFile({ base, texts: { reports: texts } }: Screen, file: Files, month: string): Html {
  const { title, about } = texts.files[file]
  const query = `${base}/reports/export?month=${month}&file=${file}`
  const more = file === 'bank' ? null : html` · <a href="${query}&details=yes">${texts.withDetails}</a>`
  return html`<li><div><a href="${query}" download>${title}</a>${more}<br><small>${about}</small></div></li>`
}

function renderMapping(screen: Screen, { place, name }: Mapping, month: string): Html {
  const { base, texts } = screen
  const { about, change } = texts.reports.mappings
  const file = `${base}/reports/export?month=${month}&mapping=${place}`
  const form = `${base}/reports/mapping?place=${place}`
  const more = screen.may('payments:write') && html` · <a href="${form}">${change}</a>`
  return html`<li><div><a href="${file}" download><bdi>${name}</bdi></a>${more}<br><small>${about}</small></div></li>`
}

function renderDays(
  { locale, now, texts: { reports: texts } }: Screen,
  { month, days, store, zone }: MonthReport,
): Html {
  const currency = store.reportCurrency
  const { to: last } = daysOf(month)
  const byDay = new Map(days.filter((each) => each.currency === currency).map((each) => [each.day, each]))
  const all = Array.from({ length: Number.parseInt(last.slice(-2), 10) }, (_, i) => addDays(`${month}-01`, i))
  const gross = (day: string) => {
    const sum = byDay.get(day)?.gross ?? 0n
    return sum > 0n ? sum : 0n
  }
  const compact = new Intl.NumberFormat(locale.tag, {
    ...{ style: 'currency', currency, notation: 'compact' },
    ...{ maximumFractionDigits: 1, minimumFractionDigits: 0 },
  })
  const bars = all.map((day) => ({ day, to: day, amount: gross(day), beforeDay: null, before: null }))
  const chart = renderChart(bars, localTime(now, zone).day, {
    about: fill(texts.chartAbout, { month: showMonth(locale, month) }),
    axis: (amount) => compact.format(amount),
    label: (day) => String(Number.parseInt(day.slice(-2), 10)),
    hover: (day, _, amount) => `${day}: ${showValue(locale, amount, currency)}`,
  })
  return html`<h2>${texts.perDay}</h2>${chart}`
}

export function renderTypes(
  { locale, texts: { reports: texts } }: Screen,
  { types }: Pick<MonthReport, 'types'>,
): Html | null {
  if (types.length === 0) return null
  const inOrder = types.toSorted((a, b) => movementTypes.indexOf(a.type) - movementTypes.indexOf(b.type))
  const rows = inOrder.map(
    (sum) => html`<tr><td>${texts.types[sum.type]}</td>
<td>${tokenOf(sum).symbol}, ${tokenOf(sum).networkName}</td>
<td class="num">${showCount(locale, sum.lines)}</td>
<td class="num">${showSigned(locale, sum, sum.amount)}</td>
<td class="num">${showValue(locale, sum.value, sum.currency)}</td></tr>
`,
  )
  const columns = [
    texts.what,
    texts.token,
    { number: texts.lines },
    { number: texts.amount },
    { number: texts.value },
  ]
  return html`<section class="pane"><h2>${texts.inIt}</h2>
<p class="soft">${texts.inItAbout}</p></section>${renderLedger(columns, rows, texts.inIt)}`
}
