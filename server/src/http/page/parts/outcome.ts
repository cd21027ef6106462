import { type CheckoutView, type Note, returnedOf, type ShownRefund } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { type Asked, queryOf } from '../choice.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language } from '../languages/language.ts'
import {
  bdi,
  describeOption,
  renderAddress,
  renderFact,
  renderShortAddress,
  renderTime,
  renderWayBack,
  storeLink,
} from './summary.ts'

/** Where a paid checkout's receipt is, and whether it can be mailed. */
export type ReceiptLinks = { readonly href: string; readonly isMailed: boolean }

/** Shown if a checkout can't be paid now: a payment in progress, a receipt, or why nothing can be paid. */
export function renderOutcome(view: CheckoutView, language: Language, receipt: ReceiptLinks): Html {
  const { checkout, payment, pending, store } = view
  const { texts } = language
  switch (checkout.status) {
    case 'PROCESSING': {
      const sent = payment ?? pending
      return renderMessage(
        'busy',
        texts.processing,
        html`${sent && html`<dl>${renderSent(texts, sent)}</dl>`}
${renderCheckAgain(texts)}`,
      )
    }
    case 'COMPLETED':
      return renderMessage(
        isReturned(view) ? 'over' : 'good',
        { ...completedTexts(view, texts), store: store.name },
        renderReceipt(view, language, receipt),
      )
    case 'CANCELED':
      return renderMessage('over', texts.canceled, renderWayBack(view, texts, 'button'))
    case 'EXPIRED':
    case 'OPEN':
      return renderMessage('over', texts.expired, renderWayBack(view, texts, 'button'))
  }
}

/** Whether all of the payment was returned to the buyer. The checkout still counts as paid. */
export function isReturned({ payment, refunds }: CheckoutView): boolean {
  return payment !== null && returnedOf(payment.amount, refunds) === 'all'
}

function completedTexts(view: CheckoutView, texts: Language['texts']) {
  const { payment, refunds } = view
  if (isReturned(view)) return texts.refunds.whole
  const isPart = payment !== null && returnedOf(payment.amount, refunds) === 'part'
  return isPart ? { ...texts.completed, text: texts.refunds.part } : texts.completed
}

/** Shown while we look for a transaction that the buyer has named. */
export function renderAnnounced({ announced }: CheckoutView, asked: Asked): Html {
  const { texts } = asked.language
  const hashes = announced.map((hash) => html`<dd><code class="hash">${hash}</code></dd>`)
  return renderMessage(
    'busy',
    texts.announced,
    html`<dl><div><dt>${texts.transaction}</dt>${hashes}</div></dl>
${renderCheckAgain(texts)}
<p><a class="back" href="${queryOf(asked, { isUnsent: true })}" data-way="unsent">${texts.notSent}</a></p>`,
  )
}

/** Shown when money has arrived that doesn't complete the checkout. The store decides what happens next. */
export function renderArrived({ notes }: CheckoutView, { texts }: Language): Html {
  return renderMessage('over', texts.arrived, renderNoteList(notes, texts))
}

/** The same notes in addition to any other state, because the buyer must see them in every state. */
export function renderNotes({ notes }: CheckoutView, { texts }: Language): Html | null {
  if (notes.length === 0) return null
  return html`<section aria-labelledby="notes"><h2 id="notes">${texts.noteTitle}</h2>
${renderNoteList(notes, texts)}</section>`
}

function renderNoteList(notes: readonly Note[], texts: Language['texts']): Html {
  const isSettled = notes.every((note) => note.isSettled)
  return html`<ul class="notes${isSettled && ' settled'}">${renderNoteItems(notes, texts)}</ul>`
}

function renderNoteItems(notes: readonly Note[], texts: Language['texts']): Html[] {
  return notes.flatMap(({ disposition, amount, due, refunds, ...where }) => {
    if (disposition === 'exact') return []
    const { symbol, decimals } = describeOption(where)
    const text = (units: string) => unitsToText(BigInt(units), decimals)
    const parts = { asset: symbol, amount: text(amount), due: text(due) }
    const note = refunds.length > 0 ? texts.refunds.arrived : texts.notes[disposition]
    const transaction = renderTransaction(where.network, where.transaction)
    const returned = refunds.map((refund) => html`<p>${renderRefund(where, refund, texts)}</p>`)
    return [html`<li>${fill(note, parts)}<br>${transaction}${returned}</li>`]
  })
}

