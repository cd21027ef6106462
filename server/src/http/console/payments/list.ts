import type { Payment } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import type { Checkout } from '../../../checkouts/checkout.ts'
import type { ReceivedRow } from '../../../checkouts/list-rows.ts'
import { mayAct } from '../../../members/rights.ts'
import { networks } from '../../../networks.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { type Locale, showMoney, showShort, showTime, showUnits } from '../formats.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { addressOf, dispositions, type ListQuery, statuses } from './query.ts'
import { mainOf } from './received.ts'

export type Shown = {
  readonly query: ListQuery
  readonly rows:
    | { readonly checkouts: readonly ReceivedRow[] }
    | { readonly money: readonly Payment[]; readonly of: ReadonlyMap<string, Checkout> }
  readonly nextCursor: string | null
  /** By payment, what refunds have returned of it. */
  readonly returned: ReadonlyMap<string, bigint>
  readonly locale: Locale
  readonly now: Date
}

type Line = {
  readonly href: string
  readonly chip: Html
  readonly price: string
  readonly received: string | null
  readonly order: string | null
  readonly payer: string | null
  readonly network: string | null
  readonly time: Date
}

export function renderList(request: FastifyRequest, shown: Shown): Html {
  const texts = textsOf(request).payments
  const { query } = shown
  const { storeId } = storeOf(request)
  const base = `/stores/${storeId}/payments`
  const lines = linesOf(request, shown)
  const isNarrow = addressOf(query) !== '' && addressOf(query) !== 'show=money'
  return html`<div class="head plain"><h1>${texts.title}</h1><div class="row">${mayAct(storeOf(request).role, 'checkouts:write') && html`<a class="button" href="/stores/${storeId}/new">${textsOf(request).newPayment.title}</a>`}<a class="button quiet" href="${base}/export?${addressOf(query)}">${texts.export}</a></div></div>
<div class="pane stack">
<form class="find" role="search" action="${base}"><input type="search" name="q" value="${query.search?.text ?? ''}" placeholder="${texts.searchFor}" aria-label="${texts.searchFor}" maxlength="300" autocomplete="off"><button class="quiet">${texts.search}</button></form>
${query.search ? renderSearched(request, query, base) : renderFilters(request, query, base)}
<p class="live soft">${textsOf(request).frame.live}</p>
</div>
${lines.length > 0 ? renderTable(texts, lines, shown) : html`<div class="pane empty">${renderNothing(texts, isNarrow, shown.nextCursor !== null)}</div>`}
${(query.cursor !== null || shown.nextCursor !== null) && html`<div class="ends">${query.cursor !== null ? html`<a class="button quiet" href="${base}?${addressOf(query)}">${texts.newest}</a>` : html`<span></span>`}${shown.nextCursor !== null && html`<a class="button quiet" href="${base}?${addressOf(query, { cursor: shown.nextCursor })}">${lines.length > 0 ? texts.older : texts.further}</a>`}</div>`}`
}

type ListTexts = Texts['payments']

function renderNothing(texts: ListTexts, isNarrow: boolean, goesOn: boolean): Html {
  if (goesOn) return html`<p>${texts.nothingHere}</p>`
  if (isNarrow) return html`<p>${texts.nothingFound}</p>`
  return html`<h2>${texts.nothingYet}</h2><p class="soft">${texts.firstOne}</p>`
}

/** Says what the pasted text was taken for. */
function renderSearched(request: FastifyRequest, query: ListQuery, base: string): Html | null {
  const texts = textsOf(request).payments
  const { search } = query
  if (!search) return null
  const said = fill(texts.searched[search.kind], { text: html`<bdi><strong>${search.text}</strong></bdi>` })
  const asOrder = { ...query, search: { ...search, kind: 'order' } } as const
  return html`<p>${said} · ${search.kind !== 'order' && html`<a href="${base}?${addressOf(asOrder, { show: 'checkouts' })}">${texts.asOrder}</a> · `}<a href="${base}">${texts.showAll}</a></p>`
}

function renderFilters(request: FastifyRequest, query: ListQuery, base: string): Html {
  const texts = textsOf(request).payments
  const { mode } = storeOf(request)
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
    html`<a class="filter" href="${base}?${addressOf(query, change)}"${isOn && html` aria-current="true"`}>${text}</a>`
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
  }).map(([name, value]) => value !== null && html`<input type="hidden" name="${name}" value="${value}">`)
  const field = (name: string, label: string, value: string | null, type: Html) =>
    html`<label class="field">${label}<input name="${name}" value="${value ?? ''}" ${type}></label>`
  const day = html`type="date"`
  const decimal = html`inputmode="decimal" size="8" pattern="\\d{1,15}(\\.\\d{1,6})?"`
  return html`<nav class="tabs" aria-label="${texts.title}">${tab('checkouts', texts.checkouts)}${tab('money', texts.money)}</nav>
<div class="row">${chips}</div>
<form class="find" action="${base}">${kept}${field('from', texts.from, query.from, day)}${field('to', texts.to, query.to, day)}${
    query.show === 'money' &&
    html`<label class="field">${texts.network}<select name="network"><option value="">${texts.anyNetwork}</option>${networks
      .filter((each) => each.mode === mode)
      .map(
        (each) =>
          html`<option value="${each.caip2}"${each.caip2 === query.network && html` selected`}>${each.name}</option>`,
      )}</select></label>${field('least', texts.least, query.least, decimal)}${field('most', texts.most, query.most, decimal)}`
  }<button class="quiet">${texts.apply}</button></form>`
}

