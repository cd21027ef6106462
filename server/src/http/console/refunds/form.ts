import type { RefundWay } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import { toShown } from '../../../chains/families.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { toTyped } from '../amount.ts'
import { type Reader, showFours, showUnits } from '../formats.ts'
import { textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import { renderObstacle, type Standing } from './standing.ts'

/** Who gets it: the payer if they signed, else whom the buyer names; or an address that a member names by a touch. */
export type To = 'own' | 'address'

/** What somebody entered. A form has a key of its own, so that submitting it twice makes one refund. */
export type Entered = {
  readonly key: string
  readonly amount: string
  readonly recipient: string
  readonly reason: string
  readonly way: RefundWay
}

/** The texts of a form's fields, in the order in which the touch names them. */
export const fieldNames = ['key', 'amount', 'recipient', 'reason', 'way'] as const

export type Form = {
  readonly standing: Standing
  readonly to: To
  readonly entered: Entered
  /** Why what was entered before was refused. */
  readonly problem: string | null
  readonly reader: Reader
  readonly now: Date
  readonly formField: Html
}

const ways: readonly RefundWay[] = ['signed', 'sent']

export function renderForm(request: FastifyRequest, form: Form): Html {
  const texts = textsOf(request).refunds
  const { storeId } = storeOf(request)
  const { standing, problem, reader } = form
  const { payment } = standing
  const above = `/stores/${storeId}/payments/${payment.paymentId}`
  const { symbol, decimals } = describeOption(payment)
  const units = (amount: bigint) => showUnits(reader, amount, decimals, symbol)
  const obstacle = renderObstacle(texts, storeId, standing, reader, form.now)
  return html`<div class="head plain"><div><p><a href="${above}">${texts.ofPayment}</a></p><h1>${texts.refund}</h1></div></div>
${problem !== null && html`<p class="note" role="alert">${problem}</p>`}
<div class="split"><section class="pane stack">${obstacle ? html`<p class="words">${obstacle}</p>` : renderFields(request, form)}</section>
<section class="facts stack"><dl class="list"><div><dt>${texts.received}</dt><dd>${units(payment.amount)}</dd></div>
<div><dt>${texts.refunded}</dt><dd>${units(payment.amount - standing.left)}</dd></div>
<div><dt>${texts.left}</dt><dd><strong>${units(standing.left)}</strong></dd></div></dl>
<dl class="list tall"><div><dt>${texts.from}</dt><dd>${showFours(toShown(payment.network, payment.payTo))}</dd></div></dl></section></div>`
}

function renderFields(request: FastifyRequest, form: Form): Html {
  const texts = textsOf(request).refunds
  const { storeId } = storeOf(request)
  const { standing, to, entered, reader, formField } = form
  const { payment, left, isSigned } = standing
  const { symbol, decimals, name } = describeOption(payment)
  const path = `/stores/${storeId}/payments/${payment.paymentId}/refund`
  const tab = (each: To, text: string) =>
    html`<a href="${each === 'own' ? path : `${path}?to=address`}"${each === to && html` aria-current="page"`}>${text}</a>`
  const isAddress = to === 'address'
  const about = isAddress ? texts.toAddressAbout : isSigned ? texts.toPayerAbout : texts.toBuyerAbout
  const shownLeft = showUnits(reader, left, decimals, symbol)
  return html`<h2 id="who">${texts.who}</h2>
<nav class="tabs" aria-labelledby="who">${tab('own', isSigned ? texts.toPayer : texts.toBuyer)}${tab('address', texts.toAddress)}</nav>
<form class="fields" method="post" action="${isAddress ? `${path}/address` : path}"${isAddress && html` data-confirm="refund.create"`}>${formField}<input type="hidden" name="storeId" value="${storeId}"><input type="hidden" name="paymentId" value="${payment.paymentId}"><input type="hidden" name="key" value="${entered.key}">
<p class="soft">${about}</p>
${
  isAddress
    ? html`<label>${fill(texts.address, { network: name })}<input name="recipient" value="${entered.recipient}" required maxlength="100" autocomplete="off" spellcheck="false" class="address"></label>`
    : isSigned && showFours(toShown(payment.network, payment.payer))
}
<label>${fill(texts.howMuch, { symbol })}<input name="amount" value="${entered.amount || toTyped(left, decimals)}" required inputmode="decimal" maxlength="40" autocomplete="off"><small>${fill(texts.howMuchAbout, { left: shownLeft })}</small></label>
<label>${texts.why}<input name="reason" value="${entered.reason}" maxlength="500" autocomplete="off"><small>${texts.whyAbout}</small></label>
<fieldset><legend>${texts.way}</legend>${ways.map(
    (way) =>
      html`<label class="choice"><input type="radio" name="way" value="${way}"${way === entered.way && html` checked`}><b>${texts.ways[way].title}</b><small>${texts.ways[way].text}</small></label>`,
  )}</fieldset>
<div class="buttons"><button>${isAddress ? texts.touch : texts.create}</button></div></form>`
}
