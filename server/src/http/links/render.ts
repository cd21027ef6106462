import type { Invoice } from '@farthing/sdk'
import type { Opening } from '../../checkouts/links/open.ts'
import { sumInvoice } from '../../links/invoice.ts'
import { type Link, linkPathOf } from '../../links/link.ts'
import { type Document, type PageHost, renderDocument } from '../page/document.ts'
import { fill, type Html, html, plain } from '../page/html.ts'
import type { Language } from '../page/languages/language.ts'
import { renderMessage } from '../page/parts/outcome.ts'
import {
  bdi,
  formatPrice,
  renderContact,
  renderFact,
  renderInitial,
  renderTime,
  sizeOf,
} from '../page/parts/summary.ts'

export type LinkPageState =
  | { readonly status: 'ACTIVE'; readonly quote: string }
  | { readonly status: 'PAID' | 'CLOSED' | 'ENDED' | 'UNPAYABLE' }

/** Why the buyer is still here, and the amount as it was typed. */
export type Mistaken = { readonly mistake: 'amount' | 'outdated'; readonly amount: string | null }

type LinkPage = {
  readonly place: PageHost
  readonly language: Language
  readonly opening: Opening
  readonly state: LinkPageState
  readonly mistaken: Mistaken | null
}

const messageOf = { PAID: 'paid', CLOSED: 'closed', ENDED: 'ended', UNPAYABLE: 'unpayable' } as const

/** The page of a link, in every state. It has no script. */
export function renderLink(page: LinkPage): Document {
  const { place, language, opening, state, mistaken } = page
  const { link, seller } = opening
  const { store } = seller
  const { texts, tag } = language
  const price = priceText(link, tag, texts)
  const isOpen = state.status === 'ACTIVE'
  const name = bdi(store.name)
  const hasLogo = store.logoUrl?.startsWith('data:') ?? false
  const address = `${place.path}/${linkPathOf(link.id)}`
  const mark = hasLogo ? html`<img class="mark" src="${address}/logo" alt="">` : renderInitial(store.name)
  const help = fill(texts.help, { checkout: html`<code>${link.invoice?.number ?? link.id}</code>` })
  const main = html`<main data-link="${state.status}">
<section class="head">
<div class="store">${mark}<h1>${isOpen ? fill(texts.payStore, { store: name }) : name}</h1></div>
${store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}
<p class="due">${bdi(link.title)}</p>
<p class="price${sizeOf(price)}"><bdi>${price}</bdi></p>
</section>
<div class="act">
${renderAct(page, address)}
</div>
<section class="facts">
${link.invoice && renderInvoice(sumInvoice(link.invoice, link.priceCurrency), link.priceCurrency, language)}
<dl>
${link.description !== null && renderFact(texts.description, bdi(link.description))}
${isOpen && renderFact(texts.validUntil, renderTime(link.until, tag))}
</dl>
${isOpen && html`<p class="direct">${texts.direct}</p>`}
<p class="help">${help}${renderContact(store, link.id)}</p>
</section>
</main>`
  return renderDocument(place, language, {
    status: mistaken === null ? 200 : 422,
    title: `${plain(link.title)} · ${plain(store.name)}`,
    accentColor: store.accentColor,
    main,
    languageLinks: (lang) => `${address}?lang=${lang}`,
    isStatic: true,
    preview: { url: `${place.url}/${linkPathOf(link.id)}`, site: store.name, description: price },
  })
}

function priceText({ price, priceCurrency }: Link, tag: string, texts: Language['texts']): string {
  const show = (amount: string) => formatPrice(amount, priceCurrency, tag)
  if ('amount' in price) return show(price.amount)
  return fillText(texts.link.between, { min: show(price.min), max: show(price.max) })
}

function fillText(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name) => parts[name] ?? '')
}

function renderAct(page: LinkPage, address: string): Html {
  const { language, opening, state } = page
  const { store } = opening.seller
  if (state.status === 'ACTIVE') return renderForm(page, address, state.quote)
  const said = language.texts.link[messageOf[state.status]]
  const title = fillText(said.title, { store: store.name })
  return renderMessage(state.status === 'PAID' ? 'good' : 'over', { ...said, title, store: store.name })
}

function renderForm({ language, opening, mistaken }: LinkPage, address: string, quote: string): Html {
  const { link } = opening
  const { tag, texts } = language
  const { price, priceCurrency } = link
  const range = 'min' in price ? price : null
  const show = (amount: string) => formatPrice(amount, priceCurrency, tag)
  const parts = range && { min: show(range.min), max: show(range.max), example: range.max }
  const mistake =
    mistaken &&
    (mistaken.mistake === 'amount' && parts ? fill(texts.link.mistake, parts) : texts.link.outdated)
  const isWrong = mistaken?.mistake === 'amount'
  const invalid = isWrong && html` aria-invalid="true" aria-describedby="mistake"`
  const field =
    range &&
    html`<label for="amount">${texts.link.howMuch} (${priceCurrency})</label>
<input id="amount" name="amount" inputmode="decimal" dir="ltr" maxlength="22" value="${mistaken?.amount ?? ''}"
autocomplete="off" required placeholder="${range.min}"${invalid}>`
  return html`<form class="link" method="post" action="${address}/open?lang=${tag}" novalidate>
${mistake && html`<p class="notice" role="alert" id="mistake">${mistake}</p>`}
${field}
<input type="hidden" name="quote" value="${quote}">
<button>${texts.link.pay}</button>
<p class="hint">${texts.link.about}</p>
</form>`
}

function renderInvoice(
  { number, dueDate, lines, taxes, net, gross, buyerName, buyerAddress }: Invoice,
  currency: string,
  { tag, texts }: Language,
): Html {
  const show = (amount: string) => bdi(formatPrice(amount, currency, tag))
  const day = (text: string) =>
    new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(text))
  const { link } = texts
  const buyer = [buyerName, ...(buyerAddress?.split('\n') ?? [])].filter((line) => line !== undefined)
  const head = [link.line, link.quantity, link.each, link.taxRate]
  return html`<section class="invoice" aria-label="${link.invoice}">
<dl>
${renderFact(link.invoice, bdi(number))}
${dueDate !== undefined && renderFact(link.due, day(dueDate))}
${buyer.length > 0 && renderFact(link.buyer, html`${buyer.map((line) => html`${bdi(line)}<br>`)}`)}
</dl>
<table>
<thead><tr>${head.map((text) => html`<th scope="col">${text}</th>`)}</tr></thead>
<tbody>${lines.map(
    (
      line,
    ) => html`<tr><th scope="row">${bdi(line.text)}</th><td>${line.quantity}</td><td>${show(line.unitAmount)}</td>
<td>${line.taxRate} %</td></tr>`,
  )}</tbody>
<tfoot>
<tr><th scope="row" colspan="3">${link.net}</th><td>${show(net)}</td></tr>
${taxes.map(
  ({ taxRate, tax }) =>
    html`<tr><th scope="row" colspan="3">${fill(link.tax, { rate: taxRate })}</th><td>${show(tax)}</td></tr>`,
)}
<tr class="total"><th scope="row" colspan="3">${link.total}</th><td>${show(gross)}</td></tr>
</tfoot>
</table>
</section>`
}
