import { paymentLink } from '../../../chains/wallet-links.ts'
import type { Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView, ReservedTransfer } from '../../../checkouts/view.ts'
import { unitsToText } from '../../../money.ts'
import type { Family } from '../../../networks.ts'
import { type Asked, type Choice, queryOf, type Way, ways } from '../choice.ts'
import { fill, type Html, html, plain } from '../html.ts'
import type { Language, WalletState } from '../languages/language.ts'
import { renderQr } from './qr.ts'
import { bdi, describeOption, renderAddress, renderFact } from './summary.ts'

/**
 * The ways to pay, of which one is chosen and shown. Each choice is a link; the script loads it without leaving the page.
 * The style decides whether to show the parts for a desk (a code for another device) or those for a phone (links to apps).
 */
export function renderWays(
  view: CheckoutView,
  choice: Choice,
  asked: Asked,
  place: PageAddress,
  isSignable: boolean,
): Html {
  const { texts } = asked.language
  const signed = isSignable ? { wallet: renderWallet, phone: renderPhone } : unsignable
  const chosen = { ...signed, send: renderSend }[choice.way]
  const states = Object.entries(texts.states).map(([state, message]) =>
    renderState(choice.option, state as WalletState, message, texts),
  )
  return html`<section id="flow" aria-labelledby="status">
<h2 id="status" tabindex="-1">${texts.chooseWay}</h2>
<div role="status">${states}</div>
<p><button id="back" type="button" class="quiet" hidden>${texts.startOver}</button></p>
<div id="ways">
<nav class="tabs" aria-label="${texts.chooseWay}">${ways.map((way) => renderTab(way, choice, asked))}</nav>
${choice.way !== 'send' && renderNetworks(view, choice, asked)}
<div class="way" id="${choice.way}">
${chosen(view, choice, asked, place)}
</div>
</div>
</section>`
}

/** Where this page is, and where its forms are posted. A still page shows what the script would. */
type PageAddress = { readonly url: string; readonly path: string; readonly isStill: boolean }

function renderTab(way: Way, choice: Choice, asked: Asked): Html {
  const { ways: names } = asked.language.texts
  const name =
    way === 'phone'
      ? html`<span class="desk">${names.phone}</span><span class="touch">${names.app}</span>`
      : names[way]
  // The page asks again which network to send on: the default may not be the one that the buyer has in mind.
  const query = queryOf(asked, way === 'send' && choice.way !== 'send' ? { way, place: null } : { way })
  return html`<a href="${query}" data-way="${way}"${way === choice.way && html` aria-current="true"`}>${name}</a>`
}

/** The choice of network, if there is more than one. The script follows the one that was chosen before. */
function renderNetworks({ checkout }: CheckoutView, choice: Choice, asked: Asked): Html | null {
  if (checkout.options.length < 2) return null
  const symbols = new Set(checkout.options.map((option) => describeOption(option).symbol))
  const link = (option: Option, place: number) => {
    const { name, symbol } = describeOption(option)
    const query = queryOf(asked, { way: choice.way, place })
    const current = place === choice.place && html` aria-current="true"`
    const shown = bdi(symbols.size > 1 ? `${name} · ${symbol}` : name)
    return html`<a href="${query}" data-option="${place}"${current}>${shown}</a>`
  }
  return html`<nav id="networks" aria-label="${asked.language.texts.network}">${checkout.options.map(link)}</nav>`
}

/** Shown if no wallet can sign the chosen option now. Its list of wallets lets the script turn to another option. */
const unsignable = { wallet: renderUnsignable, phone: renderUnsignable }

function renderUnsignable(_view: CheckoutView, { way, option }: Choice, asked: Asked): Html {
  const { texts } = asked.language
  return html`<h3 id="way" tabindex="-1">${way === 'phone' ? texts.appsTitle : texts.walletTitle}</h3>
${way === 'wallet' && html`<div id="wallets"></div>`}
<div class="empty"><p>${fill(texts.unsignable, { network: bdi(describeOption(option).name) })}</p>
<div class="others">${renderOther('send', texts.sendTitle, asked)}</div></div>`
}

