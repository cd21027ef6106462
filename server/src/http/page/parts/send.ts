import { paymentLink } from '../../../chains/wallet-links.ts'
import type { Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView, Note, ReservedTransfer } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { fill, type Html, html, plain } from '../html.ts'
import type { Language, Notice } from '../languages/language.ts'
import { renderQr } from './qr.ts'
import { bdi, describeOption, renderAddress, renderTime } from './summary.ts'

/**
 * Paying without a signature: a form reserves an exact amount or a reference for the buyer, who sends the money from any
 * wallet or exchange. Plain forms, because browsers without script pay this way too.
 */
export function renderSend(
  { checkout, store, transfers }: CheckoutView,
  { tag, texts }: Language,
  asked: {
    readonly notice: Notice | null
    readonly isSending: boolean
    readonly path: string
    readonly query: string
  },
): Html {
  const { notice, isSending, path, query } = asked
  const action = (verb: string) => `${path}/${checkout.id}/${verb}${query}`
  const isOpen = isSending || notice !== null || transfers.length > 0
  const [option] = checkout.options
  const others = checkout.options.filter(({ network }) => transfers.every((each) => each.network !== network))
  return html`<details id="send"${isOpen && html` open`}>
<summary>${texts.sendTitle}</summary>
<p>${texts.sendAbout}</p>
${notice !== null && html`<p class="notice" role="alert">${fill(texts.notices[notice], { network: option ? describeOption(option).name : '' })}</p>`}
${transfers.map((transfer) => renderTransfer(transfer, store.name, tag, texts))}
${
  others.length > 0 &&
  html`<form method="post" action="${action('transfer')}">${renderChoice(others, checkout.options.length === 1, texts)}</form>`
}
${
  transfers.some(({ reference }) => reference === null) &&
  html`<form class="hash" method="post" action="${action('transaction')}">
<h3>${texts.hashTitle}</h3>
<label for="hash">${texts.hashLabel}</label>
<div class="row"><input id="hash" name="hash" dir="ltr" required maxlength="66" pattern="\\s*0x[0-9a-fA-F]{64}\\s*" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="0x…"><button>${texts.hashButton}</button></div>
</form>`
}
</details>`
}

/** The networks that are left to choose from. If only one of several is left, the button names it. */
function renderChoice(others: readonly Option[], isOnly: boolean, texts: Language['texts']): Html {
  const [first] = others
  if (others.length > 1)
    return html`<fieldset><legend>${texts.sendNetwork}</legend>${others.map(
      (option) =>
        html`<label><input type="radio" name="network" value="${option.network}"${option === first && html` checked`}> ${describeOption(option).name}</label>`,
    )}</fieldset><button>${texts.sendButton}</button>`
  if (!first) return html``
  const name = !isOnly && html` · ${bdi(describeOption(first).name)}`
  return html`<input type="hidden" name="network" value="${first.network}"><button><span>${texts.sendButton}${name}</span></button>`
}

function renderTransfer(
  transfer: ReservedTransfer,
  store: string,
  tag: string,
  texts: Language['texts'],
): Html {
  const { symbol, decimals, name, network } = describeOption(transfer)
  const amount = unitsToText(BigInt(transfer.amount), decimals)
  const link = paymentLink(network, transfer, amount, plain(store))
  const exact = html`<bdi class="exact"><b>${amount}</b> ${symbol}</bdi>`
  const address = renderAddress(transfer.payTo)
  const copy = (text: string, label: string) =>
    html`<button type="button" class="quiet" data-script hidden data-copy="${text}" data-done="${texts.copied}" aria-label="${texts.copy}: ${label}">${texts.copy}</button>`
  // A transfer that carries more than an address and an amount gets a link, not copy buttons.
  const facts =
    link === null
      ? html`<div><dt>${texts.sendAmount}</dt><dd class="row">${exact}${copy(amount, texts.sendAmount)}</dd><dd class="hint">${texts.sendExact}</dd></div>
<div><dt>${texts.sendAddress}</dt><dd class="row">${address}${copy(transfer.payTo, texts.sendAddress)}</dd><dd class="hint">${texts.sendCheck}</dd></div>
<div><dt>${texts.network}</dt><dd><bdi>${name}</bdi></dd></div>`
      : html`<div><dt>${texts.sendAmount}</dt><dd>${exact}</dd></div>
<div><dt>${texts.payTo}</dt><dd>${address}</dd></div>`
  return html`<div class="transfer">
<p class="warning"><strong>${fill(texts.sendWarning, { asset: symbol, network: html`<bdi>${name}</bdi>` })}</strong></p>
${link !== null && html`<div class="linked">${renderQr(link, texts.qrPayment)}<p>${texts.sendLinked}</p><a class="button" href="${link}">${texts.sendLink}</a></div>`}
<dl>
${facts}
<div><dt>${texts.validUntil}</dt><dd>${renderTime(transfer.expiresAt, tag)}</dd></div>
</dl>
${link === null && html`${renderQr(transfer.payTo, texts.qrAddress)}<p class="hint">${texts.sendFee}</p>`}
</div>`
}

/** Money that arrived but didn't complete the checkout. The buyer must see it in every state. */
export function renderNotes(notes: readonly Note[], texts: Language['texts']): Html | null {
  const told = notes.flatMap(({ disposition, amount, ...where }) => {
    if (disposition === 'exact') return []
    const { symbol, decimals } = describeOption(where)
    const parts = { asset: symbol, amount: unitsToText(BigInt(amount), decimals) }
    return html`<li>${fill(texts.notes[disposition], parts)}<br><code class="hash">${where.transaction}</code></li>`
  })
  if (told.length === 0) return null
  return html`<section class="notes" aria-labelledby="notes"><h2 id="notes">${texts.noteTitle}</h2><ul>${told}</ul></section>`
}
