import type { Event, Payment } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import type { Checkout } from '../../../checkouts/checkout.ts'
import type { Likely, Owed } from '../../../checkouts/payments/likely.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import type { StorePayment } from '../../../payments/credits/store-payments.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { showDuration, showFours, showMoney, showTime, showTokens } from '../formats.ts'
import { renderFact, renderHead, renderTransaction } from '../parts.ts'
import type { Screen } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'

/** What became of a decision. */
export type Result = keyof Texts['inbox']['results']

type Item = {
  readonly payment: StorePayment
  /** The checkout it was meant for, if that is known. */
  readonly owed: Owed | null
  readonly likely: readonly Likely[]
  /** What the member searched for, for this payment. */
  readonly search: { readonly text: string; readonly found: readonly Checkout[] } | null
}

export type Inbox = {
  readonly items: readonly Item[]
  /** The payment that is unfolded. */
  readonly opened: string | null
  readonly hasMore: boolean
  /** What members and keys did about payments, newest first. */
  readonly recent: readonly Event[]
  readonly result: Result | null
}

export function renderInbox(screen: Screen, inbox: Inbox): Html {
  const texts = screen.texts.inbox
  const { items, result, hasMore } = inbox
  const isGood = result === 'accepted' || result === 'dismissed' || result === 'doing'
  return html`${renderHead(texts.title, { about: html`<p class="soft words">${texts.about}</p>` })}
${result && html`<p class="note${isGood && ' good'}" role="status">${texts.results[result]}</p>`}
${
  items.length === 0
    ? html`<section class="pane empty"><h2>${texts.empty}</h2><p class="soft">${texts.emptyAbout}</p></section>`
    : html`<section aria-label="${texts.title}">${items.map((item) => renderItem(screen, inbox, item))}</section>`
}
${hasMore && html`<p class="pane soft">${texts.more}</p>`}
${renderRecent(screen, inbox)}`
}

function renderItem(screen: Screen, inbox: Inbox, item: Item): Html {
  const texts = screen.texts.inbox
  const { payment, owed } = item
  const { locale, now } = screen
  const { disposition } = payment
  if (disposition === 'exact') return html``
  const { paymentId, amount, firstBlockTime } = payment
  const summary = html`<span class="chip bad">${texts.dispositions[disposition]}</span>
<strong>${showTokens(locale, payment, amount)}</strong>
<span class="what soft">${whyOf(screen, payment, owed)}</span>${showTime(locale, firstBlockTime, now)}`
  return html`<details class="item" id="${paymentId}"${paymentId === inbox.opened && html` open`}>
<summary>${summary}</summary>
<div class="cols"><div class="stack">${renderDecision(screen, item)}</div>
${renderFacts(screen, payment)}</div></details>`
}

/** Why it completed nothing, in words. */
function whyOf({ texts, locale }: Screen, payment: CreditRow, owed: Owed | null): Html {
  const { why } = texts.inbox
  if (!owed) return html`${why.unmatched}`
  const { checkout, due } = owed
  const order = html`<bdi>${checkout.orderId}</bdi>`
  const units = (amount: bigint) => showTokens(locale, payment, amount)
  if (payment.disposition === 'late') {
    const lateMs = payment.firstBlockTime.getTime() - checkout.expiresAt.getTime()
    if (lateMs > 0) return fill(why.expired, { order, time: showDuration(locale, lateMs) })
    return fill(checkout.status === 'CANCELED' ? why.canceled : why.late, { order })
  }
  if (due !== null && payment.amount < due)
    return fill(why.underpaid, { order, due: units(due), difference: units(due - payment.amount) })
  if (checkout.status === 'COMPLETED' || due === null || payment.amount === due)
    return fill(why.twice, { order })
  return fill(why.overpaid, { order, due: units(due), difference: units(payment.amount - due) })
}

function renderDecision(screen: Screen, item: Item): Html {
  const texts = screen.texts.inbox
  const { payment } = item
  if (!screen.may('payments:write')) return html`<p class="soft">${texts.mayNot}</p>`
  if (!payment.mayDecide) return html`<p>${texts.unproven}</p>`
  return html`${item.owed ? renderOwn(screen, item.owed, payment) : renderLikely(screen, item)}
${renderDismiss(screen, payment)}
<p><a href="${screen.base}/payments/${payment.paymentId}/refund">${texts.refundInstead}</a></p>`
}

/** For money that belongs to a checkout: accept it for that one. */
function renderOwn(screen: Screen, { checkout }: Owed, payment: CreditRow): Html {
  const texts = screen.texts.inbox
  const order = html`<bdi>${checkout.orderId}</bdi>`
  if (checkout.status === 'COMPLETED') return html`<p class="words">${fill(texts.paidAlready, { order })}</p>`
  const amount = showTokens(screen.locale, payment, payment.amount)
  return html`<p class="words">${fill(texts.acceptAbout, { amount })}</p>
${renderForm(
  screen,
  payment,
  'accept',
  html`<div class="buttons"><button>${fill(texts.acceptFor, { order })}</button></div>`,
)}`
}