function renderTable(texts: ListTexts, lines: readonly Line[], { locale, now }: Shown): Html {
  const none = html`<span class="soft">–</span>`
  return html`<div class="table"><table class="cards">
<thead><tr><th scope="col">${texts.status}</th><th scope="col" class="num">${texts.price}</th><th scope="col" class="num">${texts.received}</th><th scope="col">${texts.order}</th><th scope="col">${texts.payer}</th><th scope="col">${texts.network}</th><th scope="col" class="num">${texts.when}</th></tr></thead>
<tbody>${lines.map(
    (
      line,
    ) => html`<tr><td class="c2">${line.chip}</td><td class="num c1"><a class="whole" href="${line.href}">${line.price}</a></td><td class="num soft">${line.received ?? none}</td><td class="c3">${line.order === null ? none : html`<bdi>${cut(line.order)}</bdi>`}</td><td>${line.payer === null ? none : showShort(line.payer)}</td><td>${line.network ?? none}</td><td class="num c4">${showTime(locale, line.time, now)}</td></tr>
`,
  )}</tbody></table></div>`
}

/** An order's id may have 255 bytes: the rest is on its own screen. */
const orderCharactersMax = 40

export function cut(text: string): string {
  const characters = [...text]
  return characters.length > orderCharactersMax
    ? `${characters.slice(0, orderCharactersMax - 1).join('')}…`
    : text
}

function linesOf(request: FastifyRequest, shown: Shown): Line[] {
  const texts = textsOf(request).payments
  const { rows, locale, returned } = shown
  const base = `/stores/${storeOf(request).storeId}`
  if ('checkouts' in rows)
    return rows.checkouts.map(({ checkout, received }) => {
      const main = mainOf(received)
      return {
        href: `${base}/checkouts/${checkout.id}`,
        chip: renderState(texts, checkout, main, returned.get(main?.paymentId ?? '')),
        price: showMoney(locale, checkout.priceAmount, checkout.priceCurrency),
        order: checkout.orderId,
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
      order: checkout?.orderId ?? null,
      time: new Date(payment.includedAt),
      ...money,
    }
  })
}

function moneyOf(locale: Locale, payment: Payment | null): Pick<Line, 'received' | 'payer' | 'network'> {
  if (!payment) return { received: null, payer: null, network: null }
  const { name, symbol, decimals } = describeOption(payment)
  return {
    received: showUnits(locale, BigInt(payment.amount), decimals, symbol),
    payer: payment.payer,
    network: name,
  }
}

/** One word for a checkout: what became of it, or what somebody has to decide about. `back` went back of `main`. */
export function renderState(
  texts: ListTexts,
  { status }: Checkout,
  main: CreditRow | null,
  back: bigint | undefined,
): Html {
  const isDecided = main?.disposition === 'exact' || status === 'COMPLETED' || status === 'PROCESSING'
  if (main && !isDecided) return renderBack(texts, ' bad', texts.dispositions[main.disposition], main, back)
  const tone = status === 'COMPLETED' ? ' good' : status === 'PROCESSING' ? ' busy' : ''
  return renderBack(texts, tone, texts.statuses[status], main, back)
}

export function renderDisposition(texts: ListTexts, payment: Payment, back: bigint | undefined): Html {
  const { disposition, dismissedAt, finality } = payment
  const tone = disposition === 'exact' ? ' good' : dismissedAt === null ? ' bad' : ''
  const left = finality === 'reversed' ? undefined : back
  return renderBack(texts, tone, texts.dispositions[disposition], payment, left)
}

/** A word with its tone, unless all of the payment went back: then that is what there is to say. */
function renderBack(
  texts: ListTexts,
  tone: string,
  word: string,
  payment: { readonly amount: bigint | string } | null,
  back = 0n,
): Html {
  const chip = html`<span class="chip${tone}">${word}</span>`
  if (!payment || back === 0n) return chip
  return back >= BigInt(payment.amount)
    ? html`<span class="chip">${texts.refunded}</span>`
    : html`${chip} <span class="chip">${texts.partlyRefunded}</span>`
}
