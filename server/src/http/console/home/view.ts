import type { CheckoutPayment, Payment } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import { hasOwnOrder, nameOf } from '../../../checkouts/checkout.ts'
import type { Summary } from '../../../checkouts/read.ts'
import { tokenOf } from '../../../checkouts/rollups/rollup.ts'
import {
  type DayRange,
  type Period,
  periods,
  type Sum,
  type Takings,
} from '../../../checkouts/rollups/takings.ts'
import type { Troubled } from '../../../events/webhooks/endpoints.ts'
import { unitsToText } from '../../../money.ts'
import type { BookSums } from '../../../movements/sums.ts'
import type { StorePayment } from '../../../payments/credits/store-payments.ts'
import type { Store, Wallet } from '../../../stores/store.ts'
import { addDays, knownZone, localTime } from '../../../zone.ts'
import { fill, type Html, html } from '../../page/html.ts'
import {
  type Locale,
  showBriefly,
  showCount,
  showDuration,
  showMoney,
  showRounded,
  showShort,
  showTime,
  showUnits,
} from '../formats.ts'
import { renderApiLine, renderChip, renderHead, type Tone } from '../parts.ts'
import type { Screen } from '../screen.ts'
import { renderStanding } from '../standing.ts'
import type { Texts } from '../texts/choose.ts'
import { renderChart, toNumber } from './chart.ts'

/** What the store took, what waits for a member, and what happened last. */
export type Home = {
  readonly store: Store
  readonly takings: Takings
  /** Of the same days, from the books. */
  readonly books: BookSums
  readonly period: Period | DayRange
  readonly reportCurrency: string
  readonly latest: readonly Latest[]
  readonly undecided: readonly StorePayment[]
  /** Refunds that wait for the store. */
  readonly refunds: number
  /** Differences between the books and the chain that wait for the store. */
  readonly findings: number
  readonly troubled: readonly Troubled[]
  readonly hasWaitingWallet: boolean
  readonly hasWallet: boolean
  /** New checkouts can be paid on one network at least. */
  readonly isPayable: boolean
  /** Wallets in use that the member can prove. */
  readonly unproven: readonly Wallet[]
  /** The member is the only owner and has neither a second passkey nor recovery codes. */
  readonly lacksSpare: boolean
  readonly now: Date
}

/** A payment with its checkout, or a checkout whose payment has not arrived yet. */
export type Latest = {
  readonly state:
    | Exclude<Payment['disposition'], 'exact'>
    | 'paid'
    | 'settling'
    | 'reversed'
    | 'refunded'
    | 'partlyRefunded'
  readonly checkout: Summary | null
  readonly payment: CheckoutPayment | null
  readonly paymentId: string | null
  readonly at: Date
}

/** Beyond this many, and among older payments than this many of a kind, the inbox says what there is. */
export const undecidedMax = 20

/** Texts and formats for the sentences of the screen. */
type Writer = {
  readonly texts: Texts['home']
  readonly locale: Locale
  /** An amount in the store's own currency. */
  money(millionths: bigint): string
  /** Days such as "1–16 October". */
  days(from: string, to: string): string
}

export function renderHome(screen: Screen, home: Home): Html {
  const { base, locale } = screen
  const texts = screen.texts.home
  const money = (millionths: bigint) => showRounded(locale, unitsToText(millionths, 6), home.reportCurrency)
  const thisYear = home.takings.to.slice(0, 4)
  const writer: Writer = { texts, locale, money, days: (from, to) => showDays(locale, from, to, thisYear) }
  const { takings, latest } = home
  const isEmpty = latest.length === 0 && takings.sum.made === 0 && takings.before.sum.made === 0
  if (isEmpty) return renderEmpty(screen, home, writer)
  return html`${renderStanding(screen, home.store)}
<div class="head"><div><h1 class="label">${
    typeof home.period === 'object'
      ? fill(texts.takenOn, { days: writer.days(takings.from, takings.to) })
      : texts.taken[home.period]
  }</h1>
<p class="price">${money(takings.sum.amount)}</p>
<p>${renderComparison(home, writer)}</p>${renderCaveats(home, writer)}</div>
${renderPeriods(home, writer)}</div>
<section class="pane" aria-label="${texts.figures}">${renderFigures(home, writer)}${renderBooks(home, writer)}</section>
<div class="split">${renderNeeds(screen, home, writer)}<section class="pane">${renderDays(home, writer)}</section></div>
<div class="split"><section class="pane">${renderLatest(home, writer, base)}</section>${renderEnded(
    takings.sum,
    writer,
  )}</div>
${renderApiLine(screen, { path: '/payments?limit=6' })}`
}

