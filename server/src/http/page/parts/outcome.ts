import { type CheckoutView, type Note, returnedOf, type ShownRefund } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { type Asked, queryOf } from '../choice.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language } from '../languages/language.ts'
import {
  bdi,
  describeOption,
  renderAddress,
  renderShortAddress,
  renderTime,
  renderWayBack,
  storeLink,
} from './summary.ts'

/** Shown if a checkout can't be paid now: a payment in progress, a receipt, or why nothing can be paid. */
export function renderOutcome(view: CheckoutView, language: Language): Html {
  const { checkout, payment, pending, store } = view
  const { texts } = language
  switch (checkout.status) {
    case 'PROCESSING': {
      const sent = payment ?? pending
      return renderMessage(
        'busy',
        texts.processing,
        html`${sent && html`<dl><div><dt>${texts.transaction}</dt><dd>${renderTransaction(sent.network, sent.transaction)}</dd></div></dl>`}
${renderCheckAgain(texts)}`,
      )
    }
    case 'COMPLETED':
      return renderMessage(
        isReturned(view) ? 'over' : 'good',
        { ...completedTexts(view, texts), store: store.name },
        renderReceipt(view, language),
      )
    case 'CANCELED':
      return renderMessage('over', texts.canceled, renderWayBack(view, texts, 'button'))
    case 'EXPIRED':
    case 'OPEN':
      return renderMessage('over', texts.expired, renderWayBack(view, texts, 'button'))
  }
}

/** Whether all of the payment is back with the buyer. The checkout was paid all the same. */
export function isReturned({ payment, refunds }: CheckoutView): boolean {
  return payment !== null && returnedOf(payment.amount, refunds) === 'all'
}

function completedTexts(view: CheckoutView, texts: Language['texts']) {
  const { payment, refunds } = view
  if (isReturned(view)) return texts.refunds.whole
  const isPart = payment !== null && returnedOf(payment.amount, refunds) === 'part'
  return isPart ? { ...texts.completed, text: texts.refunds.part } : texts.completed
}

/** The buyer has named a transaction, and it is being looked for. */
export function renderAnnounced({ announced }: CheckoutView, asked: Asked): Html {
  const { texts } = asked.language
  return renderMessage(
    'busy',
    texts.announced,
    html`<dl><div><dt>${texts.transaction}</dt>${announced.map((hash) => html`<dd><code class="hash">${hash}</code></dd>`)}</div></dl>
${renderCheckAgain(texts)}
<p><a class="back" href="${queryOf(asked, { isUnsent: true })}" data-way="unsent">${texts.notSent}</a></p>`,
  )
}

/** Money has arrived that doesn't complete the checkout. What happens next is for the store to say. */
export function renderArrived({ notes }: CheckoutView, { texts }: Language): Html {
  return renderMessage('over', texts.arrived, renderNoteList(notes, texts))
}

/** The same as an addition to any other state, because the buyer must see it in every one. */
export function renderNotes({ notes }: CheckoutView, { texts }: Language): Html | null {
  if (notes.length === 0) return null
  return html`<section aria-labelledby="notes"><h2 id="notes">${texts.noteTitle}</h2>${renderNoteList(notes, texts)}</section>`
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
    return [
      html`<li>${fill(note, parts)}<br>${renderTransaction(where.network, where.transaction)}${refunds.map((refund) => html`<p>${renderRefund(where, refund, texts)}</p>`)}</li>`,
    ]
  })
}

/** What was returned, where to, and in which transaction. What no block shows yet is the store's word. */
function renderRefund(
  where: { readonly network: string; readonly asset: string },
  { status, way, amount, recipient, reason, transaction }: ShownRefund,
  texts: Language['texts'],
): Html {
  const { symbol, decimals } = describeOption(where)
  const { refunds } = texts
  const text = {
    SENT: way === 'sent' ? refunds.named : refunds.sent,
    COMPLETED: refunds.completed,
    DECLARED: refunds.declared,
  }
  const parts = {
    amount: unitsToText(BigInt(amount), decimals),
    asset: symbol,
    address: renderShortAddress(recipient ?? ''),
  }
  const isSeen = status !== 'DECLARED' && transaction !== null
  return html`${fill(text[status], parts)}${reason !== null && html`<br><q>${bdi(reason)}</q>`}${isSeen && html`<br>${renderTransaction(where.network, transaction)}`}`
}

/** For browsers without script, which are not told of changes. */
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

/** A buyer who comes back to see what was returned is not sent away again. */
function renderReceipt({ checkout, payment, refunds }: CheckoutView, { tag, texts }: Language): Html {
  const { symbol = '', decimals = 0, name = '' } = payment ? describeOption(payment) : {}
  const back = storeLink(checkout.id, checkout.successRedirectUrl)
  return html`<h3>${texts.receipt}</h3>
<dl class="receipt">
${
  payment &&
  html`<div><dt>${texts.amount}</dt><dd><bdi>${unitsToText(BigInt(payment.amount), decimals)} ${symbol} · ${name}</bdi></dd></div>
<div><dt>${texts.date}</dt><dd>${renderTime(payment.paidAt, tag, true)}</dd></div>
<div><dt>${texts.from}</dt><dd>${renderAddress(payment.payer)}</dd></div>
<div><dt>${texts.transaction}</dt><dd>${renderTransaction(payment.network, payment.transaction)}</dd></div>
${refunds.map((refund) => html`<div><dt>${texts.refund}</dt><dd>${renderRefund(payment, refund, texts)}</dd></div>`)}`
}
<div><dt>${texts.checkout}</dt><dd><code>${checkout.id}</code></dd></div>
</dl>
<p class="others"><button id="print" type="button" class="quiet" data-script hidden>${texts.print}</button>${back && html`<a id="return" class="button" href="${back.href}" rel="noreferrer"><span>${fill(texts.returnTo, { host: bdi(back.host) })}</span></a>`}</p>
${back && refunds.length === 0 && html`<p id="leaving" hidden>${fill(texts.leaving, { seconds: html`<span id="seconds"></span>` })} <button id="stay" type="button" class="quiet">${texts.stay}</button></p>`}`
}

export function renderTransaction(caip2: string, hash: string): Html {
  const { network } = describeOption({ network: caip2, asset: '' })
  const text = html`<code class="hash">${hash}</code>`
  return network?.explorerUrl
    ? html`<a href="${network.explorerUrl}/tx/${hash}" rel="noreferrer" target="_blank">${text}</a>`
    : text
}
