import type { Option } from '../../../checkouts/checkout.ts'
import { type CheckoutView, isPayable } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { networks } from '../../../networks.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language } from '../languages/language.ts'

/** Who is paid, and how much. Shown in every state. */
export function renderHead(view: CheckoutView, { tag, texts }: Language, path: string): Html {
  const { checkout, store } = view
  const name = bdi(store.name)
  const isOpen = isPayable(view)
  return html`<section class="head">
<div class="store">${store.hasLogo ? html`<img class="mark" src="${path}/${checkout.id}/logo" alt="">` : html`<span class="mark" aria-hidden="true">${initialOf(store.name)}</span>`}<h1>${isOpen ? fill(texts.payStore, { store: name }) : name}</h1></div>
${store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}
<p class="due">${isOpen ? texts.amountDue : texts.amount}</p>
<p class="price">${bdi(formatPrice(checkout.priceAmount, checkout.priceCurrency, tag))}</p>
${checkout.options.map((option, i) => {
  const { symbol, decimals, name } = describeOption(option)
  // Plain digits here, and the whole address in renderFacts: the script reads both back before anything is signed.
  return html`<p class="pays"><bdi><b data-amount="${i}">${unitsToText(BigInt(option.amount), decimals)}</b> ${symbol} · <span data-network="${i}">${name}</span></bdi></p>`
})}
</section>`
}

/** The order, the addresses and the deadline. */
export function renderFacts(view: CheckoutView, { tag, texts }: Language): Html {
  const { checkout } = view
  const isOpen = isPayable(view)
  return html`<section class="facts">
<dl>
<div><dt>${texts.order}</dt><dd>${bdi(checkout.orderId)}</dd></div>
${checkout.options.map((option, i) => html`<div><dt>${texts.payTo}${checkout.options.length > 1 && html` · ${bdi(describeOption(option).name)}`}</dt><dd>${renderAddress(option.payTo, html` data-address="${i}"`)}</dd></div>`)}
${isOpen && html`<div><dt>${texts.validUntil}</dt><dd>${renderTime(checkout.expiresAt, tag)}</dd></div>`}
</dl>
${isOpen && html`<p class="direct">${texts.direct}</p>`}
<p class="help">${fill(texts.help, { checkout: html`<code>${checkout.id}</code>` })}</p>
</section>`
}

/** In groups that are easy to compare; a copied address has no gaps. */
export function renderAddress(address: string, attributes: Html | null = null): Html {
  const groups = address.match(/.{1,4}/g) ?? []
  return html`<bdi class="address"${attributes}>${groups.map((group) => html`<span>${group}</span>`)}</bdi>`
}

/** In UTC; the script rewrites it in the buyer's time zone. */
export function renderTime(time: Date, tag: string): Html {
  const format = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  return html`<time datetime="${time.toISOString()}">${format.format(time)} UTC</time>`
}

/** Exact: Intl.NumberFormat takes decimal text without converting it to a float. */
export function formatPrice(amount: string, currency: string, tag: string): string {
  return new Intl.NumberFormat(tag, { style: 'currency', currency, maximumFractionDigits: 6 }).format(
    amount as `${number}`,
  )
}

/** The names of an option's network and token. A token that is no longer in networks.ts is named by its address. */
export function describeOption({ network, asset }: Pick<Option, 'network' | 'asset'>) {
  const found = networks.find(({ caip2 }) => caip2 === network)
  const token = found?.assets.find(({ address }) => address.toLowerCase() === asset.toLowerCase())
  return {
    network: found,
    name: found?.name ?? network,
    symbol: token?.symbol ?? asset,
    decimals: token?.decimals ?? 0,
  }
}

/** Isolated, so that a name in another script doesn't reorder its neighbours. */
export function bdi(text: string): Html {
  return html`<bdi>${text}</bdi>`
}

function initialOf(name: string): string {
  const [first] = new Intl.Segmenter().segment(name)
  return (first?.segment ?? '').toUpperCase()
}