/** A refund with its recipient and transaction. Until a block shows it, it is only the store's statement. */
function renderRefund(
  where: { readonly network: string; readonly asset: string },
  { status, way, amount, recipient, reason, transaction }: ShownRefund,
  texts: Language['texts'],
): Html {
  const { symbol, decimals } = describeOption(where)
  const { refunds } = texts
  const text = {
    SENT: way === 'self-sent' ? refunds.named : refunds.sent,
    COMPLETED: refunds.completed,
    DECLARED: refunds.declared,
  }
  const parts = {
    amount: unitsToText(BigInt(amount), decimals),
    asset: symbol,
    address: renderShortAddress(recipient ?? ''),
  }
  const isSeen = status !== 'DECLARED' && transaction !== null
  const why = reason !== null && html`<br><q>${bdi(reason)}</q>`
  const seen = isSeen && html`<br>${renderTransaction(where.network, transaction)}`
  return html`${fill(text[status], parts)}${why}${seen}`
}

/** For browsers without script, which are not notified of changes. */
function renderCheckAgain(texts: Language['texts']): Html {
  return html`<noscript><p><a class="button" href="">${texts.checkAgain}</a></p></noscript>`
}

export function renderMessage(
  mood: 'busy' | 'good' | 'over',
  { title, text, store = '' }: { title: string; text: string; store?: string },
  more: Html | null = null,
  level: 1 | 2 = 2,
): Html {
  return html`<section class="outcome ${mood}" aria-labelledby="status">
<span class="sign" aria-hidden="true"></span>
<h${level} id="status" tabindex="-1">${title}</h${level}>
<p>${fill(text, { store: bdi(store) })}</p>
${more}
</section>`
}

/** A receipt with refunds does not lead back to the store by itself: the buyer came to see them. */
function renderReceipt(
  { checkout, payment, refunds }: CheckoutView,
  { tag, texts }: Language,
  { href, isMailed }: ReceiptLinks,
): Html {
  const { symbol = '', decimals = 0, name = '' } = payment ? describeOption(payment) : {}
  const back = storeLink(checkout.id, checkout.successRedirectUrl)
  const paid = payment && bdi(`${unitsToText(BigInt(payment.amount), decimals)} ${symbol} · ${name}`)
  const to = back && html`<span>${fill(texts.returnTo, { host: bdi(back.host) })}</span>`
  const leaving = fill(texts.leaving, { seconds: html`<span id="seconds"></span>` })
  const stay = html`<button id="stay" type="button" class="quiet">${texts.stay}</button>`
  return html`<h3>${texts.receipt}</h3>
<dl class="receipt">
${
  payment &&
  html`${renderFact(texts.amount, paid ?? '')}
${renderFact(texts.date, renderTime(payment.paidAt, tag, true))}
${renderFact(texts.from, renderAddress(payment.payer))}
${renderSent(texts, payment)}
${refunds.map((refund) => renderFact(texts.refund, renderRefund(payment, refund, texts)))}`
}
${renderFact(texts.checkout, html`<code>${checkout.id}</code>`)}
</dl>
<p class="others"><a class="button quiet" href="${href}">${texts.save}</a>${
    isMailed && html`<a class="button quiet" href="${href}#mail">${texts.mailIt}</a>`
  }${back && html`<a id="return" class="button" href="${back.href}" rel="noreferrer">${to}</a>`}</p>
${back && refunds.length === 0 && html`<p id="leaving" hidden>${leaving} ${stay}</p>`}`
}

function renderSent(
  texts: Language['texts'],
  { network, transaction }: { readonly network: string; readonly transaction: string },
): Html {
  return renderFact(texts.transaction, renderTransaction(network, transaction))
}

export function renderTransaction(caip2: string, hash: string): Html {
  const { network } = describeOption({ network: caip2, asset: '' })
  const text = html`<code class="hash">${hash}</code>`
  return network?.explorerUrl
    ? html`<a href="${network.explorerUrl}/tx/${hash}" rel="noreferrer" target="_blank">${text}</a>`
    : text
}
