import type { Payment } from '@farthing/sdk'
import { type Checkout, nameOf } from '../../../checkouts/checkout.ts'
import type { ReceivedRow } from '../../../checkouts/read.ts'
import { networks } from '../../../networks.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { type Locale, showBriefly, showMoney, showShort, showTime } from '../formats.ts'
import {
  renderChip,
  renderFilter,
  renderHead,
  renderHidden,
  renderOptions,
  renderPager,
  renderTable,
  type Tone,
} from '../parts.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'
import { addressOf, dispositions, type ListQuery, statuses } from './query.ts'

export type PaymentList = {
  readonly query: ListQuery
  readonly rows:
    | { readonly checkouts: readonly ReceivedRow[] }
    | { readonly money: readonly Payment[]; readonly of: ReadonlyMap<string, Checkout> }
  readonly nextCursor: string | null
  /** By payment, what refunds have returned of it. */
  readonly returned: ReadonlyMap<string, bigint>
}

type Line = {
  readonly href: string
  readonly chip: Html
  readonly price: string | Html
  readonly received: Html | null
  readonly order: string | null
  readonly payer: string | null
  readonly network: string | null
  readonly time: Date
}

export function renderList(screen: Screen, shown: PaymentList): Html {
  const texts = screen.texts.payments
  const { query } = shown
  const base = `${screen.base}/payments`
  const lines = linesOf(screen, shown)
  const isNarrow = addressOf(query) !== '' && addressOf(query) !== 'show=money'
  const make = html`<a class="button" href="${screen.base}/new">${screen.texts.newPayment.title}</a>`
  const save = html`<a class="button quiet" href="${base}/export?${addressOf(query)}">${texts.export}</a>`
  const aside = html`<div class="row">${screen.may('checkouts:write') && make}${save}</div>`
  return html`${renderHead(texts.title, { aside })}
<div class="pane stack">
<form class="find" role="search" action="${base}">
<input type="search" name="q" value="${query.search?.text ?? ''}" placeholder="${texts.searchFor}"
aria-label="${texts.searchFor}" maxlength="300" autocomplete="off"><button class="quiet">${texts.search}</button></form>
${query.search ? renderSearched(screen, query, base) : renderFilters(screen, query, base)}
</div>
${
  lines.length > 0
    ? renderLines(screen, lines)
    : html`<div class="pane empty">${renderNothing(texts, isNarrow, shown.nextCursor !== null)}</div>`
}
${renderPager(
  { newest: texts.newest, older: lines.length > 0 ? texts.older : texts.further },
  query.cursor === null ? null : `${base}?${addressOf(query)}`,
  shown.nextCursor === null ? null : `${base}?${addressOf(query, { cursor: shown.nextCursor })}`,
)}`
}

type ListTexts = Texts['payments']

function renderNothing(texts: ListTexts, isNarrow: boolean, goesOn: boolean): Html {
  if (goesOn) return html`<p>${texts.nothingHere}</p>`
  if (isNarrow) return html`<p>${texts.nothingFound}</p>`
  return html`<h2>${texts.nothingYet}</h2><p class="soft">${texts.firstOne}</p>`
}

/** Says how the pasted text was understood. */
function renderSearched(screen: Screen, query: ListQuery, base: string): Html | null {
  const texts = screen.texts.payments
  const { search } = query
  if (!search) return null
  const said = fill(texts.searched[search.kind], { text: html`<bdi><strong>${search.text}</strong></bdi>` })
  const others = query.others.map(
    (other) =>
      html` · <a href="${base}?${addressOf(query, { search: other })}">${texts.searchAs[other.kind]}</a>`,
  )
  return html`<p>${said}${others} · <a href="${base}">${texts.showAll}</a></p>
<p class="live soft">${screen.texts.frame.live}</p>`
}

function renderFilters(screen: Screen, query: ListQuery, base: string): Html {
  const texts = screen.texts.payments
  const { mode } = screen.store
  const tab = (show: ListQuery['show'], text: string) => {
    const address = addressOf({
      ...query,
      status: null,
      disposition: null,
      network: null,
      least: null,
      most: null,
      show,
    })
    return html`<a href="${base}?${address}"${query.show === show && html` aria-current="true"`}>${text}</a>`
  }
  const filter = (change: Partial<ListQuery>, isOn: boolean, text: string) =>
    renderFilter(`${base}?${addressOf(query, change)}`, text, isOn)
  const chips =
    query.show === 'checkouts'
      ? [
          filter({ status: null }, query.status === null, texts.all),
          ...statuses.map((each) => filter({ status: each }, query.status === each, texts.statuses[each])),
        ]
      : [
          filter({ disposition: null }, query.disposition === null, texts.all),
          ...dispositions.map((each) =>
            filter({ disposition: each }, query.disposition === each, texts.dispositions[each]),
          ),
        ]
  const kept = Object.entries({
    show: query.show === 'money' ? 'money' : null,
    status: query.status,
    kind: query.disposition,
  }).map(([name, value]) => value !== null && renderHidden(name, value))
  const field = (name: string, label: string, value: string | null, type: Html) =>
    html`<label class="field">${label}<input name="${name}" value="${value ?? ''}" ${type}></label>`
  const day = html`type="date"`
  const decimal = html`inputmode="decimal" size="8" pattern="\\d{1,15}(\\.\\d{1,6})?"`
  const offered = networks
    .filter((each) => each.mode === mode)
    .map(({ caip2, name }) => [caip2, name] as const)
  const options = renderOptions(query.network ?? '', [['', texts.anyNetwork], ...offered])
  const money = html`<label class="field">${texts.network}<select name="network">${options}</select></label>
${field('least', texts.least, query.least, decimal)}
${field('most', texts.most, query.most, decimal)}`
  const { from, to, network, least, most } = query
  const isFiltered = [from, to, network, least, most].some((each) => each !== null)
  return html`<nav class="tabs" aria-label="${texts.title}">
${tab('checkouts', texts.checkouts)}${tab('money', texts.money)}<a href="${screen.base}/links">${
    screen.texts.links.title
  }</a></nav>
<div class="row apart"><div class="row">${chips}</div><p class="live soft">${screen.texts.frame.live}</p></div>
<details id="filters"${isFiltered && html` open`}><summary>${texts.filters}</summary>
<form class="find" action="${base}">${kept}
${field('from', texts.from, query.from, day)}
${field('to', texts.to, query.to, day)}
${query.show === 'money' && money}<button class="quiet">${texts.apply}</button></form></details>`
}

