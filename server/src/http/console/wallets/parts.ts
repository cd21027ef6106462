import { describeForWallets } from '../../../chains/wallet-links.ts'
import { type Family, families, type Network } from '../../../networks.ts'
import { networksFor, type Wallet, walletFor } from '../../../stores/store.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { showFours, showMinute } from '../formats.ts'
import { renderChip, renderStep, type Tone } from '../parts.ts'
import type { Page, Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'

/** What people call the networks of a family that this deployment offers. */
export function nameFamily({ ctx, store }: Pick<Screen, 'ctx' | 'store'>, family: Family): string {
  const offered = networksFor(ctx, store.mode).filter((network) => network.family === family)
  return offered.map(({ name }) => name).join(', ') || family
}

/** The families that the store can be paid in. */
export function familiesOf({ ctx, store }: Pick<Screen, 'ctx' | 'store'>): Family[] {
  const offered = networksFor(ctx, store.mode).map(({ family }) => family)
  return families.filter((family) => offered.includes(family))
}

type WalletState = keyof Texts['wallets']['states']

const tones: Readonly<Record<WalletState, Tone>> = {
  ...{ proven: 'good', unproven: 'bad', custodial: '', elsewhere: 'bad', unowned: 'busy' },
}

/** What is known of a wallet's owner. Of a former wallet only whether it is proven matters. */
function stateOf({ provenAt, isElsewhere, isUnowned, custodialType, retiredAt }: Wallet): WalletState {
  if (retiredAt === null && isElsewhere) return 'elsewhere'
  if (retiredAt === null && isUnowned) return 'unowned'
  if (provenAt) return 'proven'
  return custodialType === 'CUSTODIAL' ? 'custodial' : 'unproven'
}

export function renderState({ texts }: Pick<Page, 'texts'>, wallet: Wallet): Html {
  const state = stateOf(wallet)
  return renderChip(texts.wallets.states[state], tones[state])
}

/** What follows from its state, and what keeps it from being paid. */
export function describeState(screen: Screen, wallet: Wallet): readonly Html[] {
  const { ctx, store, locale } = screen
  const texts = screen.texts.wallets
  const state = stateOf(wallet)
  const { provenAt, family } = wallet
  const about =
    state === 'unowned' && wallet.custodialType === 'CUSTODIAL'
      ? texts.unownedCustodial
      : texts.stateAbout[state]
  const offered = networksFor(ctx, store.mode).filter((network) => network.family === family)
  const lacksAccount =
    wallet.isCurrent && state !== 'elsewhere' && !offered.some((network) => walletFor(network, [wallet]))
  const time = provenAt ? showMinute(locale, provenAt) : ''
  return [fill(about, { time }), ...(lacksAccount ? [html`${texts.noAccount}`] : [])]
}

/** An address to be compared with another one, in a frame of its own. */
export function renderBig(label: string | Html, address: string, more: Html | null = null): Html {
  return html`<div class="big"><p class="label">${label}</p>${showFours(address)}${more}</div>`
}

/** What a wallet needs to know to be on one of the networks of a family: the first that is offered. */
export function networkForWallets(
  { ctx, store }: Pick<Screen, 'ctx' | 'store'>,
  family: Family,
): object | null {
  const network = networksFor(ctx, store.mode).find((each) => each.family === family)
  if (!network) return null
  const described = describeForWallets(network, nodeForWallets(ctx, network))
  if (!described) return null
  const { family: _, ...chain } = described
  return chain
}

/** The URL of a local chain's node is no secret; other nodes' URLs may contain a key. */
export function nodeForWallets({ config }: Screen['ctx'], network: Network): string | null {
  return (network.isLocal ? config.nodes[network.id]?.[0]?.url : network.publicRpcUrl) ?? null
}

/** What a wallet in this browser is asked for. The script adds a button for each that it finds. */
export function renderAsking(
  ask: 'address' | 'proof',
  asked: readonly Family[],
  values: Readonly<Record<string, string>>,
  texts: { readonly asking: string; readonly none: string },
): Html {
  const data = Object.entries({ ask, sign: asked.join(' '), ...values })
  return html`<div class="stack"${data.map(([name, value]) => html` data-${name}="${value}"`)}>
<div class="buttons" data-wallets${ask === 'address' && html` data-quiet`}></div>
<p role="status" hidden>${texts.asking}</p>
<p class="note" role="alert" hidden></p>
<p class="soft" data-no-wallet>${texts.none}</p></div>`
}

type Step = { readonly title: string; readonly text: string }

/** What follows from a touch, before it is given. */
export function renderFollowing(
  title: string,
  steps: readonly Step[],
  fills: Readonly<Record<string, string | Html>>,
): Html {
  return html`<h2>${title}</h2><ol class="line">${steps.map((step, place) =>
    renderStep(html`<b>${step.title}</b>`, fill(step.text, fills), null, place === 0 ? 'coming' : 'wait'),
  )}</ol>`
}
