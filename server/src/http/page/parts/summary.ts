import { type Checkout, hasOwnOrder, type Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView } from '../../../checkouts/view.ts'
import { parseDecimal, unitsToText } from '../../../money.ts'
import { networks } from '../../../networks.ts'
import { emailForm } from '../../../stores/check-text.ts'
import type { Choice } from '../choice.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language } from '../languages/language.ts'

/** The amount that the page is about, and where it is or was paid. */
export type Shown = {
  readonly label: 'amountDue' | 'amountExpected' | 'amountPaid' | 'amount' | 'price'
  /** Units of a token; null shows the price. */
  readonly money: Pick<Option, 'network' | 'asset' | 'amount'> | null
  /** Whether the price in the order's currency is the large number, and the token's amount is below it. */
  readonly isPriceFirst: boolean
  /** Which option it is, if a wallet is to sign it: the script reads it back before it asks for a signature. */
  readonly place: number | null
  readonly address: { readonly label: 'payTo' | 'paidTo'; readonly text: string } | null
}

/** What to show while the checkout can be paid. */
export function shownFor({ way, place, option, transfer }: Choice): Shown {
  if (way !== 'send')
    return {
      label: 'amountDue',
      money: option,
      isPriceFirst: true,
      place,
      address: { label: 'payTo', text: option.payTo },
    }
  // The address is next to the instruction. Before an amount is reserved, only the price is known.
  const none = { isPriceFirst: false, place: null, address: null }
  return transfer
    ? { label: 'amountDue', money: transfer, ...none }
    : { label: 'price', money: null, ...none }
}

/** What to show when nothing more is to be paid. */
export function shownAfter({ checkout, payment, pending, transfers, notes }: CheckoutView): Shown {
  const [note] = notes
  if (payment) {
    const address = { label: 'paidTo', text: payment.payTo } as const
    const label = checkout.status === 'COMPLETED' ? 'amountPaid' : 'amount'
    return { label, money: payment, isPriceFirst: false, place: null, address }
  }
  const none = { isPriceFirst: false, place: null, address: null }
  if (checkout.status === 'PROCESSING') {
    const offered = checkout.options.filter(({ network }) => !pending || network === pending.network)
    const [money = null] = offered.length === 1 ? offered : []
    return { label: 'amount', money, ...none }
  }
  if (checkout.status !== 'OPEN') return { label: 'price', money: null, ...none }
  if (note) return { label: 'amountExpected', money: { ...note, amount: note.due }, ...none }
  const [money = null] = transfers.length === 1 ? transfers : []
  return money ? { label: 'amountExpected', money, ...none } : { label: 'price', money, ...none }
}

/** Who is paid, and how much. Shown in every state. */
export function renderHead(
  view: CheckoutView,
  shown: Shown,
  { tag, texts }: Language,
  logo: string,
  isOpen: boolean,
): Html {
  const { store } = view
  const name = bdi(store.name)
  const mark = store.hasLogo ? html`<img class="mark" src="${logo}" alt="">` : renderInitial(store.name)
  return html`<section class="head">
<div class="store">${mark}<h1>${isOpen ? fill(texts.payStore, { store: name }) : name}</h1></div>
${store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}
<p class="due">${texts[shown.label]}</p>
${renderMoney(view, shown, tag, texts)}
</section>`
}

function renderMoney(
  { checkout }: CheckoutView,
  { money, place, isPriceFirst }: Shown,
  tag: string,
  texts: Language['texts'],
): Html {
  const price = formatPrice(checkout.priceAmount, checkout.priceCurrency, tag)
  const priced = html`<p class="price${sizeOf(price)}"><bdi>${price}</bdi></p>`
  if (!money) return priced
  const { symbol, decimals, name } = describeOption(money)
  const amount = unitsToText(BigInt(money.amount), decimals)
  // Plain digits here, and the whole address in renderFacts: the script reads both back before anything is signed.
  const mark = (part: 'amount' | 'network') => place !== null && html` data-${part}="${place}"`
  const digits = html`<b${mark('amount')}>${amount}</b>`
  const on = fill(texts.onNetwork, { network: html`<bdi${mark('network')}>${name}</bdi>` })
  if (isPriceFirst) return html`${priced}<p class="on"><bdi>${digits} ${symbol}</bdi> ${on}</p>`
  return html`<p class="price${sizeOf(amount)}"><bdi>${digits} <span>${symbol}</span></bdi></p>
<p class="on">${on}</p>`
}

const sizes = [
  { over: 15, name: 'longest' },
  { over: 11, name: 'longer' },
  { over: 8, name: 'long' },
]

/** Long amounts get smaller letters: a number must not be broken across lines. */
export function sizeOf(amount: string): string {
  const size = sizes.find(({ over }) => amount.length > over)
  return size ? ` ${size.name}` : ''
}

/** The order, the price in its own currency, the address, the deadline, and how to reach the store. */
export function renderFacts(
  view: CheckoutView,
  { money, address, place, isPriceFirst }: Shown,
  { tag, texts }: Language,
  isPayable: boolean,
): Html {
  const { checkout } = view
  const { rate } = checkout
  const symbol = money ? describeOption(money).symbol : symbolOf(checkout.options)
  const isConverted = rate !== null && symbol !== null
  const { id, description, orderId, priceAmount, priceCurrency } = checkout
  const price = () => bdi(formatPrice(priceAmount, priceCurrency, tag))
  const mark = place !== null && html` data-address="${place}"`
  const help = fill(texts.help, { checkout: html`<code>${id}</code>` })
  return html`<section class="facts">
<dl>
${description !== null && renderFact(texts.description, bdi(description))}
${hasOwnOrder(checkout) && renderFact(texts.order, bdi(orderId))}
${isConverted && money && !isPriceFirst && renderFact(texts.price, price())}
${isConverted && renderFact(texts.rate, bdi(describeRate(rate, priceCurrency, symbol)))}
${address && renderFact(texts[address.label], renderAddress(address.text, mark))}
${isPayable && renderFact(texts.validUntil, renderTime(checkout.expiresAt, tag))}
</dl>
${isPayable && html`<p class="direct">${symbol === 'USDC' && html`${texts.usdc} `}${texts.direct}</p>`}
<p class="help">${help}${renderContact(view.store, id)}</p>
${checkout.status === 'OPEN' && !view.isPastExpiry && renderWayBack(view, texts, 'back')}
</section>`
}

