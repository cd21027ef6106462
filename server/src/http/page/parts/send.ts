import { paymentLink } from '../../../chains/wallet-links.ts'
import type { CheckoutView, ReservedTransfer } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import { type Asked, type Choice, queryOf } from '../choice.ts'
import { fill, type Html, html, plain } from '../html.ts'
import type { Language } from '../languages/language.ts'
import { renderQr } from './qr.ts'
import { bdi, describeOption, renderAddress, renderFact } from './summary.ts'

/**
 * Paying without a signature: a form reserves an exact amount or a reference for the buyer, who sends the money from any
 * wallet or exchange. Plain forms, because browsers without script pay this way too. What to send is on the page only
 * after the buyer has chosen a network.
 */
export function renderSend(
  view: CheckoutView,
  { option, transfer }: Choice,
  asked: Asked,
  { path }: { readonly path: string },
): Html {
  const { texts } = asked.language
  const { checkout } = view
  const isMany = new Set(checkout.options.map(({ network }) => network)).size > 1
  const network = describeOption(transfer ?? option).name
  const notice = noticeFor(view, asked)
  // A reference can be carried by a wallet, but not by an exchange.
  const title = !transfer ? texts.sendTitle : transfer.reference === null ? texts.sendDo : texts.appsTitle
  const what = transfer
    ? renderTransfer(transfer, view.store.name, texts)
    : renderReserve(view, actionOf(path, checkout.id, 'transfer', asked), texts)
  const elsewhere = queryOf(asked, { way: 'send', place: null })
  return html`<h3 id="way" tabindex="-1">${title}</h3>
${notice !== null && html`<p class="notice" role="alert">${fill(texts.notices[notice], { network })}</p>`}
${what}
${transfer && isMany && html`<p><a href="${elsewhere}" data-way="send">${texts.sendOther}</a></p>`}
${transfer?.reference === null && renderHashForm(actionOf(path, checkout.id, 'transaction', asked), texts)}`
}

/** A URL that says `looking` is outdated once the lookup has ended without a result. */
function noticeFor({ announced }: CheckoutView, { notice }: Asked): Asked['notice'] {
  return notice === 'looking' && announced.length === 0 ? 'not_found' : notice
}

function actionOf(path: string, id: string, verb: 'transfer' | 'transaction', asked: Asked): string {
  return `${path}/${id}/${verb}${asked.isLanguageNamed ? `?lang=${asked.language.tag}` : ''}`
}

/** One button per network. */
function renderReserve({ checkout }: CheckoutView, action: string, texts: Language['texts']): Html {
  const networks = new Map(checkout.options.map((option) => [option.network, describeOption(option).name]))
  const isMany = networks.size > 1
  const label = (name: string) => (isMany ? html`<bdi>${name}</bdi>` : texts.sendButton)
  const buttons = [...networks].map(
    ([network, name]) => html`<button name="network" value="${network}">${label(name)}</button>`,
  )
  return html`<p class="about">${texts.sendAbout}</p>
<form method="post" action="${action}"${isMany && html` aria-labelledby="which"`}>
${isMany && html`<h4 id="which">${texts.sendNetwork}</h4>`}<div class="others">${buttons}</div></form>`
}

/** The server checks the hash and answers in the page's language, unlike the browser's own check. */
function renderHashForm(action: string, texts: Language['texts']): Html {
  return html`<form class="hash" method="post" action="${action}" novalidate>
<h4>${texts.hashTitle}</h4>
<p class="hint">${texts.hashAbout}</p>
<label for="hash">${texts.hashLabel}</label>
<div class="row"><input id="hash" name="hash" dir="ltr" maxlength="100" autocomplete="off" autocapitalize="off"
spellcheck="false" placeholder="0x…"><button class="quiet">${texts.hashButton}</button></div>
</form>`
}

function renderTransfer(transfer: ReservedTransfer, store: string, texts: Language['texts']): Html {
  const { symbol, decimals, name, network } = describeOption(transfer)
  const amount = unitsToText(BigInt(transfer.amount), decimals)
  const link = paymentLink(network, transfer, amount, plain(store))
  const exact = html`<bdi class="exact"><b>${amount}</b> ${symbol}</bdi>`
  const address = renderAddress(transfer.payTo)
  const warning = fill(texts.sendWarning, { asset: symbol, network: bdi(name) })
  // A transfer that carries more than an address and an amount gets a link, not copy buttons.
  if (link !== null)
    return html`<div class="transfer linked"><p class="about">${texts.sendLinked}</p>
<figure class="desk">${renderQr(link, texts.qrPayment)}<figcaption>${texts.qrPayment}</figcaption></figure>
<a class="button touch" href="${link}">${texts.sendLink}</a>
<dl>
${renderFact(texts.sendAmount, exact)}
${renderFact(texts.sendAddress, address)}
</dl></div>`
  const copy = (text: string, label: string) =>
    html`<button type="button" class="quiet" data-script hidden data-copy="${text}" data-done="${texts.copied}"
aria-label="${texts.copy}: ${label}">${texts.copy}</button>`
  return html`<div class="transfer">
<p class="warning"><strong>${warning}</strong></p>
<dl>
<div><dt>${texts.sendAmount}</dt><dd class="row">${exact}${copy(amount, texts.sendAmount)}</dd>
<dd class="hint">${texts.sendExact}</dd></div>
<div><dt>${texts.sendAddress}</dt><dd class="row">${address}${copy(transfer.payTo, texts.sendAddress)}</dd>
<dd class="hint">${texts.sendCheck}</dd></div>
${renderFact(texts.network, bdi(name))}
</dl>
<figure class="desk">${renderQr(transfer.payTo, texts.qrAddress)}<figcaption>${texts.qrAddress}</figcaption></figure>
<p class="hint">${texts.sendFee}</p>
</div>`
}
