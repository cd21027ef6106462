import type { FastifyRequest } from 'fastify'
import { storeFacts, toStoreWire } from '../../../checkouts/checkout.ts'
import type { Context } from '../../../context.ts'
import { mayAct } from '../../../members/rights.ts'
import { type CreditRow, toPayment } from '../../../payments/credits/credit.ts'
import { isDust, isUndecided } from '../../../payments/credits/undecided-rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { type Reader, showExactTime, showFours, showMoney, showUnits } from '../formats.ts'
import { screensOf } from '../frame/screens.ts'
import { renderDisposition, renderState } from '../payments/list.ts'
import { mainOf } from '../payments/received.ts'
import { renderRefunds } from '../refunds/of-payment.ts'
import type { Standing } from '../refunds/standing.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { gapOf, type Step, stepsOf, type Trail } from './trail.ts'

export function renderPayment(
  ctx: Context,
  request: FastifyRequest,
  trail: Trail,
  standings: readonly Standing[],
  reader: Reader,
  formField: Html,
): Html {
  const texts = textsOf(request).payment
  const main = mainOf(trail.credits)
  const steps = stepsOf(trail, reader)
  return html`${renderHead(ctx, request, trail, main, reader, formField)}
<div class="split"><section class="pane"><h2>${texts.happened}</h2><ol class="line">${steps.map((step, place) => renderStep(request, step, steps[place - 1], reader, place))}</ol></section>
<section class="facts"><h2>${texts.moneyTitle}</h2>${renderMoney(request, trail, reader)}${renderRefunds(request, standings, reader, ctx.now())}<h2>${texts.facts}</h2>${renderFacts(ctx, request, trail, main)}</section></div>`
}

function renderHead(
  ctx: Context,
  request: FastifyRequest,
  { checkout, credits, returned }: Trail,
  main: CreditRow | null,
  reader: Reader,
  formField: Html,
): Html {
  const list = textsOf(request).payments
  const texts = textsOf(request).payment
  const store = storeOf(request)
  const base = `/stores/${store.storeId}`
  const money = main && unitsOf(main, main.amount, reader)
  const [shown = main] = credits
  const chip = checkout
    ? renderState(list, checkout, main, returned.get(main?.paymentId ?? ''))
    : shown && renderDisposition(list, toPayment(shown), returned.get(shown.paymentId))
  const price = checkout ? showMoney(reader, checkout.priceAmount, checkout.priceCurrency) : (money ?? '')
  const status = checkout?.status ?? null
  const credit = checkout ? main : (credits[0] ?? null)
  const back = returned.get(credit?.paymentId ?? '') ?? 0n
  const next = nextOf(status, credit, back)
  const amount = credit === null ? '' : unitsOf(credit, back, reader)
  const isPartBack = back > 0n && next !== 'refunded' && next !== 'partlyRefunded'
  const isOpen = checkout?.status === 'OPEN'
  const hasInbox = screensOf(store).some(({ id }) => id === 'inbox')
  return html`<div class="head"><div><p class="soft"><a href="${base}/payments">${list.title}</a>${checkout && html` / <bdi>${checkout.orderId}</bdi>`}</p>
<h1 class="price"><bdi>${price}</bdi> ${chip}</h1>${checkout && money !== null && html`<p>${money} · ${main && describeOption(main).name}</p>`}</div>
<div class="next"><p><strong>${texts.next[next].title}</strong> ${fill(texts.next[next].text, { amount })}${isPartBack && html` ${fill(texts.partBack, { amount })}`}</p><div class="row">${
    needsDecision(status, credit) &&
    hasInbox &&
    html`<a class="button" href="${base}/inbox?payment=${credit.paymentId}#${credit.paymentId}">${texts.decide}</a>`
  }${
    isOpen &&
    html`<a class="button quiet" href="${`${ctx.config.checkoutPageUrl}/${checkout.id}`}" rel="noreferrer" target="_blank">${texts.openPage}</a>`
  }${
    isOpen &&
    mayAct(store.role, 'payments:write') &&
    html`<form method="post" action="${base}/checkouts/${checkout.id}/cancel">${formField}<button class="quiet">${texts.cancel}</button></form>`
  }</div></div></div>`
}