function renderEmpty(screen: Screen, home: Home, writer: Writer): Html {
  const { base } = screen
  const texts = screen.texts.home
  const mayMake = screen.may('checkouts:write')
  const example = { orderId: 'order-1', priceAmount: '12.50', priceCurrency: home.reportCurrency }
  const line = renderApiLine(screen, { method: 'POST', path: '/checkouts', body: example })
  const next = home.hasWallet
    ? html`<p>${mayMake ? texts.emptyReady : texts.emptyToCome}</p>${
        mayMake && html`<p><a class="button" href="${base}/new">${texts.emptyNew}</a></p>`
      }${line && html`<p>${texts.emptyShop}</p>${line}`}`
    : html`<p>${texts.emptyNoWallet}</p>
<p><a class="button" href="${base}${addPath(screen)}">${texts.emptyWallet}</a></p>`
  const isOpen = home.store.standing === 'approved' || !home.hasWallet
  return html`${renderHead(texts.title)}${renderStanding(screen, home.store)}
<div class="split">${renderNeeds(screen, home, writer)}
<section class="pane"><div class="empty"><h2>${texts.empty}</h2>${
    isOpen ? next : html`<p>${texts.emptyClosed}</p>`
  }</div></section></div>`
}

/** The usual periods, and any other by its first and last day. */
function renderPeriods({ period, takings, store, now }: Home, { texts }: Writer): Html {
  const tab = (query: string, isOn: boolean, text: string) =>
    html`<a href="?${query}"${isOn && html` aria-current="true"`}>${text}</a>`
  const { day: today } = localTime(now, knownZone(store.timeZone))
  const lastDay = addDays(`${today.slice(0, 8)}01`, -1)
  const lastMonth = `from=${lastDay.slice(0, 8)}01&to=${lastDay}`
  const isRange = typeof period === 'object'
  const isLastMonth = isRange && `from=${takings.from}&to=${takings.to}` === lastMonth
  const field = (name: string, label: string, value: string) =>
    html`<label class="field">${label}
<input type="date" name="${name}" value="${value}" max="${today}" required></label>`
  return html`<div><nav class="tabs" aria-label="${texts.period}">${periods.map((each) =>
    tab(`period=${each}`, each === period, texts.periods[each]),
  )}${tab(lastMonth, isLastMonth, texts.lastMonth)}</nav>
<details id="range"${isRange && !isLastMonth && html` open`}><summary>${texts.otherDates}</summary>
<form class="find">${field('from', texts.from, takings.from)}
${field('to', texts.to, takings.to)}<button class="quiet">${texts.show}</button></form></details></div>`
}

/** Where a wallet is added; members who may not do it see there who may. */
function addPath({ may }: Screen): string {
  return may('wallets:write') ? '/wallets/new' : '/wallets'
}

/** "12% more than 1–16 October until this time, which brought $34,180.00". */
function renderComparison({ takings, period }: Home, { texts, locale, money, days }: Writer): Html {
  const { sum, before } = takings
  const span = { days: days(before.from, before.to) }
  const until = typeof period === 'object' ? html`${span.days}` : fill(texts.untilNow[period], span)
  if (before.sum.amount === 0n)
    return html`<span class="soft">${fill(texts.nothingBefore, { days: until })}</span>`
  const share = toNumber(((sum.amount - before.sum.amount) * 1_000_000n) / before.sum.amount)
  const text = share === 0 ? texts.same : share > 0 ? texts.more : texts.less
  const shown = showShare(locale, Math.abs(share))
  const than = fill(texts.than, { days: until, amount: money(before.sum.amount) })
  return html`<span${share > 0 && html` class="up"`}>${fill(text, { share: shown })}</span>
<span class="soft">${than}</span>`
}

/** What the sum does not include. */
function renderCaveats({ takings, reportCurrency }: Home, { texts, locale, money }: Writer): Html {
  const { sum, waiting } = takings
  const amounts = sum.left
    .map(({ units, decimals, symbol }) => showUnits(locale, units, decimals, symbol))
    .join(', ')
  return html`<p><small>${texts.beforeRefunds}</small></p>${
    sum.converted > 0n &&
    html`<p><small>${fill(texts.converted, { amount: money(sum.converted) })}</small></p>`
  }
${amounts !== '' && html`<p><small>${fill(texts.left, { amounts, currency: reportCurrency })}</small></p>`}
${waiting > 0n && html`<p><small>${fill(texts.counting, { count: showCount(locale, waiting) })}</small></p>`}`
}

