import type { CheckoutView } from '../../../checkouts/view.ts'
import type { Context } from '../../../context.ts'
import { unitsToText } from '../../../money.ts'
import { toRequirements } from '../../../payments/terms.ts'
import { fill, type Html, html } from '../html.ts'
import type { Language, State } from '../languages/language.ts'
import { deepLinks } from './deep-links.ts'
import { renderQr } from './qr.ts'
import { describeOption } from './summary.ts'

/** The ways to pay a checkout that is OPEN: a wallet in this browser, the phone. What needs the script is hidden without it. */
export function renderWays(view: CheckoutView, { texts }: Language, url: string): Html {
  return html`<section id="flow" aria-labelledby="status">
<h2 id="status" tabindex="-1">${texts.walletTitle}</h2>
<p class="about" data-script hidden>${texts.walletAbout}</p>
<div role="status">${Object.entries(texts.states).map(([state, message]) => renderState(view, state as State, message))}</div>
<p><button id="back" type="button" class="quiet" hidden>${texts.startOver}</button></p>
<div id="ways">
<div data-script hidden>
<div id="wallets" data-label="${texts.payWith}" data-unnamed="${texts.unnamedWallet}"></div>
<p id="no-wallet" class="empty">${texts.noWallet}</p>
</div>
<noscript><p class="empty">${texts.needsScript}</p></noscript>
<div class="phone">
<div class="scan">${renderQr(url, texts.qrPage)}<div><h3>${texts.phoneTitle}</h3><p>${texts.phoneAbout}</p></div></div>
<div class="apps"><h3>${texts.appsTitle}</h3><ul>${deepLinks(url).map(({ name, href }) => html`<li><a href="${href}" rel="noreferrer">${name}</a></li>`)}</ul></div>
</div>
</div>
</section>`
}

function renderState(
  view: CheckoutView,
  state: State,
  { title, text }: { title: string; text: string },
): Html {
  const [option] = view.checkout.options
  const { name = '', symbol = '', decimals = 0 } = option ? describeOption(option) : {}
  const parts = {
    network: html`<bdi>${name}</bdi>`,
    asset: symbol,
    amount: unitsToText(BigInt(option?.amount ?? 0), decimals),
  }
  return html`<div class="state" data-state="${state}" hidden><h3>${fill(title, parts)}</h3><p>${fill(text, parts)}</p></div>`
}

/** What the script needs to know to ask a wallet. */
export function termsOf(ctx: Context, view: CheckoutView, digest: string, now: Date) {
  const { id, status, options } = view.checkout
  return {
    id,
    digest,
    status: status === 'OPEN' && view.isPastExpiry ? 'EXPIRED' : status,
    now: now.getTime(),
    options:
      status !== 'OPEN'
        ? []
        : options.flatMap((option) => {
            const { network, decimals, name } = describeOption(option)
            const accepted = toRequirements(option)
            if (!network || !accepted) return []
            const chainId = Number.parseInt(network.caip2.replace('eip155:', ''), 10)
            // The address of a local chain's node is no secret; those of others may hold a key.
            const rpcUrl = network.chainId === 'LOCAL' ? ctx.config.localRpcUrls[0] : network.publicRpcUrl
            return [
              {
                accepted,
                decimals,
                chainId,
                chain: {
                  chainId: `0x${chainId.toString(16)}`,
                  chainName: name,
                  nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
                  rpcUrls: rpcUrl ? [rpcUrl] : [],
                  ...(network.explorerUrl && { blockExplorerUrls: [network.explorerUrl] }),
                },
              },
            ]
          }),
  }
}
