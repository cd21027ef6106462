import type { PaymentRequirements } from '@farthing/sdk'
import { describeForWallets } from '../../../chains/wallet-links.ts'
import type { Option } from '../../../checkouts/checkout.ts'
import type { CheckoutView } from '../../../checkouts/view.ts'
import type { Context } from '../../../context.ts'
import { unitsToText } from '../../../money.ts'
import type { Family } from '../../../networks.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language, State } from '../languages/language.ts'
import { deepLinks } from './deep-links.ts'
import { renderQr } from './qr.ts'
import { describeOption } from './summary.ts'

/** The ways to pay an OPEN checkout: a wallet in this browser, or a phone. Without the script, its parts stay hidden. */
export function renderWays(view: CheckoutView, { texts }: Language, url: string): Html {
  return html`<section id="flow" aria-labelledby="status">
<h2 id="status" tabindex="-1">${texts.walletTitle}</h2>
<p class="about" data-script hidden>${texts.walletAbout}</p>
<div role="status">${Object.entries(texts.states).map(([state, message]) => renderState(view, state as State, message))}</div>
<p><button id="back" type="button" class="quiet" hidden>${texts.startOver}</button></p>
<div id="ways">
<div data-script hidden>
${renderFamilies(view, texts)}
<div id="wallets" data-label="${texts.payWith}" data-unnamed="${texts.unnamedWallet}"></div>
<p id="no-wallet" class="empty">${texts.noWallet}</p>
</div>
<noscript><p class="empty">${texts.needsScript}</p></noscript>
<div class="phone">
<div class="scan">${renderQr(url, texts.qrPage)}<div><h3>${texts.phoneTitle}</h3><p>${texts.phoneAbout}</p></div></div>
<div class="apps"><h3>${texts.appsTitle}</h3><ul>${deepLinks(url, familiesOf(view)).map(({ name, href }) => html`<li><a href="${href}" rel="noreferrer">${name}</a></li>`)}</ul></div>
</div>
</div>
</section>`
}

/** The choice of wallet family, if there is more than one. The script selects the one that was chosen before. */
function renderFamilies(view: CheckoutView, texts: Language['texts']): Html | null {
  const families = familiesOf(view)
  if (families.size < 2) return null
  return html`<fieldset id="families"><legend>${texts.network}</legend>${[...families].map(
    ([family, names]) =>
      html`<label><input type="radio" name="family" value="${family}"><bdi>${names.join(', ')}</bdi></label>`,
  )}</fieldset>`
}

/** The names of the networks that a checkout can be paid on, by wallet family. */
function familiesOf({ checkout }: CheckoutView): Map<Family, string[]> {
  const offered = checkout.options.flatMap((option) => describeOption(option).network ?? [])
  return new Map(
    [...Map.groupBy(offered, ({ family }) => family)].map(([family, networks]) => [
      family,
      [...new Set(networks.map(({ name }) => name))],
    ]),
  )
}

function renderState(
  view: CheckoutView,
  state: State,
  { title, text }: { title: string; text: string },
): Html {
  const [option] = view.checkout.options
  const { name = '', symbol = '', decimals = 0 } = option ? describeOption(option) : {}
  const parts = {
    network: html`<bdi data-chosen>${name}</bdi>`,
    asset: symbol,
    amount: unitsToText(BigInt(option?.amount ?? 0), decimals),
  }
  return html`<div class="state" data-state="${state}" hidden><h3>${fill(title, parts)}</h3><p>${fill(text, parts)}</p></div>`
}

/** What the script needs in order to ask a wallet for a payment. */
export function termsOf(
  ctx: Context,
  view: CheckoutView,
  accepts: readonly PaymentRequirements[],
  digest: string,
  now: Date,
) {
  const { id, status, options } = view.checkout
  return {
    id,
    digest,
    status: status === 'OPEN' && view.isPastExpiry ? 'EXPIRED' : status,
    now: now.getTime(),
    options: accepts.flatMap((accepted) => {
      const { network, decimals, name } = describeOption(accepted)
      // Its index on the page, by which the script finds it.
      const place = options.findIndex((option) => isSame(option, accepted))
      if (!network || place === -1) return []
      // The URL of a local chain's node is no secret; other nodes' URLs may contain a key.
      const rpcUrl = network.isLocal ? ctx.config.nodes[network.id]?.[0]?.url : network.publicRpcUrl
      return [{ accepted, place, decimals, name, ...describeForWallets(network, rpcUrl ?? null) }]
    }),
  }
}

function isSame(option: Option, { network, asset, payTo, amount }: PaymentRequirements): boolean {
  return (
    option.network === network && option.asset === asset && option.payTo === payTo && option.amount === amount
  )
}
