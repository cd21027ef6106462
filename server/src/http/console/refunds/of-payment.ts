import type { FastifyRequest } from 'fastify'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { type Reader, showTime, showUnits } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { amountOf, renderChip } from './list.ts'
import { renderObstacle, type Standing } from './standing.ts'

/** On a payment's screen: what went back of it, and the way to send more back, or why there is none. */
export function renderRefunds(
  request: FastifyRequest,
  standings: readonly Standing[],
  reader: Reader,
  now: Date,
): Html | null {
  if (standings.length === 0) return null
  const texts = textsOf(request).refunds
  return html`<h2 id="refunds">${texts.refundsOf}</h2>${standings.map((standing) => renderOf(request, standing, reader, now))}`
}

function renderOf(request: FastifyRequest, standing: Standing, reader: Reader, now: Date): Html {
  const texts = textsOf(request).refunds
  const { storeId } = storeOf(request)
  const { payment, refunds, left, obstacle } = standing
  const { symbol, decimals } = describeOption(payment)
  const base = `/stores/${storeId}`
  const lines = refunds.map(
    (refund) =>
      html`<li><span><a href="${base}/refunds/${refund.id}">${amountOf(reader, refund)}</a> ${renderChip(texts, refund)}</span>${showTime(reader, new Date(refund.createdAt), now)}</li>`,
  )
  const shown = showUnits(reader, left, decimals, symbol)
  const why = renderObstacle(texts, storeId, standing, reader, now)
  return html`<div class="stack">${lines.length > 0 && html`<ul class="list">${lines}</ul>`}${
    obstacle === null
      ? html`<p><a class="button quiet" href="${base}/payments/${payment.paymentId}/refund">${fill(texts.refundOf, { amount: shown })}</a></p>`
      : html`<p class="soft">${why}</p>`
  }</div>`
}
