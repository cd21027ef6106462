import type { Link, LinkStatus, Page } from '@farthing/sdk'
import { nameOf } from '../../../checkouts/checkout.ts'
import type { ReceivedRow } from '../../../checkouts/read.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderQr } from '../../page/parts/qr.ts'
import { showDay, showMinute, showMoney, showTime } from '../formats.ts'
import { renderChip, renderFact, renderHead, renderPager, renderTable, type Tone } from '../parts.ts'
import { cut, mainOf, renderState } from '../payments/view.ts'
import type { Screen } from '../screen.ts'

const tones: Readonly<Record<LinkStatus, Tone>> = { ACTIVE: 'busy', PAID: 'good', CLOSED: '', ENDED: '' }

export function renderLinks(screen: Screen, { data, nextCursor }: Page<Link>, cursor: string | null): Html {
  const { links: texts, payments, newPayment } = screen.texts
  const { base, locale } = screen
  const make =
    screen.may('checkouts:write') && html`<a class="button" href="${base}/new">${newPayment.title}</a>`
  const columns = [texts.status, { number: texts.price }, texts.what, texts.kind, { number: texts.until }]
  const rows = data.map(
    (link) => html`<tr><td class="c2">${renderChip(texts.statuses[link.status], tones[link.status])}</td>
<td class="num c1"><a class="whole" href="${base}/links/${link.id}">${priceOf(screen, link)}</a></td>
<td class="c3"><bdi>${cut(link.title)}</bdi></td><td>${texts.kinds[link.kind]}</td>
<td class="num c4">${showMinute(locale, new Date(link.until))}</td></tr>
`,
  )
  const none = html`<div class="pane empty"><h2>${texts.none}</h2><p class="soft">${texts.noneAbout}</p></div>`
  return html`${renderHead(texts.title, {
    above: html`<p class="soft"><a href="${base}/payments">${payments.title}</a></p>`,
    about: texts.about,
    aside: html`<div class="row">${make}</div>`,
  })}
${rows.length > 0 ? renderTable(columns, rows) : none}
${renderPager(
  payments,
  cursor === null ? null : `${base}/links`,
  nextCursor === null ? null : `${base}/links?before=${nextCursor}`,
)}`
}

export function renderLink(screen: Screen, link: Link, made: readonly ReceivedRow[]): Html {
  const { base, texts: all } = screen
  const texts = all.links
  const { title, status } = link
  const isActive = status === 'ACTIVE'
  const another = html`<a class="button${isActive && ' quiet'}" href="${base}/new">${all.newPayment.another}</a>`
  return html`<div class="head"><div><p class="soft"><a href="${base}/links">${texts.title}</a> / <bdi>${
    title
  }</bdi></p>
<h1 class="price"><bdi>${priceOf(screen, link)}</bdi></h1></div>
<div class="row">${screen.may('checkouts:write') && another}</div></div>
${renderShown(screen, link, made)}
<section class="pane"><h2>${texts.facts}</h2>${renderFacts(screen, link)}</section>
<section class="pane"><h2>${texts.checkouts}</h2>${
    made.length > 0 ? renderMade(screen, made) : html`<p class="soft">${texts.noCheckouts}</p>`
  }</section>`
}

/** Large enough to be read across a counter: whether it is paid, and while it can be, how. */
function renderShown(screen: Screen, link: Link, made: readonly ReceivedRow[]): Html {
  const { locale, now, base, formFields } = screen
  const texts = screen.texts.links
  const { url, status, until } = link
  const isActive = status === 'ACTIVE'
  const isSettling = link.kind === 'once' && made.some(({ checkout }) => checkout.status === 'PROCESSING')
  const state = isActive && isSettling ? 'SETTLING' : status
  const { title, text } = texts.states[state]
  const tone = state === 'SETTLING' ? 'busy' : tones[status]
  const payable = fill(texts.payableUntil, { time: showTime(locale, new Date(until), now) })
  return html`<section class="pane till-made"><div role="status"><p class="state ${tone}">${title}</p>
<p class="soft">${text} ${isActive && payable}</p></div>
${isActive && renderAddress(screen, link)}
<div class="buttons">${
    isActive && html`<a class="button quiet" href="${url}" rel="noreferrer" target="_blank">${texts.open}</a>`
  }${
    isActive &&
    screen.may('checkouts:write') &&
    html`<form method="post" action="${base}/links/${link.id}/close">${formFields}
<button class="quiet">${texts.close}</button></form>`
  }</div></section>`
}

function renderAddress(screen: Screen, link: Link): Html {
  const { texts, store } = screen
  const { links, newPayment } = texts
  const { url, title } = link
  const parts: Readonly<Record<string, string>> = {
    title,
    url,
    price: priceOf(screen, link),
    store: store.storeName,
  }
  const write = (text: string) =>
    encodeURIComponent(text.replace(/\{(\w+)\}/g, (_, name) => parts[name] ?? ''))
  const mail = `mailto:?subject=${write(links.mailSubject)}&body=${write(links.mailText)}`
  return html`${renderQr(url, links.scan)}
<div class="copy"><code class="link" tabindex="0">${url}</code><button type="button" data-copy="${url}" data-done="${
    newPayment.copied
  }">${newPayment.copy}</button></div>
<div class="buttons"><button type="button" class="quiet" data-share="${url}" data-title="${title}" hidden>${
    links.share
  }</button><a class="button quiet" href="${mail}">${links.mail}</a><button type="button" class="quiet" data-print>${
    links.print
  }</button></div>`
}

function renderFacts({ texts, locale }: Screen, { id, kind, until, description, invoice }: Link): Html {
  const { links } = texts
  const sums =
    invoice &&
    html`${invoice.number}${invoice.dueDate !== undefined && html` · ${links.due} ${showDay(locale, invoice.dueDate)}`}`
  return html`<dl class="list">
${renderFact(links.kind, links.kinds[kind])}
${renderFact(links.until, showMinute(locale, new Date(until)))}
${renderFact(links.invoice, sums)}
${renderFact(links.description, description === undefined ? null : html`<bdi>${description}</bdi>`)}
${renderFact(links.id, html`<code>${id}</code>`)}
</dl>`
}

function renderMade(screen: Screen, made: readonly ReceivedRow[]): Html {
  const { payments: texts } = screen.texts
  const { base, locale, now } = screen
  const columns = [texts.status, { number: texts.price }, texts.order, { number: texts.when }]
  const rows = made.map(
    ({
      checkout,
      received,
    }) => html`<tr><td class="c2">${renderState(texts, checkout, mainOf(received), undefined)}</td>
<td class="num c1"><a class="whole" href="${base}/checkouts/${checkout.id}">${showMoney(
      locale,
      checkout.priceAmount,
      checkout.priceCurrency,
    )}</a></td>
<td class="c3"><bdi>${cut(nameOf(checkout))}</bdi></td><td class="num c4">${showTime(
      locale,
      checkout.createdAt,
      now,
    )}</td></tr>
`,
  )
  return renderTable(columns, rows)
}

/** The price, or the limits between which the buyer chooses. */
function priceOf(
  { locale, texts }: Screen,
  { priceAmount, minAmount, maxAmount, invoice, priceCurrency }: Link,
): string {
  const show = (amount: string) => showMoney(locale, amount, priceCurrency)
  if (invoice) return show(invoice.gross)
  if (priceAmount !== null) return show(priceAmount)
  const { between } = texts.links
  return between.replace('{min}', show(minAmount ?? '')).replace('{max}', show(maxAmount ?? ''))
}
