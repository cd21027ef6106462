import type { Currency } from '@farthing/sdk'
import type { FastifyRequest } from 'fastify'
import { type Checkout, toWire } from '../../../checkouts/checkout.ts'
import type { Context } from '../../../context.ts'
import { mayAct } from '../../../members/rights.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderQr } from '../../page/parts/qr.ts'
import { type Locale, showMoney, showTime } from '../formats.ts'
import { type Texts, textsOf } from '../texts/choose.ts'
import { storeOf } from '../visitor.ts'
import type { Entered } from './make.ts'

/** Why a payment could not be made, by its field or problem. */
export type Fault = keyof Texts['newPayment']['faults']

export function renderNoWallet(request: FastifyRequest): Html {
  const texts = textsOf(request).newPayment
  const { storeId, role } = storeOf(request)
  return html`<div class="head plain"><h1>${texts.title}</h1></div>
<section class="pane empty"><h2>${texts.noWallet}</h2><p class="soft">${texts.noWalletAbout}</p>${
    mayAct(role, 'wallets:write')
      ? html`<p><a class="button" href="/stores/${storeId}/wallets">${texts.toWallets}</a></p>`
      : html`<p>${texts.askOwner}</p>`
  }</section>`
}

export function renderForm(
  request: FastifyRequest,
  { key, amount, currency, description, order }: Entered,
  currencies: readonly Currency[],
  fault: Fault | null,
  formField: Html,
): Html {
  const texts = textsOf(request).newPayment
  const { storeId } = storeOf(request)
  const wrong = (...faults: readonly Fault[]) =>
    fault && faults.includes(fault) && html` aria-invalid="true" aria-describedby="fault"`
  return html`<div class="head plain"><div><h1>${texts.title}</h1><p class="soft">${texts.about}</p></div></div>
<section class="pane stack">${fault && html`<p class="note" id="fault" role="alert">${texts.faults[fault]}</p>`}
<form class="fields" method="post" action="/stores/${storeId}/new">${formField}<input type="hidden" name="key" value="${key}">
<div class="till"><label>${texts.amount}<input class="price" name="amount" value="${amount}" inputmode="decimal" autocomplete="off" required maxlength="23" placeholder="0.00" autofocus${wrong('amount', 'ambiguous')}></label>
<label>${texts.currency}<select name="currency"${wrong('currency')}>${currencies.map(({ code, name }) => html`<option value="${code}"${code === currency && html` selected`}>${code} · ${name}</option>`)}</select></label></div>
<label>${texts.description}<input name="description" value="${description}" maxlength="500" autocomplete="off"${wrong('description')}><small>${texts.descriptionAbout}</small></label>
<label>${texts.order}<input name="order" value="${order}" maxlength="255" autocomplete="off"${wrong('order')}></label>
<div><button>${texts.make}</button></div></form></section>`
}

const tones = { OPEN: 'busy', PROCESSING: 'busy', COMPLETED: 'good', EXPIRED: 'bad', CANCELED: '' } as const

/** Large enough to be read across a counter. */
export function renderMade(
  ctx: Context,
  request: FastifyRequest,
  checkout: Checkout,
  locale: Locale,
  formField: Html,
): Html {
  const texts = textsOf(request).newPayment
  const base = `/stores/${storeOf(request).storeId}`
  const { id, status, priceAmount, priceCurrency, description, orderId, expiresAt } = checkout
  const { title, text } = texts.states[status]
  const { checkoutUrl } = toWire(ctx, checkout)
  const isOpen = status === 'OPEN'
  return html`<div class="head"><div><p class="soft"><bdi>${description ?? orderId}</bdi></p><h1 class="price"><bdi>${showMoney(locale, priceAmount, priceCurrency)}</bdi></h1></div>
<div class="row"><a class="button${isOpen && ' quiet'}" href="${base}/new">${texts.another}</a></div></div>
<section class="pane till-made"><div role="status"><p class="state ${tones[status]}">${title}</p><p class="soft">${text} ${isOpen && fill(texts.until, { time: showTime(locale, expiresAt, ctx.now()) })}</p></div>
${
  isOpen &&
  html`${renderQr(checkoutUrl, texts.scan)}
<div class="copy"><code class="link" tabindex="0">${checkoutUrl}</code><button type="button" data-copy="${checkoutUrl}" data-done="${texts.copied}">${texts.copy}</button></div>`
}
<div class="buttons">${
    isOpen &&
    html`<a class="button quiet" href="${checkoutUrl}" rel="noreferrer" target="_blank">${texts.open}</a>
<form method="post" action="${base}/checkouts/${id}/cancel">${formField}<input type="hidden" name="from" value="new"><button class="quiet">${texts.cancel}</button></form>`
  }
<a href="${base}/checkouts/${id}">${texts.details}</a></div></section>`
}
