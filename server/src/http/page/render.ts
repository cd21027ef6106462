import type { PaymentRequirements } from '@farthing/sdk'
import { type CheckoutView, digestOf, isPayable } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { type Document, type Place, renderDocument } from './document.ts'
import { html, json, plain } from './html.ts'
import type { Language, Notice } from './languages/language.ts'
import { renderWays, termsOf } from './parts/open.ts'
import { renderMessage, renderOutcome } from './parts/outcome.ts'
import { renderNotes, renderSend } from './parts/send.ts'
import { formatPrice, renderFacts, renderHead } from './parts/summary.ts'

/** What the page's URL asks for, besides the checkout. */
export type Asked = {
  readonly language: Language
  /** `?lang=…` if the URL names the language, so that forms keep it; otherwise empty. */
  readonly query: string
  readonly notice: Notice | null
  readonly isSending: boolean
}

/** The whole payment page, in any state of the checkout. It is correct without the script. */
export function renderPage(
  ctx: Context,
  place: Place,
  view: CheckoutView,
  accepts: readonly PaymentRequirements[],
  asked: Asked,
  now: Date,
): Document {
  const { language } = asked
  const { checkout, store } = view
  const isOpen = isPayable(view)
  const price = formatPrice(checkout.priceAmount, checkout.priceCurrency, language.tag)
  const main = html`<main data-status="${checkout.status}">
${renderHead(view, language, place.path)}
<div class="act">
${renderNotes(view.notes, language.texts)}
${
  isOpen
    ? html`${renderWays(view, language, `${place.url}/${checkout.id}`)}
${renderSend(view, language, { ...asked, path: place.path })}`
    : renderOutcome(view, language)
}
</div>
${renderFacts(view, language)}
<script type="application/json" id="terms">${json(termsOf(ctx, view, accepts, digestOf(view), now))}</script>
</main>`
  const title = isOpen
    ? fillPlain(language.texts.title, { amount: price, store: store.name })
    : titleOf(view, language)
  return renderDocument(place, language, { status: 200, title, accentColor: store.accentColor, main })
}

export function renderNotFound(place: Place, language: Language): Document {
  return renderAlone(place, language, 404, 'notFound')
}

/** Browsers get this instead of a problem's JSON. */
export function renderUnavailable(place: Place, language: Language, status: number): Document {
  return renderAlone(place, language, status, 'unavailable')
}

function renderAlone(
  place: Place,
  language: Language,
  status: number,
  message: 'notFound' | 'unavailable',
): Document {
  const { title } = language.texts[message]
  const main = html`<main class="alone"><div class="act">${renderMessage('over', language.texts[message], null, 1)}</div></main>`
  return renderDocument(place, language, { status, title, accentColor: null, main })
}

function titleOf({ checkout, store }: CheckoutView, { texts }: Language): string {
  const messages = {
    OPEN: texts.expired,
    EXPIRED: texts.expired,
    PROCESSING: texts.processing,
    COMPLETED: texts.completed,
    CANCELED: texts.canceled,
  }
  return `${messages[checkout.status].title} · ${plain(store.name)}`
}

function fillPlain(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name) => plain(parts[name] ?? ''))
}