function renderOther(way: Way, text: string, asked: Asked): Html {
  return html`<a class="button quiet" href="${queryOf(asked, { way })}" data-way="${way}">${text}</a>`
}

function renderWallet(_view: CheckoutView, choice: Choice, asked: Asked, place: PageAddress): Html {
  const { texts } = asked.language
  const other = (way: Way, text: string) => renderOther(way, text, asked)
  if (place.isStill)
    return html`<h3 id="way">${texts.walletTitle}</h3><p class="about">${texts.walletAbout}</p>
<div id="wallets"><button type="button">${fill(texts.payWith, { wallet: texts.unnamedWallet })}</button></div>`
  return html`<h3 id="way" tabindex="-1">${texts.walletTitle}</h3>
<div data-script hidden>
<p id="sign-once" class="about">${texts.walletAbout}</p>
<div id="wallets" data-label="${texts.payWith}" data-unnamed="${texts.unnamedWallet}"></div>
<div id="no-wallet" class="empty"><p>${texts.noWallet}</p>
<div class="desk others">${other('phone', texts.usePhone)}${other('send', texts.sendTitle)}</div>
<div class="touch">${renderApps(choice, asked, place)}<div class="others">${other('send', texts.sendTitle)}</div></div>
</div>
</div>
<noscript><div class="empty"><p>${texts.needsScript}</p><div class="others">
<span class="desk">${other('phone', texts.usePhone)}</span>
<span class="touch">${other('phone', texts.ways.app)}</span>
${other('send', texts.sendTitle)}</div></div></noscript>`
}

function renderPhone(_view: CheckoutView, choice: Choice, asked: Asked, place: PageAddress): Html {
  const { texts } = asked.language
  const title = html`<span class="desk">${texts.phoneTitle}</span><span class="touch">${texts.appsTitle}</span>`
  return html`<h3 id="way" tabindex="-1">${title}</h3>
<figure class="desk scan">${renderQr(pageUrl(place, choice, asked), texts.qrPage)}
<figcaption>${texts.phoneAbout}</figcaption></figure>
<div class="touch">${renderApps(choice, asked, place)}</div>`
}

/** Links that open this page in wallet apps. */
function renderApps(choice: Choice, asked: Asked, place: PageAddress): Html {
  const { network } = describeOption(choice.option)
  const families = new Set(network ? [network.family] : [])
  const { texts } = asked.language
  const links = deepLinks(pageUrl(place, choice, asked), families).map(
    ({ name, href }) => html`<li><a href="${href}" rel="noreferrer">${bdi(name)}</a></li>`,
  )
  return html`<p class="about">${texts.appsAbout}</p>
<ul class="apps" aria-label="${texts.appsTitle}">${links}</ul>`
}

/** Short, because it is in a QR code: only a network that was chosen is added. */
function pageUrl({ url }: PageAddress, choice: Choice, asked: Asked): string {
  return asked.place === null ? url : `${url}?option=${choice.place}`
}

function renderState(
  option: Option,
  state: WalletState,
  { title, text }: { readonly title: string; readonly text: string },
  texts: Language['texts'],
): Html {
  const { name, symbol, decimals } = describeOption(option)
  const parts = { network: bdi(name), asset: symbol, amount: unitsToText(BigInt(option.amount), decimals) }
  const heading = html`<h3>${fill(title, parts)}</h3>`
  const holder = state === 'funds' && renderHolder(symbol, texts)
  return html`<div class="state" data-state="${state}" hidden>${heading}<p>${fill(text, parts)}</p>${holder}</div>`
}

/** Which account is short of money. Only the script knows it, and what the account has. */
function renderHolder(symbol: string, texts: Language['texts']): Html {
  return html`<dl id="holder" hidden>
${renderFact(texts.account, html`<bdi dir="ltr"><code></code></bdi>`)}
${renderFact(texts.balance, html`<bdi><b></b> ${symbol}</bdi>`)}</dl>`
}

