import type { PaymentRequirements } from '@farthing/sdk'
import { describeForWallets } from '../../chains/wallet-links.ts'
import { offersMail } from '../../checkouts/buyer-receipts/mail.ts'
import { receiptPathOf } from '../../checkouts/buyer-receipts/receipt.ts'
import type { Option } from '../../checkouts/checkout.ts'
import { type CheckoutView, digestOf } from '../../checkouts/view.ts'
import type { Context } from '../../context.ts'
import { unitsToText } from '../../money.ts'
import { type Asked, type Choice, chooseWay, queryOf, stageOf } from './choice.ts'
import { type Document, type PageHost, renderDocument } from './document.ts'
import { type Html, html, json, plain } from './html.ts'
import type { Language } from './languages/language.ts'
import {
  isReturned,
  renderAnnounced,
  renderArrived,
  renderMessage,
  renderNotes,
  renderOutcome,
} from './parts/outcome.ts'
import { renderSimulate, withoutSimulated } from './parts/simulate.ts'
import {
  describeOption,
  formatPrice,
  renderFacts,
  renderHead,
  type Shown,
  shownAfter,
  shownFor,
} from './parts/summary.ts'
import { renderAlreadySent, renderWays } from './parts/ways.ts'

/** The data from which a payment page is rendered. */
export type Rendered = {
  readonly view: CheckoutView
  readonly accepts: readonly PaymentRequirements[]
  readonly asked: Asked
  readonly now: Date
}

/**
 * The whole payment page, in any state of the checkout. It is correct without the script. When something has changed,
 * the script fetches it again and replaces `main`, so each state is rendered in one place, and the tab keeps its scroll
 * position, wallet prompt and typed text. The style is inlined, which saves a round trip before the first paint.
 */
export function renderPage(
  ctx: Context,
  place: PageHost,
  { accepts, asked, now, ...rendered }: Rendered,
): Document {
  const { language } = asked
  // The simulated network is the last option, so the places of the others stay.
  const view = withoutSimulated(rendered.view)
  const { checkout, store } = view
  const stage = stageOf(view, asked)
  const choice = stage === 'choose' ? chooseWay(view, asked) : null
  const shown = choice ? shownFor(choice) : shownAfter(view)
  const terms = termsOf(ctx, view, accepts, {
    digest: digestOf(view),
    isPayable: choice !== null,
    chosen: choice?.place ?? null,
    now,
  })
  const receipt = {
    href: `${receiptPathOf(place.path, checkout.id)}${asked.isLanguageNamed ? `?lang=${language.tag}` : ''}`,
    isMailed: offersMail(ctx, view),
  }
  const acts: Readonly<Record<typeof stage, () => Html | null>> = {
    choose: () =>
      choice &&
      html`${renderNotes(view, language)}${renderWays(
        view,
        choice,
        asked,
        { path: place.path, url: `${place.url}/${checkout.id}`, isStill: place.still !== undefined },
        terms.options.some((option) => option.place === choice.place),
      )}${renderSimulate(rendered.view, place.path)}`,
    announced: () => renderAnnounced(view, asked),
    arrived: () => renderArrived(view, language),
    over: () => html`${renderNotes(view, language)}${renderOutcome(view, language, receipt)}
${renderAlreadySent(view, asked, place.path)}`,
  }
  const main = html`<main data-status="${checkout.status}">
${renderHead(view, shown, language, logoOf(place, checkout.id), choice !== null)}
<div class="act">
${acts[stage]()}
</div>
${renderFacts(view, shown, language, choice !== null)}
<script type="application/json" id="terms">${json(terms)}</script>
</main>`
  const title = titleOf(view, language, stage, choice, shown)
  const languageLinks = (lang: string) => queryOf(asked, { lang })
  return renderDocument(place, language, {
    status: 200,
    title,
    accentColor: store.accentColor,
    main,
    languageLinks,
  })
}

function logoOf({ path, still }: PageHost, checkoutId: string): string {
  return still?.logo ?? `${path}/${checkoutId}/logo`
}

export function renderNotFound(place: PageHost, language: Language): Document {
  return renderAlone(place, language, 404, 'notFound')
}

/** Browsers get this instead of a problem's JSON. */
export function renderUnavailable(place: PageHost, language: Language, status: number): Document {
  // To a buyer, another cell's id is a wrong address.
  return renderAlone(place, language, status, status === 421 ? 'notFound' : 'unavailable')
}

function renderAlone(
  place: PageHost,
  language: Language,
  status: number,
  message: 'notFound' | 'unavailable',
): Document {
  const { title } = language.texts[message]
  const said = renderMessage('over', language.texts[message], null, 1)
  const main = html`<main class="alone"><div class="act">${said}</div></main>`
  const languageLinks = (lang: string) => `?lang=${lang}`
  return renderDocument(place, language, { status, title, accentColor: null, main, languageLinks })
}

function titleOf(
  view: CheckoutView,
  { tag, texts }: Language,
  stage: ReturnType<typeof stageOf>,
  choice: Choice | null,
  { money, isPriceFirst }: Shown,
): string {
  const { checkout, store } = view
  if (choice) {
    const { symbol = '', decimals = 0 } = money ? describeOption(money) : {}
    const amount =
      money && !isPriceFirst
        ? `${unitsToText(BigInt(money.amount), decimals)} ${symbol}`
        : formatPrice(checkout.priceAmount, checkout.priceCurrency, tag)
    return fillPlain(texts.title, { amount, store: store.name })
  }
  const messages = {
    OPEN: stage === 'over' ? texts.expired : stage === 'announced' ? texts.announced : texts.arrived,
    EXPIRED: texts.expired,
    PROCESSING: texts.processing,
    COMPLETED: isReturned(view) ? texts.refunds.whole : texts.completed,
    CANCELED: texts.canceled,
  }
  return `${messages[checkout.status].title} · ${plain(store.name)}`
}

function fillPlain(text: string, parts: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name) => plain(parts[name] ?? ''))
}

/** The script's data for asking a wallet for a payment. */
function termsOf(
  ctx: Context,
  view: CheckoutView,
  accepts: readonly PaymentRequirements[],
  page: {
    readonly digest: string
    readonly isPayable: boolean
    readonly chosen: number | null
    readonly now: Date
  },
) {
  const { id, status, options } = view.checkout
  return {
    id,
    digest: page.digest,
    status: status === 'OPEN' && view.isPastExpiry ? 'EXPIRED' : status,
    isPayable: page.isPayable,
    isAwaiting: view.announced.length > 0 || view.refunds.some((refund) => refund.status === 'SENT'),
    chosen: page.chosen,
    now: page.now.getTime(),
    options: accepts.flatMap((accepted) => {
      const { network, decimals, name } = describeOption(accepted)
      // Its index on the page, by which the script finds it.
      const place = options.findIndex((option) => isSame(option, accepted))
      if (!network || place === -1) return []
      // The URL of a local chain's node is no secret; other nodes' URLs may contain a key.
      const rpcUrl = network.isLocal ? ctx.config.nodes[network.id]?.[0]?.url : network.publicRpcUrl
      const described = describeForWallets(network, rpcUrl ?? null)
      return described ? [{ accepted, place, decimals, name, ...described }] : []
    }),
  }
}

function isSame(option: Option, { network, asset, payTo, amount }: PaymentRequirements): boolean {
  return (
    option.network === network && option.asset === asset && option.payTo === payTo && option.amount === amount
  )
}