/** For money without a checkout: the likely ones, or those that the member searched for. */
function renderLikely(screen: Screen, { payment, likely, search }: Item): Html {
  const texts = screen.texts.inbox
  const { base } = screen
  const known = new Map(likely.map((each) => [each.checkout.id, each]))
  const offered: readonly (Likely | { readonly checkout: Checkout })[] = search
    ? search.found.map((checkout) => known.get(checkout.id) ?? { checkout })
    : likely
  const named = search && html`<bdi>${search.text}</bdi>`
  const said = named
    ? fill(search.found.length > 0 ? texts.found : texts.notFound, { text: named })
    : html`${likely.length > 0 ? texts.whatFor : texts.noneLikely}`
  const [first] = offered
  const form =
    first &&
    renderForm(
      screen,
      payment,
      'accept',
      html`<fieldset><legend>${said}</legend>${offered.map((each, place) =>
        renderOffer(screen, payment, each, place === 0),
      )}</fieldset>
<div class="buttons"><button>${
        offered.length === 1
          ? fill(texts.acceptFor, { order: html`<bdi>${first.checkout.orderId}</bdi>` })
          : texts.accept
      }</button></div>`,
    )
  return html`${form ?? html`<p class="soft">${said}</p>`}
<form class="find" action="${base}/inbox#${payment.paymentId}"><input type="hidden" name="payment" value="${
    payment.paymentId
  }"><input type="search" name="find" value="${search?.text ?? ''}" placeholder="${
    texts.another
  }" aria-label="${texts.another}" maxlength="255" autocomplete="off" required><button class="quiet">${
    texts.find
  }</button></form>`
}

function renderOffer(
  screen: Screen,
  payment: CreditRow,
  offer: Likely | { readonly checkout: Checkout },
  isFirst: boolean,
): Html {
  const texts = screen.texts.inbox
  const { locale } = screen
  const { checkout } = offer
  const { id, orderId, priceAmount, priceCurrency, status, createdAt } = checkout
  const beforeMs = payment.firstBlockTime.getTime() - createdAt.getTime()
  const asked = checkout.options.find(
    ({ network, asset }) =>
      network === payment.network && asset.toLowerCase() === payment.asset.toLowerCase(),
  )
  const isSame = 'isSameAmount' in offer && offer.isSameAmount
  const isNamed = 'isNamed' in offer && offer.isNamed
  // Chosen beforehand only if more than the time speaks for it: one careless click must not pay an order with less.
  const isChosen = isFirst && (!('isSameAmount' in offer) || isSame || isNamed)
  const reasons = [
    isNamed && html`${texts.reasons.named} `,
    isSame && html`${texts.reasons.same} `,
    !isSame &&
      asked !== undefined &&
      html`${fill(texts.reasons.wanted, { due: showTokens(locale, payment, BigInt(asked.amount)) })} `,
    beforeMs > 0 && fill(texts.reasons.opened, { time: showDuration(locale, beforeMs) }),
  ]
  return html`<label class="choice"><input type="radio" name="checkoutId" value="${id}" required${
    isChosen && html` checked`
  }><strong><bdi>${orderId}</bdi></strong><span>${showMoney(
    locale,
    priceAmount,
    priceCurrency,
  )} · ${texts.statuses[status]}</span><small>${reasons}</small></label>`
}

function renderDismiss(screen: Screen, payment: CreditRow): Html {
  const texts = screen.texts.inbox
  return html`<details id="dismiss-${payment.paymentId}"><summary>${texts.dismissInstead}</summary>${renderForm(
    screen,
    payment,
    'dismiss',
    html`<p class="soft">${texts.dismissAbout}</p>
<label class="field">${texts.note}<input name="note" maxlength="1000" autocomplete="off"></label>
<div class="buttons"><button class="quiet">${texts.dismiss}</button></div>`,
  )}</details>`
}

function renderForm(
  { base, formFields }: Screen,
  { paymentId }: CreditRow,
  verb: 'accept' | 'dismiss',
  content: Html,
): Html {
  return html`<form class="stack" method="post" action="${base}/inbox/${verb}">${formFields}
<input type="hidden" name="paymentId" value="${paymentId}">${content}</form>`
}

function renderFacts(screen: Screen, payment: CreditRow): Html {
  const { base, locale, now } = screen
  const texts = screen.texts.inbox
  const network = describeOption(payment).name
  const state = payment.finalizedAt
    ? fill(texts.finalSince, { network, time: showTime(locale, payment.finalizedAt, now) })
    : fill(texts.notFinal, { network })
  return html`<dl class="list tall">${renderFact(texts.payer, showFours(toShown(payment.network, payment.payer)))}
${renderFact(texts.network, state)}
${renderFact(texts.transaction, renderTransaction(payment.network, payment.transaction))}
<div><dt><a href="${base}/payments/${payment.paymentId}">${texts.whole}</a></dt></div></dl>`
}

function renderRecent(screen: Screen, { recent }: Inbox): Html | null {
  const { base, locale, now } = screen
  const texts = screen.texts.inbox
  const decided = recent.filter(({ type }) => type === 'payment.accepted' || type === 'payment.dismissed')
  if (decided.length === 0) return null
  return html`<section class="pane"><h2>${texts.recent}</h2><ul class="list">${decided.map((event) => {
    const { payment, checkout } = event.data as unknown as {
      readonly payment: Payment
      readonly checkout: { readonly orderId: string } | null
    }
    const amount = html`<strong>${showTokens(locale, payment, payment.amount)}</strong>`
    const what =
      event.type === 'payment.accepted'
        ? fill(texts.accepted, { amount, order: html`<bdi>${checkout?.orderId ?? ''}</bdi>` })
        : fill(texts.dismissed, { amount })
    const who = event.actor?.name ?? event.actor?.id ?? ''
    const note = event.type === 'payment.dismissed' ? payment.note?.text : undefined
    return html`<li><span><a href="${base}/payments/${payment.id}">${what}</a>
<span class="soft">${fill(texts.by, { name: html`<bdi>${who}</bdi>` })}${
      note !== undefined && html`: “<bdi>${note}</bdi>”`
    }</span></span>${showTime(locale, new Date(event.createdAt), now)}</li>`
  })}</ul></section>`
}