function renderFigures({ takings }: Home, { texts, locale, money, days }: Writer): Html {
  const { sum, before } = takings
  const than = { days: days(before.from, before.to) }
  const compare = (
    difference: number | bigint,
    more: string,
    less: string,
    show: (by: number | bigint) => string,
  ) => {
    const by = difference < 0 ? -difference : difference
    const text = difference > 0 ? more : difference < 0 ? less : texts.equal
    return html`<dd class="soft">${fill(text, { ...than, amount: show(by) })}</dd>`
  }
  const average =
    sum.average !== null &&
    html`<div><dt>${texts.average}</dt>
<dd>${money(sum.average)}</dd>${
      before.sum.average !== null &&
      compare(sum.average - before.sum.average, texts.countMore, texts.countLess, (by) => money(BigInt(by)))
    }</div>`
  const median =
    sum.medianMs !== null &&
    html`<div><dt>${texts.median}</dt>
<dd>${showDuration(locale, sum.medianMs)}</dd>${
      before.sum.medianMs !== null &&
      compare(seconds(sum.medianMs) - seconds(before.sum.medianMs), texts.slower, texts.quicker, (by) =>
        showDuration(locale, Number.parseInt(`${by}`, 10) * 1_000),
      )
    }</div>`
  return html`<dl class="figures"><div><dt>${texts.payments}</dt>
<dd>${showCount(locale, sum.payments)}</dd>${compare(
    sum.payments - before.sum.payments,
    texts.countMore,
    texts.fewer,
    (by) => showCount(locale, by),
  )}</div>${average}${median}</dl>`
}

/** What of it is final, and what went back. */
function renderBooks({ books, reportCurrency }: Home, { texts, money }: Writer): Html {
  if (books.lines === 0) return html``
  const figure = (name: string, amount: bigint) => html`<div><dt>${name}</dt><dd>${money(amount)}</dd></div>`
  return html`<dl class="figures">${figure(texts.booked, books.gross)}${figure(texts.refunded, books.refunds)}${figure(
    texts.net,
    books.net,
  )}</dl>
<p><small>${texts.bookedAbout}</small></p>${
    books.isPartial && html`<p><small>${fill(texts.bookedPartly, { currency: reportCurrency })}</small></p>`
  }`
}

function seconds(ms: number): number {
  return Math.round(ms / 1_000)
}

function renderDays({ takings, period, reportCurrency, now, store }: Home, writer: Writer): Html {
  const { texts, locale, money, days: showSpan } = writer
  const hasBefore = takings.days.some(({ before }) => (before ?? 0n) > 0n)
  // Marks at zero for a time before the store's first payment would say nothing.
  const days = hasBefore ? takings.days : takings.days.map((each) => ({ ...each, before: null }))
  const [first] = days
  const last = days.at(-1)
  const span = showSpan(first?.day ?? '', last?.day ?? '')
  const best = days.toSorted((a, b) => ((b.amount ?? 0n) > (a.amount ?? 0n) ? 1 : -1))[0]
  const isAnything = best !== undefined && (best.amount ?? 0n) > 0n
  const about = isAnything
    ? fill(texts.chartAbout, {
        days: span,
        day: showSpan(best.day, best.to),
        amount: money(best.amount ?? 0n),
      })
    : fill(texts.chartEmpty, { days: span })
  const isRange = typeof period === 'object'
  const isMonth = period === 'month'
  const byMonth = days.some(({ day, to }) => day !== to)
  const month = (day: string) => formatDay(locale, day, { month: 'long' })
  const then =
    isRange || !hasBefore
      ? null
      : isMonth
        ? fill(texts.beside.month, { month: month(takings.before.from) })
        : html`${texts.beside.week}`
  const form: Intl.DateTimeFormatOptions = byMonth
    ? { month: 'short' }
    : isMonth || isRange
      ? { day: 'numeric' }
      : { weekday: 'short' }
  const compact = new Intl.NumberFormat(locale.tag, {
    style: 'currency',
    currency: reportCurrency,
    notation: 'compact',
    maximumFractionDigits: 1,
    minimumFractionDigits: 0,
  })
  const { day: today } = localTime(now, knownZone(store.timeZone))
  const chart = renderChart(days, today, {
    about,
    axis: (amount) => compact.format(amount),
    label: (day) => formatDay(locale, day, form),
    hover: (day, to, amount) => `${showSpan(day, to)}: ${money(amount)}`,
  })
  return html`<div class="row apart"><h2>${byMonth ? texts.chartByMonth : texts.chart}</h2>
<p class="row soft"><small><span class="key"></span>${isMonth ? month(takings.from) : span}</small>${
    then && html`<small><span class="key then"></span>${then}</small>`
  }</p></div>
${chart}${renderNumbers(takings, writer, then)}`
}