type Next = keyof Texts['payment']['next']

/** What is left to do: money that nobody has decided about comes first, unless all of it went back. */
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

/** An amount of what was paid. */
function unitsOf(credit: CreditRow, amount: bigint, reader: Reader): string {
  const { symbol, decimals } = describeOption(credit)
  return showUnits(reader, amount, decimals, symbol)
}

function renderStep(
  request: FastifyRequest,
  step: Step,
  before: Step | undefined,
  reader: Reader,
  place: number,
): Html {
  const texts = textsOf(request).payment
  const { title, text } = texts.steps[step.id]
  const gap = gapOf(reader, before, step)
  const tone = step.tone === 'done' ? '' : step.tone
  return html`<li${tone !== '' && html` class="${tone}"`}><p class="row apart"><span><strong>${title}</strong>${gap !== null && html` <small class="soft">${texts.later.replace('{time}', gap)}</small>`}</span>${step.at && showExactTime(reader, step.at)}</p>
<p class="soft">${fill(text, step.fills)}${step.by !== null && html` · ${fill(texts.by, { name: html`<bdi>${step.by}</bdi>` })}`}</p>
${step.raw !== null && html`<details id="raw-${place}"><summary>${texts.raw}</summary><pre tabindex="0"><code>${JSON.stringify(step.raw, null, 2)}</code></pre></details>`}</li>
`
}

function renderMoney(request: FastifyRequest, { checkout, credits, returned }: Trail, reader: Reader): Html {
  const texts = textsOf(request).payment
  const list = textsOf(request).payments
  const rate = checkout?.rate ?? null
  return html`<dl class="list">
${checkout && html`<div><dt>${texts.price}</dt><dd>${showMoney(reader, checkout.priceAmount, checkout.priceCurrency)}</dd></div>`}
${checkout && rate && html`<div><dt>${texts.rate}</dt><dd>1 ${checkout.priceCurrency} = ${rateOf(checkout)} USD · ${rate.source}</dd></div>`}
${credits.length === 0 && html`<div><dt>${texts.received}</dt><dd>${texts.nothing}</dd></div>`}
${credits.map((credit) => html`<div><dt>${texts.received} ${credit.disposition !== 'exact' && renderDisposition(list, toPayment(credit), returned.get(credit.paymentId))}</dt><dd>${unitsOf(credit, credit.amount, reader)}</dd></div>`)}
</dl>`
}

function rateOf(checkout: NonNullable<Trail['checkout']>): string {
  return storeFacts(checkout).rate?.rate ?? ''
}

function renderFacts(
  ctx: Context,
  request: FastifyRequest,
  { checkout, credits }: Trail,
  main: CreditRow | null,
): Html {
  const texts = textsOf(request).payment
  const [shown = null] = main ? [main] : credits
  const payment = shown && toPayment(shown)
  const fact = (name: string, value: Html | string | null | undefined) =>
    value !== null && value !== undefined && html`<div><dt>${name}</dt><dd>${value}</dd></div>`
  const wire = checkout && toStoreWire(ctx, checkout, null)
  return html`<dl class="list tall">
${fact(texts.payer, payment && showFours(payment.payer))}
${fact(texts.paidTo, payment && showFours(payment.payTo))}
${fact(texts.transaction, payment && showFours(payment.transaction))}
${fact(texts.checkout, checkout && html`<code>${checkout.id}</code>`)}
${fact(texts.payment, payment && html`<code>${payment.id}</code>`)}
${fact(texts.order, checkout && html`<bdi>${checkout.orderId}</bdi>`)}
${fact(texts.description, wire?.description === undefined ? null : html`<bdi>${wire.description}</bdi>`)}
${fact(texts.metadata, wire?.metadata && html`${Object.entries(wire.metadata).map(([name, value]) => html`<p><code><bdi>${name}</bdi>: <bdi>${value}</bdi></code></p>`)}`)}
${fact(texts.note, payment?.note && html`<bdi>${payment.note.text}</bdi> <small class="soft">${payment.note.actor.name ?? payment.note.actor.id}</small>`)}
</dl>`
}
