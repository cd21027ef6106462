import type { CheckoutView } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language } from '../languages/language.ts'
import { bdi, describeOption, renderAddress } from './summary.ts'

/** Shown if a checkout can't be paid now: a payment in progress, a receipt, or why nothing can be paid. */
export function renderOutcome(view: CheckoutView, { texts }: Language): Html {
  const { checkout, payment, pendingTransaction, store } = view
  switch (checkout.status) {
    case 'PROCESSING': {
      const transaction = payment?.transaction ?? pendingTransaction
      const network = payment?.network ?? checkout.options[0]?.network ?? ''
      return renderMessage(
        'busy',
        texts.processing,
        html`${transaction !== null && html`<dl><div><dt>${texts.transaction}</dt><dd>${renderTransaction(network, transaction)}</dd></div></dl>`}
<noscript><p><a class="button" href="">${texts.checkAgain}</a></p></noscript>`,
      )
    }
    case 'COMPLETED':
      return renderMessage('good', { ...texts.completed, store: store.name }, renderReceipt(view, texts))
    case 'CANCELED':
      return renderMessage('over', texts.canceled)
    case 'EXPIRED':
    case 'OPEN':
      return renderMessage('over', texts.expired)
  }
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

function renderReceipt({ checkout, payment }: CheckoutView, texts: Language['texts']): Html {
  const { symbol = '', decimals = 0, name = '' } = payment ? describeOption(payment) : {}
  return html`<h3>${texts.receipt}</h3>
<dl class="receipt">
${
  payment &&
  html`<div><dt>${texts.amount}</dt><dd><bdi>${unitsToText(BigInt(payment.amount), decimals)} ${symbol} · ${name}</bdi></dd></div>
<div><dt>${texts.from}</dt><dd>${renderAddress(payment.payer)}</dd></div>
<div><dt>${texts.transaction}</dt><dd>${renderTransaction(payment.network, payment.transaction)}</dd></div>`
}
<div><dt>${texts.checkout}</dt><dd><code>${checkout.id}</code></dd></div>
</dl>
${checkout.successRedirectUrl !== null && /^https?:/.test(checkout.successRedirectUrl) && renderReturn(checkout.id, checkout.successRedirectUrl, texts)}`
}

/** The store set this URL when it created the checkout. Only the checkout's id is added, and the host is shown. */
function renderReturn(id: string, successRedirectUrl: string, texts: Language['texts']): Html {
  const url = new URL(successRedirectUrl)
  url.search += `${url.search === '' ? '?' : '&'}checkoutId=${id}`
  return html`<p><a id="return" class="button" href="${url.href}" rel="noreferrer"><span>${fill(texts.returnTo, { host: bdi(url.host) })}</span></a></p>
<p id="leaving" hidden>${fill(texts.leaving, { seconds: html`<span id="seconds"></span>` })} <button id="stay" type="button" class="quiet">${texts.stay}</button></p>`
}

function renderTransaction(caip2: string, hash: string): Html {
  const { network } = describeOption({ network: caip2, asset: '' })
  const text = html`<code class="hash">${hash}</code>`
  return network?.explorerUrl
    ? html`<a href="${network.explorerUrl}/tx/${hash}" rel="noreferrer" target="_blank">${text}</a>`
    : text
}