function renderNumbers({ days }: Takings, { texts, money, days: showSpan }: Writer, then: Html | null): Html {
  const cell = (amount: bigint | null) =>
    html`<td class="number">${amount === null ? '–' : money(amount)}</td>`
  const row = ({ day, to, amount, before }: Takings['days'][number]) =>
    html`<tr><th scope="row">${showSpan(day, to)}</th>${cell(amount)}${then && cell(before)}</tr>`
  return html`<details id="numbers"><summary>${texts.numbers}</summary>
<div class="scroll"><table><thead><tr><th scope="col">${texts.day}</th>
<th scope="col" class="number">${texts.chart}</th>${
    then && html`<th scope="col" class="number">${then}</th>`
  }</tr></thead>
<tbody>${days.map(row)}</tbody></table></div></details>`
}

/** What waits for a member, the most urgent first: no wallet, where money goes, money, programs. */
function renderNeeds(screen: Screen, home: Home, writer: Writer): Html {
  const { texts } = writer
  const at = (path: string) => `${screen.base}${path}`
  const needs = [
    !home.hasWallet && item(at(addPath(screen)), texts.noWallet, texts.noWalletAbout),
    home.hasWallet && !home.isPayable && item(at('/wallets'), texts.unpayable, texts.unpayableAbout),
    ...home.unproven.map(({ id, address }) => {
      const about = fill(texts.unprovenAbout, { address: showShort(address) })
      return item(at(`/wallets/${id}`), texts.unproven, about)
    }),
    home.lacksSpare && item('/account', texts.spare, texts.spareAbout),
    home.hasWaitingWallet && item(at('/wallets'), texts.walletWaits, texts.walletWaitsAbout),
    home.undecided.length > 0 && renderUndecided(home, writer, at('/inbox')),
    home.refunds > 0 &&
      item(
        at('/refunds?status=REQUESTED'),
        fill(home.refunds === 1 ? texts.refundOne : texts.refund, {
          count: showCount(writer.locale, home.refunds),
        }),
        texts.refundAbout,
      ),
    home.findings > 0 &&
      item(
        at('/reports/audit'),
        fill(home.findings === 1 ? texts.findingOne : texts.finding, {
          count: showCount(writer.locale, home.findings),
        }),
        texts.findingAbout,
      ),
    ...home.troubled.map(({ id, url, failingSince }) => {
      const { host: name, pathname } = new URL(url)
      const host = html`<bdi>${name + pathname}</bdi>`
      const about = failingSince
        ? fill(texts.endpointFailing, { host, time: showTime(writer.locale, failingSince, home.now) })
        : fill(texts.endpointOff, { host })
      return item(at(`/developers/endpoints/${id}`), texts.endpoint, about)
    }),
  ].filter((each) => each !== false)
  const list =
    needs.length > 0
      ? html`<ul class="list todos">${needs}</ul>`
      : html`<p class="soft">${texts.needsNothing}</p>`
  const mayAct = screen.may('payments:write') || screen.may('webhooks:write')
  const heading = html`<h2 id="needs">${mayAct ? texts.needs : texts.needsOthers}</h2>`
  return html`<section class="facts needs" aria-labelledby="needs">${heading}${list}</section>`
}

function item(href: string, title: string | Html, about: string | Html): Html {
  return html`<li><a href="${href}">${title}</a><br><small>${about}</small></li>`
}

function renderUndecided({ undecided }: Home, { texts, locale }: Writer, href: string): Html {
  const sums = new Map<string, { units: bigint; decimals: number; symbol: string }>()
  for (const payment of undecided) {
    const token = tokenOf({ network: payment.network, asset: toShown(payment.network, payment.asset) })
    if (!token) continue
    const sum = sums.get(token.symbol) ?? { units: 0n, decimals: token.decimals, symbol: token.symbol }
    sums.set(token.symbol, { ...sum, units: sum.units + payment.amount })
  }
  const amount = [...sums.values()]
    .map(({ units, decimals, symbol }) => showUnits(locale, units, decimals, symbol))
    .join(', ')
  const isMore = undecided.length > undecidedMax
  const count = showCount(locale, isMore ? undecidedMax : undecided.length)
  const title = fill(isMore ? texts.decideMany : undecided.length === 1 ? texts.decideOne : texts.decide, {
    count,
  })
  return item(href, title, fill(texts.decideAbout, { amount }))
}

