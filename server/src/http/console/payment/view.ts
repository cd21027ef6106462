import { type BuyerReceipt, numberText, receiptPathOf } from '../../../checkouts/buyer-receipts/receipt.ts'
import { nameOf, storeFacts, toStoreWire } from '../../../checkouts/checkout.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { isDust, isUndecided } from '../../../payments/credits/store-payments.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { showExactTime, showFours, showMoney, showTokens } from '../formats.ts'
import { screensOf } from '../frame/screens.ts'
import { renderFact, renderRaw, renderStep } from '../parts.ts'
import { mainOf, renderDisposition, renderState } from '../payments/view.ts'
import { type Remainder, renderRemainders } from '../refunds/view.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'
import { renderNotes, type TypedNote } from './notes.ts'
import { gapOf, stepsOf, type Trail, type TrailStep } from './trail.ts'

export function renderPayment(
  screen: Screen,
  trail: Trail,
  remainders: readonly Remainder[],
  typed: TypedNote | null,
): Html {
  const texts = screen.texts.payment
  const main = mainOf(trail.credits)
  const steps = stepsOf(trail, screen.locale)
  const line = steps.map((step, place) => renderTrailStep(screen, step, steps[place - 1], place))
  return html`${renderHead(screen, trail, main)}
<div class="split"><section class="pane"><h2>${texts.happened}</h2><ol class="line">${line}</ol></section>
<section class="facts"><h2>${texts.moneyTitle}</h2>${renderMoney(screen, trail)}${renderRemainders(screen, remainders)}
${renderNotes(screen, trail.credits, typed)}
<h2>${texts.facts}</h2>${renderFacts(screen, trail, main)}</section></div>`
}

function renderHead(screen: Screen, trail: Trail, main: CreditRow | null): Html {
  const { checkout, credits, returned } = trail
  const { base, locale } = screen
  const { payment: texts, payments: list } = screen.texts
  const money = main && showTokens(locale, main, main.amount)
  const [shown = main] = credits
  const chip = checkout
    ? renderState(list, checkout, main, returned.get(main?.paymentId ?? ''))
    : shown && renderDisposition(list, toPayment(shown), returned.get(shown.paymentId))
  const price = titleOf(screen, trail, money)
  const status = checkout?.status ?? null
  const credit = checkout ? main : (credits[0] ?? null)
  const back = returned.get(credit?.paymentId ?? '') ?? 0n
  const next = nextOf(status, credit, back)
  const amount = credit === null ? '' : showTokens(locale, credit, back)
  const isPartBack = back > 0n && next !== 'refunded' && next !== 'partlyRefunded'
  const order = checkout && html` / <bdi>${nameOf(checkout)}</bdi>`
  const { title, text } = texts.next[next]
  const said = html`${fill(text, { amount })}${isPartBack && html` ${fill(texts.partBack, { amount })}`}`
  return html`<div class="head"><div><p class="soft"><a href="${base}/payments">${list.title}</a>${order}</p>
<h1 class="price">${price} ${chip}</h1>${
    checkout && money !== null && html`<p>${money} · ${main && describeOption(main).name}</p>`
  }</div>
<div class="next"><p><strong>${title}</strong> ${said}</p><div class="row">${renderActs(
    screen,
    checkout,
    needsDecision(status, credit) ? credit : null,
  )}</div></div></div>`
}

/** The price, or what came of it, if that is something else. */
function titleOf({ texts, locale }: Screen, { checkout, due }: Trail, money: string | null): Html {
  if (!checkout) return html`<bdi>${money}</bdi>`
  const price = html`<bdi>${showMoney(locale, checkout.priceAmount, checkout.priceCurrency)}</bdi>`
  if (due === null || money === null) return price
  return html`${fill(texts.payment.paidOf, { paid: html`<bdi>${money}</bdi>`, asked: price })}`
}

/** What the store can do: decide about the money, or show or cancel what can still be paid. */
function renderActs(screen: Screen, checkout: Trail['checkout'], undecided: CreditRow | null): Html {
  const { base, formFields, ctx } = screen
  const texts = screen.texts.payment
  const hasInbox = screensOf(screen.store).some(({ id }) => id === 'inbox')
  const inbox = undecided && `${base}/inbox?payment=${undecided.paymentId}#${undecided.paymentId}`
  const open = checkout?.status === 'OPEN' ? checkout : null
  const page = open && `${ctx.config.checkoutPageUrl}/${open.id}`
  const isOver = checkout?.status === 'EXPIRED' || checkout?.status === 'CANCELED'
  const again = isOver && screen.may('checkouts:write') && `${base}/new?again=${checkout.id}`
  return html`${inbox && hasInbox && html`<a class="button" href="${inbox}">${texts.decide}</a>`}${
    page &&
    html`<a class="button quiet" href="${page}" rel="noreferrer" target="_blank">${texts.openPage}</a>`
  }${
    open &&
    screen.may('payments:write') &&
    html`<form method="post" action="${base}/checkouts/${open.id}/cancel">${formFields}
<button class="quiet">${texts.cancel}</button></form>`
  }${again && html`<a class="button${undecided && ' quiet'}" href="${again}">${screen.texts.newPayment.again}</a>`}`
}

