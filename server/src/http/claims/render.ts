import { toShown } from '../../chains/families.ts'
import { formTokenOf } from '../../members/token.ts'
import { unitsToText } from '../../money.ts'
import { showCode } from '../../refunds/claims/claim.ts'
import type { ClaimView, Opened } from '../../refunds/claims/open.ts'
import { type Document, type Place, renderDocument } from '../page/document.ts'
import { fill, type Html, html, plain } from '../page/html.ts'
import type { ClaimMistake, Language } from '../page/languages/language.ts'
import { renderMessage, renderTransaction } from '../page/parts/outcome.ts'
import {
  bdi,
  describeOption,
  initialOf,
  renderAddress,
  renderContact,
  renderTime,
  sizeOf,
} from '../page/parts/summary.ts'

/** An address that was not taken, as it was typed. */
type Mistaken = { readonly mistake: ClaimMistake; readonly text: string }

/** The page on which a buyer says where a refund should go, in every state. It has no script. */
export function renderClaim(
  place: Place,
  language: Language,
  view: ClaimView,
  opened: Opened,
  mistaken: Mistaken | null,
): Document {
  const { refund, claim, store, state } = view
  const { texts, tag } = language
  const { symbol, decimals, name } = describeOption(refund)
  const amount = unitsToText(refund.amount, decimals)
  const parts = { store: bdi(store.name), amount: bdi(amount), asset: bdi(symbol), network: bdi(name) }
  const main = html`<main data-claim="${state}">
<section class="head">
<div class="store"><span class="mark" aria-hidden="true">${initialOf(store.name)}</span><h1>${fill(texts.claim.title, parts)}</h1></div>
${store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}
<p class="due">${texts.claim.amount}</p>
<p class="price${sizeOf(amount)}"><bdi><b>${amount}</b> <span>${symbol}</span></bdi></p>
<p class="on">${fill(texts.onNetwork, parts)}</p>
</section>
<div class="act">
${renderState(place, language, view, opened, mistaken, parts)}
</div>
<section class="facts">
<dl>
${refund.orderId !== null && html`<div><dt>${texts.order}</dt><dd>${bdi(refund.orderId)}</dd></div>`}
${refund.reason !== null && html`<div><dt>${texts.description}</dt><dd>${bdi(refund.reason)}</dd></div>`}
${state === 'open' && html`<div><dt>${texts.claim.before}</dt><dd>${renderTime(claim.expiresAt, tag)}</dd></div>`}
</dl>
<p class="help">${fill(texts.claim.help, { refund: html`<code>${refund.id}</code>` })}${renderContact(store, refund.id)}</p>
</section>
</main>`
  return renderDocument(place, language, {
    status: mistaken === null ? 200 : mistaken.mistake === 'unavailable' ? 503 : 422,
    title: texts.claim.title.replace('{store}', () => plain(store.name)),
    accentColor: store.accentColor,
    main,
    languageLinks,
    isStatic: true,
  })
}

/** Instead of a claim: the link is not known, or this browser has not opened it. */
export function renderNoClaim(place: Place, language: Language, message: 'unknown' | 'elsewhere'): Document {
  const said = language.texts.claim[message]
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

function renderState(
  place: Place,
  language: Language,
  view: ClaimView,
  opened: Opened,
  mistaken: Mistaken | null,
  parts: Parts,
): Html {
  const { refund, claim, state } = view
  const texts = language.texts.claim
  const address = claim.named && renderNamed(texts.address, toShown(refund.network, claim.named.address))
  switch (state) {
    case 'open':
      return renderForm(place, language, view, opened, mistaken, parts)
    case 'named':
      return renderSaid(
        null,
        texts.named,
        parts,
        html`<p class="code"><span id="code">${texts.code}</span> <strong aria-labelledby="code" dir="ltr">${showCode(claim.named?.code ?? '')}</strong></p>
<p class="hint">${texts.codeHint}</p>
${address}
<p class="hint">${texts.wrong}</p>`,
      )
    case 'confirmed':
      return renderSaid('busy', texts.confirmed, parts, address)
    case 'returned':
      return renderSaid('good', texts.returned, parts, html`${address}${renderReturned(language, view)}`)
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
  return html`<section class="outcome ${mood ?? ''} claim" aria-labelledby="status">
${mood && html`<span class="sign" aria-hidden="true"></span>`}
<h2 id="status">${title}</h2>
<p>${fill(text, parts)}</p>
${more}
</section>`
}

function renderNamed(label: string, address: string): Html {
  return html`<dl><div><dt>${label}</dt><dd>${renderAddress(address)}</dd></div></dl>`
}

function renderReturned({ texts }: Language, { refund }: ClaimView): Html | null {
  return refund.transaction === null
    ? null
    : html`<dl><div><dt>${texts.transaction}</dt><dd>${renderTransaction(refund.network, refund.transaction)}</dd></div></dl>`
}

/** The server checks the address and answers in the page's language, unlike the browser's own check. */
function renderForm(
  { path }: Place,
  language: Language,
  { refund }: ClaimView,
  opened: Opened,
  mistaken: Mistaken | null,
  parts: Parts,
): Html {
  const texts = language.texts.claim
  const described = mistaken ? 'mistake hint' : 'hint'
  return html`<form class="claim" method="post" action="${path}/refund/${refund.id}?lang=${language.tag}" novalidate>
<h2 id="status">${texts.ask.title}</h2>
<p class="about">${fill(texts.ask.text, parts)}</p>
${mistaken && html`<p class="notice" role="alert" id="mistake">${fill(texts.mistakes[mistaken.mistake], parts)}</p>`}
<label for="address">${fill(texts.label, parts)}</label>
<input id="address" name="address" dir="ltr" maxlength="100" value="${mistaken?.text ?? ''}" autocomplete="off" autocapitalize="off" spellcheck="false" required aria-describedby="${described}"${mistaken && html` aria-invalid="true"`}>
<p class="hint" id="hint">${fill(texts.hint, parts)}</p>
<input type="hidden" name="formToken" value="${formTokenOf(opened.secret)}">
<button>${texts.button}</button>
<p class="hint">${texts.once}</p>
</form>`
}
