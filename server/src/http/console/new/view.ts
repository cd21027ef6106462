import type { Currency } from '@farthing/sdk'
import { type Checkout, toWire } from '../../../checkouts/checkout.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { renderQr } from '../../page/parts/qr.ts'
import { showMoney, showTime } from '../formats.ts'
import { renderHead } from '../parts.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'

/** Why a payment could not be made, by its field or problem. */
export type EntryFault = keyof Texts['newPayment']['faults']

/** The form's values. Each form has its own key, so that submitting it twice makes one checkout. */
export type Entered = {
  readonly key: string
  readonly amount: string
  readonly currency: string
  readonly description: string
  readonly order: string
}

export function renderNoWallet(screen: Screen): Html {
  const texts = screen.texts.newPayment
  const { base } = screen
  return html`${renderHead(texts.title)}
<section class="pane empty"><h2>${texts.noWallet}</h2><p class="soft">${texts.noWalletAbout}</p>${
    screen.may('wallets:write')
      ? html`<p><a class="button" href="${base}/wallets/new">${texts.toWallets}</a></p>`
      : html`<p>${texts.askOwner}</p>`
  }</section>`
}

export function renderForm(
  screen: Screen,
  { key, amount, currency, description, order }: Entered,
  currencies: readonly Currency[],
  fault: EntryFault | null,
): Html {
  const { base, formFields } = screen
  const texts = screen.texts.newPayment
  const wrong = (...faults: readonly EntryFault[]) =>
    fault && faults.includes(fault) && html` aria-invalid="true" aria-describedby="fault"`
  return html`${renderHead(texts.title, { about: texts.about })}
<section class="pane stack">${fault && html`<p class="note" id="fault" role="alert">${texts.faults[fault]}</p>`}
<form class="fields" method="post" action="${base}/new">${formFields}<input type="hidden" name="key" value="${key}">
<div class="till"><label>${texts.amount}<input class="price" name="amount" value="${
    amount
  }" inputmode="decimal" autocomplete="off" required maxlength="23" placeholder="0.00" autofocus${wrong(
    'amount',
    'ambiguous',
  )}></label>
<label>${texts.currency}<select name="currency"${wrong('currency')}>${currencies.map(
    ({ code, name }) =>
      html`<option value="${code}"${code === currency && html` selected`}>${code} · ${name}</option>`,
  )}</select></label></div>
<label>${texts.description}<input name="description" value="${description}" maxlength="500" autocomplete="off"${wrong(
    'description',
  )}><small>${texts.descriptionAbout}</small></label>
<label>${texts.order}<input name="order" value="${order}" maxlength="255" autocomplete="off"${wrong('order')}></label>
<div><button>${texts.make}</button></div></form></section>`
}

const tones = { OPEN: 'busy', PROCESSING: 'busy', COMPLETED: 'good', EXPIRED: 'bad', CANCELED: '' } as const

/** Large enough to be read across a counter. */
export function renderMade(screen: Screen, checkout: Checkout): Html {
  const { ctx, base, locale, now, formFields } = screen
  const texts = screen.texts.newPayment
  const { id, status, priceAmount, priceCurrency, description, orderId, expiresAt } = checkout
  const { title, text } = texts.states[status]
  const { checkoutUrl } = toWire(ctx, checkout)
  const isOpen = status === 'OPEN'
  return html`<div class="head"><div><p class="soft"><bdi>${description ?? orderId}</bdi></p>
<h1 class="price"><bdi>${showMoney(locale, priceAmount, priceCurrency)}</bdi></h1></div>
<div class="row"><a class="button${isOpen && ' quiet'}" href="${base}/new">${texts.another}</a></div></div>
<section class="pane till-made"><div role="status"><p class="state ${tones[status]}">${title}</p>
<p class="soft">${text} ${isOpen && fill(texts.until, { time: showTime(locale, expiresAt, now) })}</p></div>
${
  isOpen &&
  html`${renderQr(checkoutUrl, texts.scan)}
<div class="copy"><code class="link" tabindex="0">${checkoutUrl}</code><button type="button" data-copy="${
    checkoutUrl
  }" data-done="${texts.copied}">${texts.copy}</button></div>`
}
<div class="buttons">${
    isOpen &&
    html`<a class="button quiet" href="${checkoutUrl}" rel="noreferrer" target="_blank">${texts.open}</a>
<form method="post" action="${base}/checkouts/${id}/cancel">${formFields}
<input type="hidden" name="from" value="new"><button class="quiet">${texts.cancel}</button></form>`
  }
<a href="${base}/checkouts/${id}">${texts.details}</a></div></section>`
}