/** Links that open the page in the built-in browser of wallet apps that can pay there. Each app has its own format. */
function deepLinks(
  url: string,
  offered: { has(family: Family): boolean },
): { readonly name: string; readonly href: string }[] {
  const encoded = encodeURIComponent(url)
  const origin = encodeURIComponent(new URL(url).origin)
  const apps: { name: string; families: Family[]; href: string }[] = [
    {
      name: 'MetaMask',
      families: ['EVM', 'SOLANA'],
      // No scheme and no escaping: an escaped URL opens an empty tab.
      href: `https://link.metamask.io/dapp/${url.replace(/^https?:\/\//, '')}`,
    },
    { name: 'Coinbase Wallet', families: ['EVM'], href: `https://go.cb-w.com/dapp?cb_url=${encoded}` },
    {
      name: 'Phantom',
      families: ['EVM', 'SOLANA'],
      href: `https://phantom.app/ul/browse/${encoded}?ref=${origin}`,
    },
    {
      name: 'Solflare',
      families: ['SOLANA'],
      href: `https://solflare.com/ul/v1/browse/${encoded}?ref=${origin}`,
    },
    {
      name: 'Trust Wallet',
      families: ['EVM'],
      href: `https://link.trustwallet.com/open_url?coin_id=60&url=${encoded}`,
    },
    {
      name: 'OKX Wallet',
      families: ['EVM', 'SOLANA'],
      href: `https://web3.okx.com/download?deeplink=${encodeURIComponent(`okx://wallet/dapp/url?dappUrl=${encoded}`)}`,
    },
  ]
  return apps.filter(({ families }) => families.some((family) => offered.has(family)))
}

/**
 * Paying without a signature: a form reserves an exact amount or a reference for the buyer, who sends the money from any
 * wallet or exchange. Plain forms, because browsers without script pay this way too. What to send is on the page only
 * after the buyer has chosen a network.
 */
function renderSend(
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
${transfer && html`<p class="about">${texts.sendWatching}</p>`}
${transfer?.reference === null && renderNotArrived(view, asked, path)}`
}

function renderNotArrived(view: CheckoutView, asked: Asked, path: string): Html {
  const { texts } = asked.language
  const action = actionOf(path, view.checkout.id, 'transaction', asked)
  return html`<section class="sent"><h4>${texts.hashTitle}</h4>
${renderHashForm(action, texts.hashAbout, texts)}</section>`
}

/**
 * For a buyer who sent money to a checkout that is closed now: it is looked for, and the store decides. A payment that is
 * on its way, and one that is complete, have nothing to name.
 */
export function renderAlreadySent(view: CheckoutView, asked: Asked, path: string): Html | null {
  const { texts } = asked.language
  const { checkout, announced } = view
  if (checkout.status === 'COMPLETED' || checkout.status === 'PROCESSING') return null
  if (announced.length > 0)
    return html`<section class="sent" id="send" role="status"><h3>${texts.announced.title}</h3>
<p class="hint">${texts.announced.text}</p>
${announced.map((hash) => html`<p><code class="hash">${hash}</code></p>`)}</section>`
  const notice = noticeFor(view, asked)
  const networks = new Set(checkout.options.map((option) => describeOption(option).name))
  const network = bdi([...networks].join(', '))
  const said = notice !== null && fill(texts.notices[notice], { network })
  const action = actionOf(path, checkout.id, 'transaction', asked)
  return html`<details class="sent" id="send"${notice !== null && html` open`}><summary>${texts.sentTitle}</summary>
${said && html`<p class="notice" role="alert">${said}</p>`}
${renderHashForm(action, texts.sentAbout, texts)}</details>`
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
function renderHashForm(action: string, about: string, texts: Language['texts']): Html {
  return html`<form class="hash" method="post" action="${action}" novalidate>
<p class="hint">${about}</p>
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
