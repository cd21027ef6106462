import { type BuyerReceipt, numberText } from '../../checkouts/buyer-receipts/receipt.ts'
import type { CheckoutView } from '../../checkouts/view.ts'
import { unitsToText } from '../../money.ts'
import { type Document, type PageHost, renderDocument } from '../page/document.ts'
import { fill, type Html, html, plain } from '../page/html.ts'
import type { Language } from '../page/languages/language.ts'
import { renderMessage, renderTransaction } from '../page/parts/outcome.ts'
import { bdi, describeOption, formatPrice, renderFact } from '../page/parts/summary.ts'

/** What became of the form. */
export type Said = keyof Language['texts']['buyerReceipt']['said']

type Shown = {
  readonly view: CheckoutView
  readonly receipt: BuyerReceipt
  /** Whether it can be mailed. */
  readonly isMailed: boolean
  readonly said: Said | null
}

/** The receipt as it is printed and saved. What only serves the screen is left out on paper. */
export function renderBuyerReceipt(place: PageHost, language: Language, shown: Shown): Document {
  const { view, receipt, isMailed, said } = shown
  const { texts, tag } = language
  const { number, print, back, void: gone } = texts.buyerReceipt
  const query = `?lang=${tag}`
  const main = html`<main class="alone buyer-receipt"><div class="act">
<header><h1>${texts.receipt}</h1>${view.store.mode === 'test' && html`<p class="badge">${texts.testMode}</p>`}</header>
${receipt.voidAt && html`<div class="notice" role="note"><h2>${gone.title}</h2><p>${gone.text}</p></div>`}
${renderSeller(receipt, texts)}
<dl>
${renderFact(number, html`<b>${bdi(numberText(receipt.number))}</b>`)}
${renderFacts(shown, language)}
</dl>
<p class="others"><button id="print" type="button" data-script hidden>${print}</button><a class="button quiet"
href="${place.path}/${view.checkout.id}${query}">${back}</a></p>
${isMailed && !receipt.voidAt && renderForm(texts, said, query)}
</div></main>`
  return renderDocument(place, language, {
    status: 200,
    // Browsers suggest it as the name of the file.
    title: `${texts.receipt} ${numberText(receipt.number)} · ${plain(receipt.seller.storeName)}`,
    accentColor: view.store.accentColor,
    main,
    languageLinks: (lang) => `?lang=${lang}`,
  })
}

/** It is paid, and its receipt has no number yet. */
export function renderWaiting(place: PageHost, language: Language): Document {
  const { texts } = language
  const again = html`<p><a class="button" href="">${texts.checkAgain}</a></p>`
  const said = renderMessage('busy', texts.buyerReceipt.waiting, again, 1)
  return renderDocument(place, language, {
    status: 200,
    title: texts.buyerReceipt.waiting.title,
    accentColor: null,
    main: html`<main class="alone"><div class="act">${said}</div></main>`,
    languageLinks: (lang) => `?lang=${lang}`,
    isStatic: true,
  })
}

function renderSeller({ seller }: BuyerReceipt, texts: Language['texts']): Html {
  const { storeName, legalName, legalAddress, taxId } = seller
  const lines = [
    ...(legalName === null || legalName === storeName ? [] : [bdi(legalName)]),
    ...(legalAddress?.split('\n').map(bdi) ?? []),
    ...(taxId === null ? [] : [fill(texts.buyerReceipt.taxId, { number: bdi(taxId) })]),
  ]
  return html`<p class="seller"><strong>${bdi(storeName)}</strong>${lines.map((line) => html`<br>${line}`)}</p>`
}

function renderFacts({ view, receipt }: Shown, { tag, texts }: Language): Html {
  const { checkout, payment } = view
  const { symbol, decimals, name } = describeOption(receipt)
  const amount = `${unitsToText(BigInt(receipt.amount), decimals)} ${symbol}`
  // A void receipt's payment is gone, and another one may have been made since.
  const paid = receipt.voidAt === null ? payment : null
  return html`${renderFact(texts.buyerReceipt.date, dayText(receipt.issuedOn, tag))}
${renderFact(texts.order, bdi(checkout.orderId))}
${checkout.description !== null && renderFact(texts.description, bdi(checkout.description))}
${renderFact(texts.price, bdi(formatPrice(receipt.priceAmount, receipt.priceCurrency, tag)))}
${renderFact(texts.amountPaid, bdi(amount))}
${renderFact(texts.network, bdi(name))}
${paid && renderFact(texts.transaction, renderTransaction(paid.network, paid.transaction))}
${renderFact(texts.checkout, html`<code>${checkout.id}</code>`)}`
}

/** The receipt's day, which is the store's and not the reader's. */
export function dayText(day: string, tag: string): string {
  return new Intl.DateTimeFormat(tag, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(day))
}

function renderForm(texts: Language['texts'], said: Said | null, query: string): Html {
  const { email, emailAbout, send, said: sentences } = texts.buyerReceipt
  const isWrong = said === 'wrong' && html` aria-invalid="true" aria-describedby="said"`
  return html`<form method="post" action="${query}" id="mail"><h2>${texts.mailIt}</h2>
${said && html`<p class="notice" id="said" role="${said === 'taken' ? 'status' : 'alert'}">${sentences[said]}</p>`}
<label for="email">${email}</label>
<input id="email" name="email" type="email" maxlength="254" autocomplete="email" dir="ltr" required${isWrong}>
<p class="hint">${emailAbout}</p>
<button class="quiet">${send}</button></form>`
}