/** The symbol that every option has, if it is the same one. */
function symbolOf(options: readonly Option[]): string | null {
  const symbols = new Set(options.map((option) => describeOption(option).symbol))
  return symbols.size === 1 ? ([...symbols][0] ?? null) : null
}

/** The value of one unit of the currency, with at least five significant digits. "≈" if more digits follow. */
function describeRate(rate: NonNullable<Checkout['rate']>, currency: string, symbol: string): string {
  const [worth, per] = [parseDecimal(rate.usdPerBase), parseDecimal(rate.perBase)]
  const numerator = worth.coefficient * 10n ** BigInt(per.scale)
  const denominator = per.coefficient * 10n ** BigInt(worth.scale)
  let decimals = 4
  while (decimals < rateDecimalsMax && (numerator * 10n ** BigInt(decimals)) / denominator < 10_000n)
    decimals++
  const scaled = numerator * 10n ** BigInt(decimals)
  const rounded = (2n * scaled + denominator) / (2n * denominator)
  const isExact = scaled % denominator === 0n
  return `1 ${currency} ${isExact ? '=' : '≈'} ${unitsToText(rounded, decimals)} ${symbol}`
}

/** Far beyond the least valuable currency. */
const rateDecimalsMax = 18

/** Links to the store's own help. Anything but an ordinary address is left out, whatever the database holds. */
export function renderContact(
  { supportEmail, supportUrl }: Pick<CheckoutView['store'], 'supportEmail' | 'supportUrl'>,
  subject: string,
): Html {
  const url = readWebUrl(supportUrl)
  const email = supportEmail !== null && emailForm.test(supportEmail) ? supportEmail : null
  const mailto = `mailto:${encodeURIComponent(email ?? '').replace('%40', '@')}?subject=${subject}`
  const shown = url && html`<bdi>${url.host}${url.pathname === '/' ? '' : url.pathname}</bdi>`
  return html`${email !== null && html`<br><a href="${mailto}">${email}</a>`}${
    url && html`<br><a href="${url.href}" rel="noreferrer" target="_blank">${shown}</a>`
  }`
}

/** A link to where the buyer came from. Like the link on the receipt, it names the host and adds the checkout's id. */
export function renderWayBack(
  { checkout }: CheckoutView,
  texts: Language['texts'],
  style: 'back' | 'button',
): Html | null {
  const url = storeLink(checkout.id, checkout.cancelUrl)
  if (!url) return null
  const text = fill(texts.returnTo, { host: bdi(url.host) })
  return html`<p><a class="${style}" href="${url.href}" rel="noreferrer"><span>${text}</span></a></p>`
}

/** A URL that the store set when it created the checkout. Only the checkout's id is added. */
export function storeLink(id: string, text: string | null): URL | null {
  const url = readWebUrl(text)
  if (url) url.search += `${url.search === '' ? '?' : '&'}checkoutId=${id}`
  return url
}

function readWebUrl(text: string | null): URL | null {
  return text !== null && /^https?:/i.test(text) && URL.canParse(text) ? new URL(text) : null
}

/** In groups that are easy to compare; a copied address has no gaps. */
export function renderAddress(address: string, attributes: Html | false = false): Html {
  const groups = address.match(/.{1,4}/g) ?? []
  return html`<bdi class="address"${attributes}>${groups.map((group) => html`<span>${group}</span>`)}</bdi>`
}

/** Enough to recognise one's own address in a sentence; not enough to pay to. */
export function renderShortAddress(address: string): Html {
  return html`<bdi dir="ltr"><code>${address.slice(0, 6)}…${address.slice(-4)}</code></bdi>`
}

/** Two for each language of the page: making a format takes fifty times as long as using it. */
const timeFormats = new Map<string, Intl.DateTimeFormat>()

function timeFormat(tag: string, exact: boolean): Intl.DateTimeFormat {
  const key = `${tag} ${exact}`
  const known = timeFormats.get(key)
  if (known) return known
  const timeStyle = exact ? 'medium' : 'short'
  const format = new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeStyle, timeZone: 'UTC' })
  timeFormats.set(key, format)
  return format
}

/** In UTC; the script rewrites it in the buyer's time zone, with seconds and the zone if it is `exact`. */
export function renderTime(time: Date, tag: string, exact = false): Html {
  const format = timeFormat(tag, exact)
  return html`<time datetime="${time.toISOString()}"${exact && html` data-exact`}>${format.format(time)} UTC</time>`
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

const segmenter = new Intl.Segmenter()

/** For a store without a logo. */
export function renderInitial(name: string): Html {
  const [first] = segmenter.segment(name)
  const initial = (first?.segment ?? '').toUpperCase()
  return html`<span class="mark" aria-hidden="true">${initial}</span>`
}

/** A row of a list of facts. */
export function renderFact(name: Html | string, value: Html | string): Html {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`
}
