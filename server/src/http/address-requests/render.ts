import { toShown } from '../../chains/families.ts'
import { formTokenOf } from '../../members/token.ts'
import { unitsToText } from '../../money.ts'
import { showCode } from '../../refunds/address-requests/address-request.ts'
import type { AddressRequestView, Opened } from '../../refunds/address-requests/name.ts'
import { type Document, type PageHost, renderDocument } from '../page/document.ts'
import { fill, type Html, html, plain } from '../page/html.ts'
import type { AddressMistake, Language } from '../page/languages/language.ts'
import { renderMessage, renderTransaction } from '../page/parts/outcome.ts'
import {
  bdi,
  describeOption,
  renderAddress,
  renderContact,
  renderFact,
  renderInitial,
  renderTime,
  sizeOf,
} from '../page/parts/summary.ts'

/** An address that was not taken, as it was typed. */
type Mistaken = { readonly mistake: AddressMistake; readonly text: string }

/** What the page of an address request is rendered from. */
export type AddressRequestPage = {
  readonly place: PageHost
  readonly language: Language
  readonly view: AddressRequestView
  readonly opened: Opened
  readonly mistaken: Mistaken | null
}

/** The page on which a buyer says where a refund should go, in every state. It has no script. */
export function renderAddressRequest(page: AddressRequestPage): Document {
  const { place, language, mistaken } = page
  const { refund, addressRequest, store, state } = page.view
  const { texts, tag } = language
  const { symbol, decimals, name } = describeOption(refund)
  const amount = unitsToText(refund.amount, decimals)
  const parts = { store: bdi(store.name), amount: bdi(amount), asset: bdi(symbol), network: bdi(name) }
  const help = fill(texts.addressRequest.help, { refund: html`<code>${refund.id}</code>` })
  const main = html`<main data-address-request="${state}">
<section class="head">
<div class="store">${renderInitial(store.name)}<h1>${fill(texts.addressRequest.title, parts)}</h1></div>
${store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}
<p class="due">${texts.addressRequest.amount}</p>
<p class="price${sizeOf(amount)}"><bdi><b>${amount}</b> <span>${symbol}</span></bdi></p>
<p class="on">${fill(texts.onNetwork, parts)}</p>
</section>
<div class="act">
${renderState(page, parts)}
</div>
<section class="facts">
<dl>
${refund.orderId !== null && renderFact(texts.order, bdi(refund.orderId))}
${refund.reason !== null && renderFact(texts.description, bdi(refund.reason))}
${state === 'open' && renderFact(texts.addressRequest.before, renderTime(addressRequest.expiresAt, tag))}
</dl>
<p class="help">${help}${renderContact(store, refund.id)}</p>
</section>
</main>`
  return renderDocument(place, language, {
    status: mistaken === null ? 200 : mistaken.mistake === 'unavailable' ? 503 : 422,
    title: texts.addressRequest.title.replace('{store}', () => plain(store.name)),
    accentColor: store.accentColor,
    main,
    languageLinks,
    isStatic: true,
  })
}

/** Instead of an address request: the link is not known, or this browser has not opened it. */
export function renderNoAddressRequest(
  place: PageHost,
  language: Language,
  message: 'unknown' | 'elsewhere',
): Document {
  const said = language.texts.addressRequest[message]
  return renderDocument(place, language, {
    status: message === 'unknown' ? 404 : 403,
    title: said.title,
    accentColor: null,
    main: html`<main class="alone"><div class="act">${renderMessage('over', said, null, 1)}</div></main>`,
    languageLinks,
    isStatic: true,
  })
}

function languageLinks(tag: string): string {
  return `?lang=${tag}`
}

type Parts = Readonly<Record<'store' | 'amount' | 'asset' | 'network', Html>>

function renderState(page: AddressRequestPage, parts: Parts): Html {
  const { refund, addressRequest, state } = page.view
  const texts = page.language.texts.addressRequest
  const address =
    addressRequest.named && renderNamed(texts.address, toShown(refund.network, addressRequest.named.address))
  switch (state) {
    case 'open':
      return renderForm(page, parts)
    case 'named': {
      const code = showCode(addressRequest.named?.code ?? '')
      const more = html`<p class="code"><span id="code">${texts.code}</span>
<strong aria-labelledby="code" dir="ltr">${code}</strong></p>
<p class="hint">${texts.codeHint}</p>
${address}
<p class="hint">${texts.wrong}</p>`
      return renderSaid(null, texts.named, parts, more)
    }
    case 'confirmed':
      return renderSaid('busy', texts.confirmed, parts, address)
    case 'returned':
      return renderSaid('good', texts.returned, parts, html`${address}${renderReturned(page)}`)
    case 'used':
    case 'expired':
    case 'canceled':
      return renderSaid('over', texts[state], parts, null)
  }
}

function renderSaid(
  /** Null if it is the buyer's turn. */
  mood: 'busy' | 'good' | 'over' | null,
  { title, text }: { readonly title: string; readonly text: string },
  parts: Parts,
  more: Html | null,
): Html {
  return html`<section class="outcome ${mood ?? ''} address-request" aria-labelledby="status">
${mood && html`<span class="sign" aria-hidden="true"></span>`}
<h2 id="status">${title}</h2>
<p>${fill(text, parts)}</p>
${more}
</section>`
}

function renderNamed(label: string, address: string): Html {
  return html`<dl>${renderFact(label, renderAddress(address))}</dl>`
}

function renderReturned({ language: { texts }, view: { refund } }: AddressRequestPage): Html | null {
  if (refund.transaction === null) return null
  const transaction = renderTransaction(refund.network, refund.transaction)
  return html`<dl>${renderFact(texts.transaction, transaction)}</dl>`
}

/** The server checks the address and answers in the page's language, unlike the browser's own check. */
function renderForm({ place, language, view, opened, mistaken }: AddressRequestPage, parts: Parts): Html {
  const texts = language.texts.addressRequest
  const action = `${place.path}/refund/${view.refund.id}?lang=${language.tag}`
  const mistake = mistaken && fill(texts.mistakes[mistaken.mistake], parts)
  const described = mistaken ? 'mistake hint' : 'hint'
  const invalid = mistaken && html` aria-invalid="true"`
  return html`<form class="address-request" method="post" action="${action}" novalidate>
<h2 id="status">${texts.ask.title}</h2>
<p class="about">${fill(texts.ask.text, parts)}</p>
${mistake && html`<p class="notice" role="alert" id="mistake">${mistake}</p>`}
<label for="address">${fill(texts.label, parts)}</label>
<input id="address" name="address" dir="ltr" maxlength="100" value="${mistaken?.text ?? ''}" autocomplete="off"
autocapitalize="off" spellcheck="false" required aria-describedby="${described}"${invalid}>
<p class="hint" id="hint">${fill(texts.hint, parts)}</p>
<input type="hidden" name="formToken" value="${formTokenOf(opened.secret)}">
<button>${texts.button}</button>
<p class="hint">${texts.once}</p>
</form>`
}