const tones: Readonly<Partial<Record<Latest['state'], Tone>>> = {
  ...{ paid: 'good', settling: 'busy', late: 'bad', underpaid: 'bad' },
  ...{ overpaid: 'bad', unmatched: 'bad', reversed: 'bad' },
}

function renderLatest(home: Home, writer: Writer, base: string): Html {
  const { texts } = writer
  return html`<div class="row apart"><h2>${texts.latest}</h2>
<a class="button quiet tiny" href="${base}/payments">${texts.all}</a></div>
<dl class="list latest">${home.latest.map((each) => renderLatestOne(each, home, writer, base))}</dl>`
}

function renderLatestOne(latest: Latest, { now }: Home, { texts, locale }: Writer, base: string): Html {
  const { checkout, payment, state, at } = latest
  const id = checkout && html`<bdi>${nameOf(checkout)}</bdi>`
  const name = id ? (hasOwnOrder(checkout) ? fill(texts.order, { id }) : id) : html`${texts.noOrder}`
  const token = payment && tokenOf(payment)
  // What arrived, where that is not the price.
  const isPrice = checkout && (state === 'paid' || state === 'settling' || state === 'partlyRefunded')
  const amount = isPrice
    ? showMoney(locale, checkout.priceAmount, checkout.priceCurrency)
    : payment && token && showBriefly(locale, payment, payment.amount)
  const path = checkout ? `checkouts/${checkout.id}` : `payments/${latest.paymentId}`
  const link = html`<a href="${base}/${path}">${name}</a>`
  return html`<div><dt>${link}&ensp;${renderChip(texts.states[state], tones[state])}</dt>
<dd><b>${amount ?? null}</b> <span class="soft">${showTime(locale, at, now)}</span></dd></div>`
}

function renderEnded(sum: Sum, { texts, locale }: Writer): Html {
  const parts = [
    { name: texts.paid, count: sum.paid, tone: 'is-good' },
    { name: texts.expired, count: sum.expired, tone: 'is-over' },
    { name: texts.canceled, count: sum.canceled, tone: 'is-bad' },
    { name: texts.open, count: sum.open, tone: 'is-busy' },
  ]
  const shareOf = (count: number) => showShare(locale, sum.made === 0 ? 0 : count / sum.made)
  let left = 0
  const bars = parts.map(({ count, tone }) => {
    const width = sum.made === 0 ? 0 : (count / sum.made) * 100
    const bar = html`<rect class="${tone}" x="${`${left}`}%" width="${`${width}`}%" height="100%"/>`
    left += width
    return bar
  })
  const label = parts.map(({ name, count }) => `${name}: ${shareOf(count)}`).join(', ')
  return html`<section class="facts"><h2>${texts.ended}</h2>
<p class="soft">${fill(texts.endedAbout, { count: showCount(locale, sum.made) })}</p>
<svg class="share" role="img" aria-label="${label}">${bars}</svg>
<dl class="list">${parts.map(
    ({ name, count, tone }) => html`<div><dt><span class="key ${tone}"></span>${name}</dt>
<dd>${showCount(locale, count)} <span class="soft">· ${shareOf(count)}</span></dd></div>`,
  )}</dl></section>`
}

function showShare({ tag }: Locale, share: number): string {
  return new Intl.NumberFormat(tag, { style: 'percent', maximumFractionDigits: 0 }).format(share)
}

/** A day of the store's calendar, whatever the zone: its noon in UTC is on it. */
function formatDay({ tag }: Locale, day: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(tag, { ...options, timeZone: 'UTC' }).format(new Date(`${day}T12:00:00Z`))
}

/** With the year, unless all of it is in this one. */
function showDays({ tag }: Locale, from: string, to: string, thisYear: string): string {
  const isOld = [from, to].some((day) => day !== '' && !day.startsWith(thisYear))
  const format = new Intl.DateTimeFormat(tag, {
    ...(isOld && { year: 'numeric' }),
    month: 'long',
    day: 'numeric',
    timeZone: 'UTC',
  })
  return format.formatRange(new Date(`${from}T12:00:00Z`), new Date(`${to}T12:00:00Z`))
}