type Next = keyof Texts['payment']['next']

/** The next thing to do: an open decision about money comes first, unless all of it went back. */
function nextOf(status: string | null, credit: CreditRow | null, back: bigint): Next {
  if (status === 'PROCESSING') return 'settling'
  if (credit?.isReversed) return 'reversed'
  if (credit && back >= credit.amount) return 'refunded'
  if (status === 'COMPLETED') return back > 0n ? 'partlyRefunded' : credit?.finalizedAt ? 'final' : 'paid'
  if (needsDecision(status, credit)) return isDust(credit) ? 'dust' : 'decide'
  if (status === 'OPEN') return 'open'
  if (status === 'CANCELED') return 'canceled'
  return status === null ? 'dismissed' : 'over'
}

function needsDecision(status: string | null, credit: CreditRow | null): credit is CreditRow {
  return credit !== null && status !== 'COMPLETED' && status !== 'PROCESSING' && isUndecided(credit)
}

function renderTrailStep(
  screen: Screen,
  step: TrailStep,
  before: TrailStep | undefined,
  place: number,
): Html {
  const { locale } = screen
  const texts = screen.texts.payment
  const { title, text } = texts.steps[step.id]
  const gap = gapOf(locale, before, step)
  const later = gap !== null && html` <small class="soft">${texts.later.replace('{time}', gap)}</small>`
  const by = step.by !== null && html` · ${fill(texts.by, { name: html`<bdi>${step.by}</bdi>` })}`
  return renderStep(
    html`<span><strong>${title}</strong>${later}</span>`,
    html`${fill(text, step.fills)}${by}`,
    step.at && showExactTime(locale, step.at),
    step.tone === 'done' ? '' : step.tone,
    step.raw === null ? null : renderRaw(screen, texts.raw, step.raw, `raw-${place}`),
  )
}

/** Its number leads to the receipt that the buyer has, to print it. */
function renderReceipt({ ctx, texts }: Screen, { number, checkoutId, voidAt }: BuyerReceipt): Html {
  const href = receiptPathOf(ctx.config.checkoutPageUrl, checkoutId)
  return html`<a href="${href}" rel="noreferrer" target="_blank">${numberText(number)}</a>${
    voidAt && html` <small class="soft">${texts.payment.receiptVoid}</small>`
  }`
}

function renderMoney({ texts, locale }: Screen, { checkout, credits, returned }: Trail): Html {
  const { price, rate, received, nothing } = texts.payment
  const priced = checkout && showMoney(locale, checkout.priceAmount, checkout.priceCurrency)
  const facts = checkout && storeFacts(checkout).rate
  const rated = facts && `1 ${checkout.priceCurrency} = ${facts.rate} USD · ${facts.source}`
  const arrived = credits.map((credit) => {
    const { paymentId, disposition, amount } = credit
    const chip =
      disposition !== 'exact' && renderDisposition(texts.payments, toPayment(credit), returned.get(paymentId))
    return renderFact(html`${received} ${chip}`, showTokens(locale, credit, amount))
  })
  return html`<dl class="list">
${renderFact(price, priced)}
${renderFact(rate, rated)}
${credits.length === 0 && renderFact(received, nothing)}
${arrived}
</dl>`
}

function renderFacts(screen: Screen, { checkout, receipt, credits }: Trail, main: CreditRow | null): Html {
  const texts = screen.texts.payment
  const [shown = null] = main ? [main] : credits
  const payment = shown && toPayment(shown)
  const wire = checkout && toStoreWire(screen.ctx, checkout, null)
  const metadata = wire?.metadata && Object.entries(wire.metadata)
  return html`<dl class="list tall">
${renderFact(texts.payer, payment && showFours(payment.payer))}
${renderFact(texts.paidTo, payment && showFours(payment.payTo))}
${renderFact(texts.transaction, payment && showFours(payment.transaction))}
${renderFact(texts.checkout, checkout && html`<code>${checkout.id}</code>`)}
${renderFact(texts.payment, payment && html`<code>${payment.id}</code>`)}
${renderFact(texts.order, checkout && html`<bdi>${checkout.orderId}</bdi>`)}
${renderFact(texts.receipt, receipt && renderReceipt(screen, receipt))}
${renderFact(texts.description, wire?.description === undefined ? null : html`<bdi>${wire.description}</bdi>`)}
${renderFact(
  texts.metadata,
  metadata &&
    html`${metadata.map(([name, value]) => html`<p><code><bdi>${name}</bdi>: <bdi>${value}</bdi></code></p>`)}`,
)}
</dl>`
}
