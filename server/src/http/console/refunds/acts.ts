import { describeForWallets } from '../../../chains/wallet-links.ts'
import { networks } from '../../../networks.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showShort } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { renderClaim } from './acts-claim.ts'
import { renderNaming, renderSent } from './acts-sent.ts'
import { type One, pathOf } from './screen.ts'
import { turnOf } from './turn.ts'

/** What the store can do about a refund now. */
export function renderActs(one: One): Html | null {
  const { wire } = one
  if (wire.isCanceling) return null
  if (wire.status === 'SENT' && wire.way === 'sent')
    return html`<section class="pane">${renderNaming(one)}</section>`
  if (wire.status !== 'REQUESTED') return null
  const turn = turnOf(wire)
  return html`<section class="pane stack">${turn === 'sign' && renderSigning(one)}${turn === 'pay' && renderSent(one)}${wire.recipient === null && renderClaim(one)}${renderCancel(one)}</section>`
}

/**
 * Signing needs a wallet, so it needs a script, which adds a button for every wallet that it finds here. Until then, and
 * without one, the screen says how to sign elsewhere. The script signs only what is the same as these values.
 */
function renderSigning(one: One): Html {
  const { ctx, request, wire } = one
  const texts = textsOf(request).refunds
  const { copy, copied } = textsOf(request).frame
  const network = networks.find(({ caip2 }) => caip2 === wire.network)
  if (!network || wire.recipient === null) return html``
  // The URL of a local chain's node is no secret; other nodes' URLs may contain a key.
  const rpcUrl = network.isLocal ? ctx.config.nodes[network.id]?.[0]?.url : network.publicRpcUrl
  const { family, ...chain } = describeForWallets(network, rpcUrl ?? null)
  const values = {
    sign: family,
    ...{ prepare: `${pathOf(one)}/prepare`, present: `${pathOf(one)}/signature` },
    ...{ from: wire.from, recipient: wire.recipient, units: wire.amount, network: JSON.stringify(chain) },
    ...{ label: texts.signWith, unnamed: texts.yourWallet, ...texts.signTroubles },
  }
  const command = `farthing refund sign ${wire.id}`
  return html`<div class="stack"${Object.entries(values).map(([name, value]) => html` data-${name}="${value}"`)}>
<div class="buttons" data-wallets></div>
<p role="status" hidden>${texts.asking}</p>
<p class="note" id="unsigned" role="alert" hidden></p>
<div data-no-wallet><p class="words">${fill(texts.noWallet, { wallet: showShort(wire.from) })}</p><div class="copy"><pre tabindex="0"><code>${command}</code></pre><button type="button" class="quiet tiny" data-copy="${command}" data-done="${copied}">${copy}</button></div></div></div>`
}

function renderCancel(one: One): Html {
  const { request, formField } = one
  const texts = textsOf(request).refunds
  return html`<details id="cancel"><summary>${texts.cancel}</summary><form class="stack" method="post" action="${pathOf(one)}/cancel">${formField}<p class="soft">${texts.cancelAbout}</p><div class="buttons"><button class="quiet">${texts.cancel}</button></div></form></details>`
}