function renderLines({ texts: { payments: texts }, locale, now }: Screen, lines: readonly Line[]): Html {
  const none = html`<span class="soft">–</span>`
  const columns = [
    ...[texts.status, { number: texts.price }, { number: texts.received }],
    ...[texts.order, texts.payer, texts.network, { number: texts.when }],
  ]
  const rows = lines.map(
    ({ chip, href, price, received, order, payer, network, time }) => html`<tr><td class="c2">${chip}</td>
<td class="num c1"><a class="whole" href="${href}">${price}</a></td>
<td class="num soft">${received ?? none}</td>
<td class="c3">${order === null ? none : html`<bdi>${cut(order)}</bdi>`}</td>
<td>${payer === null ? none : showShort(payer)}</td><td>${network ?? none}</td>
<td class="num c4">${showTime(locale, time, now)}</td></tr>
`,
  )
  return renderTable(columns, rows)
}

/** An order's id may have 255 bytes: the rest is on its own screen. */
const orderCharactersMax = 40

export function cut(text: string): string {
  const characters = [...text]
  return characters.length > orderCharactersMax
    ? `${characters.slice(0, orderCharactersMax - 1).join('')}…`
    : text
}

function linesOf(screen: Screen, shown: PaymentList): Line[] {
  const texts = screen.texts.payments
  const { rows, returned } = shown
  const { base, locale } = screen
  if ('checkouts' in rows)
    return rows.checkouts.map(({ checkout, received }) => {
      const main = mainOf(received)
      return {
        href: `${base}/checkouts/${checkout.id}`,
        chip: renderState(texts, checkout, main, returned.get(main?.paymentId ?? '')),
        price: showMoney(locale, checkout.priceAmount, checkout.priceCurrency),
        order: nameOf(checkout),
        time: checkout.createdAt,
        ...moneyOf(locale, main && toPayment(main)),
      }
    })
  return rows.money.map((payment) => {
    const checkout = rows.of.get(payment.checkoutId ?? '')
    const money = moneyOf(locale, payment)
    return {
      href: checkout ? `${base}/checkouts/${checkout.id}` : `${base}/payments/${payment.id}`,
      chip: renderDisposition(texts, payment, returned.get(payment.id)),
      price: checkout
        ? showMoney(locale, checkout.priceAmount, checkout.priceCurrency)
        : (money.received ?? ''),
      order: checkout ? nameOf(checkout) : null,
      time: new Date(payment.includedAt),
      ...money,
    }
  })
}

/** The money that a row of the list is about: what paid the checkout, or else the newest that waits for a decision. */
export function mainOf(received: readonly CreditRow[]): CreditRow | null {
  const live = received.filter(({ isOrphaned, isReversed }) => !isOrphaned && !isReversed)
  const exact = live.find(({ disposition }) => disposition === 'exact')
  const [newest = null] = live
    .filter(({ dismissedAt }) => dismissedAt === null)
    .toSorted((a, b) => (a.paymentId < b.paymentId ? 1 : -1))
  return exact ?? newest
}

function moneyOf(locale: Locale, payment: Payment | null): Pick<Line, 'received' | 'payer' | 'network'> {
  if (!payment) return { received: null, payer: null, network: null }
  return {
    received: showBriefly(locale, payment, payment.amount),
    payer: payment.payer,
    network: describeOption(payment).name,
  }
}

/** One word for a checkout: its outcome, or the decision that it waits for. `back` went back of `main`. */
export function renderState(
  texts: ListTexts,
  { status }: Checkout,
  main: CreditRow | null,
  back: bigint | undefined,
): Html {
  const isDecided = main?.disposition === 'exact' || status === 'COMPLETED' || status === 'PROCESSING'
  if (main && !isDecided) return renderBack(texts, 'bad', texts.dispositions[main.disposition], main, back)
  const tone = status === 'COMPLETED' ? 'good' : status === 'PROCESSING' ? 'busy' : ''
  return renderBack(texts, tone, texts.statuses[status], main, back)
}

export function renderDisposition(texts: ListTexts, payment: Payment, back: bigint | undefined): Html {
  const { disposition, dismissedAt, finality } = payment
  const tone = disposition === 'exact' ? 'good' : dismissedAt === null ? 'bad' : ''
  const left = finality === 'reversed' ? undefined : back
  return renderBack(texts, tone, texts.dispositions[disposition], payment, left)
}

/** A word with its tone, unless all of the payment went back: then that is what there is to say. */
function renderBack(
  texts: ListTexts,
  tone: Tone,
  word: string,
  payment: { readonly amount: bigint | string } | null,
  back = 0n,
): Html {
  const chip = renderChip(word, tone)
  if (!payment || back === 0n) return chip
  return back >= BigInt(payment.amount)
    ? renderChip(texts.refunded)
    : html`${chip} ${renderChip(texts.partlyRefunded)}`
}
