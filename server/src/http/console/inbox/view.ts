import type { Event, Payment, StoreCheckout } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import { type Checkout, nameOf } from '../../../checkouts/checkout.ts'
import { type Held, togetherMax, undoSeconds } from '../../../checkouts/payments/hold-decision.ts'
import type { Likely, Owed } from '../../../checkouts/payments/likely.ts'
import { networks } from '../../../networks.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { isUndecided, type StorePayment } from '../../../payments/credits/store-payments.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { showCount, showDuration, showFours, showMoney, showTime, showTokens } from '../formats.ts'
import {
  renderChip,
  renderFact,
  renderFilter,
  renderHead,
  renderHidden,
  renderOptions,
  renderPager,
  renderTransaction,
} from '../parts.ts'
import { type Screen, withQuery } from '../screen.ts'
import { hasText, type Texts } from '../texts/choose.ts'

/** What became of a form, where the payment itself does not show it. */
export type Result = keyof Texts['inbox']['results']

export const kinds = ['unmatched', 'underpaid', 'overpaid', 'late'] as const

export type InboxQuery = {
  readonly disposition: (typeof kinds)[number] | null
  /** CAIP-2. */
  readonly network: string | null
  /** The page begins below this payment; empty for the first page. */
  readonly before: string
  readonly payment: string
  readonly find: string
  readonly said: Result | null
  readonly isRefresh: boolean
}

type Item = {
  readonly payment: StorePayment
  /** What a member decided about it lately. */
  readonly held: Held | null
  /** The checkout it was meant for, if that is known. */
  readonly owed: Owed | null
  readonly likely: readonly Likely[]
  /** What the member searched for, for this payment. */
  readonly search: { readonly text: string; readonly found: readonly Checkout[] } | null
}

export type Inbox = {
  readonly query: InboxQuery
  readonly items: readonly Item[]
  /** Decisions that were refused, about payments that the network took back. */
  readonly gone: readonly Held[]
  /** With a filter: how many payments it shows on all pages, up to one more than can be put aside together. */
  readonly count: number
  /** Where the next page begins. */
  readonly before: string | null
  /** What members and keys did about payments, newest first. */
  readonly recent: readonly Event[]
}

export function renderInbox(screen: Screen, inbox: Inbox): Html {
  const texts = screen.texts.inbox
  const { items, query, before } = inbox
  const { said } = query
  const isNarrow = query.disposition !== null || query.network !== null
  const isEmpty = items.length === 0
  const opened = openedOf(inbox)
  const list = items.map((item) => renderItem(screen, inbox, item, opened))
  const at = (place: string | null) => addressOf(screen, query, { before: place })
  return html`${renderHead(texts.title, { about: html`<p class="soft words">${texts.about}</p>` })}
${said && html`<p class="note${said === 'undone' && ' good'}" role="status">${texts.results[said]}</p>`}
${inbox.gone.map((held) => renderGone(screen, held))}
${(!isEmpty || isNarrow || query.before !== '') && renderFilters(screen, inbox)}
${renderTogether(screen, inbox)}
${
  isEmpty
    ? renderEmpty(texts, isNarrow || query.before !== '')
    : html`<section aria-label="${texts.title}">${list}</section>`
}
${renderPager(
  { newest: screen.texts.payments.newest, older: screen.texts.payments.older },
  query.before === '' ? null : at(null),
  before === null ? null : at(before),
)}
${renderRecent(screen, inbox)}`
}

function renderEmpty(texts: Texts['inbox'], isNarrow: boolean): Html {
  if (isNarrow) return html`<section class="pane empty"><p>${texts.noneHere}</p></section>`
  return html`<section class="pane empty"><h2>${texts.empty}</h2><p class="soft">${texts.emptyAbout}</p></section>`
}

/** The payment that is unfolded: the one in the URL, or else the first, unless the screen loads itself again. */
function openedOf({ items, query }: Inbox): string | null {
  if (items.some(({ payment }) => payment.paymentId === query.payment)) return query.payment
  const first = items.find(({ payment, held }) => isLeft(payment, held))
  return query.isRefresh || query.payment !== '' ? null : (first?.payment.paymentId ?? null)
}

/** Whether it still needs a decision. */
function isLeft(payment: StorePayment, held: Held | null): boolean {
  return isUndecided(payment) && held?.state !== 'waiting'
}

function addressOf(
  { base }: Screen,
  { disposition, network }: InboxQuery,
  change: Readonly<Record<string, string | null>>,
): string {
  return withQuery(`${base}/inbox`, { kind: disposition, network, ...change })
}

/** By kind and network; with a filter, what it shows can be put aside together. */
function renderFilters(screen: Screen, inbox: Inbox): Html {
  const { query } = inbox
  const { texts, base, store } = screen
  const chips = [null, ...kinds].map((kind) =>
    renderFilter(
      addressOf(screen, query, { kind }),
      kind === null ? texts.payments.all : texts.inbox.dispositions[kind],
      query.disposition === kind,
    ),
  )
  const offered = networks.filter(({ mode }) => mode === store.mode)
  const options = renderOptions(query.network ?? '', [
    ['', texts.payments.anyNetwork],
    ...offered.map(({ caip2, name }) => [caip2, name] as const),
  ])
  return html`<div class="pane stack"><div class="row">${chips}</div>
<form class="find" action="${base}/inbox">${query.disposition && renderHidden('kind', query.disposition)}
<label class="field">${texts.payments.network}<select name="network">${options}</select></label>
<button class="quiet">${texts.payments.apply}</button></form>
${renderAsideAll(screen, inbox)}</div>`
}

function renderAsideAll(screen: Screen, { query, items, count }: Inbox): Html | null {
  const { texts, locale, base, formFields } = screen
  const newest = items.find(({ payment, held }) => isLeft(payment, held))?.payment.paymentId
  if (count < 2 || newest === undefined || !screen.may('payments:write')) return null
  const { asideAll, asideNewest, asideAbout, asideYes } = texts.inbox
  const shown = {
    count: showCount(locale, Math.min(count, togetherMax)),
    seconds: showCount(locale, undoSeconds),
  }
  const title = fill(count > togetherMax ? asideNewest : asideAll, shown)
  return html`<details class="ask" id="aside-all"><summary class="button quiet"><span>${title}</span></summary>
<form class="stack" method="post" action="${base}/inbox/dismiss-all">${formFields}
${renderKept(query)}${renderHidden('newest', newest)}<p class="words">${fill(asideAbout, shown)}</p>
<div class="buttons"><button>${asideYes}</button></div></form></details>`
}

/** The filter and the page, which a form leads back to. */
function renderKept({ disposition, network, before }: InboxQuery): Html {
  return html`${disposition && renderHidden('kind', disposition)}${network && renderHidden('network', network)}${
    before !== '' && renderHidden('before', before)
  }`
}

/** What was put aside together is undone together. */
function renderTogether(screen: Screen, { items, query }: Inbox): readonly Html[] {
  const { texts, locale } = screen
  const waiting = items.flatMap(({ held }) => (held?.isHeldBack && held.isOfSeveral ? held : []))
  const groups = [...new Map(waiting.map((held) => [held.together, held])).values()]
  return groups.map(
    (held) =>
      html`<div class="note good row apart" role="status"><span>${fill(texts.inbox.asideHeld, {
        seconds: showCount(locale, undoSeconds),
      })}</span>${renderUndo(screen, query, held)}</div>`,
  )
}

function renderUndo(
  screen: Screen,
  query: InboxQuery,
  { together, paymentId, isOfSeveral }: Held,
): Html | null {
  const { texts, base, formFields } = screen
  if (!screen.may('payments:write')) return null
  return html`<form class="undo" method="post" action="${base}/inbox/undo">${formFields}${renderKept(query)}
${renderHidden('together', together)}${!isOfSeveral && renderHidden('paymentId', paymentId)}
<button class="quiet">${isOfSeveral ? texts.inbox.undoAll : texts.inbox.undo}</button></form>`
}

function renderItem(screen: Screen, inbox: Inbox, item: Item, opened: string | null): Html {
  const texts = screen.texts.inbox
  const { payment, held, owed } = item
  const { locale, now } = screen
  const { paymentId, amount, firstBlockTime, disposition } = payment
  if (!isLeft(payment, held)) return renderDecided(screen, inbox, item)
  const kind = disposition === 'exact' ? null : texts.dispositions[disposition]
  const summary = html`${renderRefusedChip(screen, held) ?? renderChip(html`${kind}`, 'bad')}
<strong>${showTokens(locale, payment, amount)}</strong>
<span class="what soft">${whyOf(screen, payment, owed)}</span>${showTime(locale, firstBlockTime, now)}`
  return html`<details class="item" id="${paymentId}"${paymentId === opened && html` open`}>
<summary>${summary}</summary>
<div class="cols"><div class="stack">${renderRefused(screen, held)}${renderDecision(screen, inbox.query, item)}</div>
${renderFacts(screen, payment)}</div></details>`
}

/** What a member decided and `work` refused, and why. */
function sayRefused({ texts }: Screen, { kind, checkoutName, refused }: Held): Html {
  const { notAccepted, notAside, results, other } = texts.inbox
  const what =
    kind === 'accept' ? fill(notAccepted, { order: html`<bdi>${checkoutName ?? ''}</bdi>` }) : notAside
  const code = refused ?? ''
  return html`${what} ${hasText(results, code) ? results[code] : other}`
}

function renderRefused(screen: Screen, held: Held | null): Html | null {
  return held?.state === 'refused'
    ? html`<p class="note" role="status">${sayRefused(screen, held)}</p>`
    : null
}

/** In the place of the kind, so that it is seen without unfolding. */
function renderRefusedChip({ texts: { inbox } }: Screen, held: Held | null): Html | null {
  if (held?.state !== 'refused') return null
  return renderChip(held.kind === 'accept' ? inbox.chips.notAccepted : inbox.chips.notAside, 'bad')
}

/** A payment that is nowhere any more has no place in the list. */
function renderGone({ texts: { inbox }, locale }: Screen, { kind, checkoutName, paid }: Held): Html {
  const amount = html`<strong>${paid && showTokens(locale, paid, paid.amount)}</strong>`
  const order = html`<bdi>${checkoutName ?? ''}</bdi>`
  const said = fill(kind === 'accept' ? inbox.goneAccept : inbox.goneAside, { amount, order })
  return html`<p class="note" role="status">${said}</p>`
}

/**
 * A decided payment stays where it was. Its button is at the end of the line, where no button of another payment is, so
 * that a second press on the button that decided undoes and decides nothing.
 */
function renderDecided(screen: Screen, { query }: Inbox, { payment, held, owed }: Item): Html {
  const { texts, locale, now, base, actor } = screen
  const { inbox } = texts
  const { paymentId, amount, firstBlockTime, acceptedAt, dismissedAt } = payment
  const isWaiting = held?.state === 'waiting'
  const isAccepted = isWaiting ? held.kind === 'accept' : acceptedAt !== null
  const isAside = isWaiting ? held.kind === 'dismiss' : dismissedAt !== null
  const chosen = isWaiting ? held.checkoutName : null
  const order = html`<bdi>${chosen ?? (owed && nameOf(owed.checkout)) ?? held?.checkoutName ?? ''}</bdi>`
  const decided = isAccepted
    ? fill(inbox.heldAccepted, { order })
    : isAside && html`<span class="soft">${whyOf(screen, payment, owed)}</span>`
  const refused = held?.state === 'refused' && sayRefused(screen, held)
  const what =
    decided && refused ? html`${decided}. ${refused}` : decided || refused || inbox.results.payment_not_open
  const isTheirs = held !== null && held.state !== 'refused' && held.actor.id !== actor.id
  const by =
    isTheirs && html` ${fill(inbox.by, { name: html`<bdi>${held.actor.name ?? held.actor.id}</bdi>` })}`
  const hasUndo = held?.isHeldBack === true && !held.isOfSeveral
  const seconds = showCount(locale, undoSeconds)
  const until = hasUndo && html`. <span class="soft">${fill(inbox.heldFor, { seconds })}</span>`
  const end = hasUndo ? renderUndo(screen, query, held) : showTime(locale, firstBlockTime, now)
  const chip = isAccepted
    ? renderChip(inbox.chips.accepted, 'good')
    : isAside
      ? renderChip(inbox.chips.aside)
      : (renderRefusedChip(screen, held) ?? renderChip(inbox.chips.closed))
  return html`<div class="item decided" id="${paymentId}"><div class="line" role="status">${chip}
<strong><a href="${base}/payments/${paymentId}">${showTokens(locale, payment, amount)}</a></strong>
<span class="what">${what}${by}${until}</span>${end}</div></div>`
}

/** Why it completed nothing, in words. */
function whyOf({ texts, locale }: Screen, payment: CreditRow, owed: Owed | null): Html {
  const { why } = texts.inbox
  if (!owed) return html`${why.unmatched}`
  const { checkout, due } = owed
  const order = html`<bdi>${nameOf(checkout)}</bdi>`
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

function renderDecision(screen: Screen, query: InboxQuery, item: Item): Html {
  const texts = screen.texts.inbox
  const { payment } = item
  if (!screen.may('payments:write')) return html`<p class="soft">${texts.mayNot}</p>`
  if (!payment.mayDecide) return html`<p>${texts.unproven}</p>`
  return html`${item.owed ? renderOwn(screen, query, item.owed, payment) : renderLikely(screen, query, item)}
${renderDismiss(screen, query, payment)}
<p><a href="${screen.base}/payments/${payment.paymentId}/refund">${texts.refundInstead}</a></p>`
}

/** For money that belongs to a checkout: accept it for that one. */
function renderOwn(screen: Screen, query: InboxQuery, { checkout, due }: Owed, payment: CreditRow): Html {
  const { texts, locale } = screen
  const order = html`<bdi>${nameOf(checkout)}</bdi>`
  if (checkout.status === 'COMPLETED')
    return html`<p class="words">${fill(texts.inbox.paidAlready, { order })}</p>`
  const amount = showTokens(locale, payment, payment.amount)
  const isOther = due !== null && due !== payment.amount
  const about = isOther
    ? fill(texts.inbox.acceptInstead, { order, amount, due: showTokens(locale, payment, due) })
    : fill(texts.inbox.acceptAbout, { order, amount })
  return renderForm(
    screen,
    query,
    payment,
    'accept',
    renderAsk(screen, `accept-${payment.paymentId}`, fill(texts.inbox.acceptFor, { order }), about),
  )
}

/** Asks before a payment is accepted, below the button that asks for it, so that a second press there answers nothing. */
function renderAsk({ texts, locale }: Screen, id: string, title: Html, about: Html): Html {
  const seconds = showCount(locale, undoSeconds)
  return html`<details class="ask" id="${id}"><summary class="button"><span>${title}</span></summary>
<p class="words">${about} ${fill(texts.inbox.acceptFinal, { seconds })}</p>
<div class="buttons"><button>${texts.inbox.acceptYes}</button></div></details>`
}

type Offer = Likely | { readonly checkout: Checkout }

/** For money without a checkout: those with about its amount, or those that the member searched for. */
function renderLikely(screen: Screen, query: InboxQuery, { payment, likely, search }: Item): Html {
  const { base, locale } = screen
  const texts = screen.texts.inbox
  const near = likely.filter(({ isNear }) => isNear)
  const known = new Map(likely.map((each) => [each.checkout.id, each]))
  const offered: readonly Offer[] = search
    ? search.found.map((checkout) => known.get(checkout.id) ?? { checkout })
    : near
  const named = search && html`<bdi>${search.text}</bdi>`
  const said = named
    ? fill(search.found.length > 0 ? texts.found : texts.notFound, { text: named })
    : html`${near.length > 0 ? texts.whatFor : texts.noneLikely}`
  const amount = showTokens(locale, payment, payment.amount)
  const choices = offered.map((offer) => renderOffer(screen, payment, offer))
  const ask = renderAsk(
    screen,
    `accept-${payment.paymentId}`,
    html`${texts.accept}`,
    fill(texts.acceptChosen, { amount }),
  )
  const form =
    offered.length > 0 &&
    renderForm(
      screen,
      query,
      payment,
      'accept',
      html`<fieldset><legend>${said}</legend>${choices}</fieldset>${ask}`,
    )
  const others = search ? [] : likely.filter(({ isNear }) => !isNear)
  return html`${form || html`<p class="soft">${said}</p>`}
${others.map((other) => renderNamed(screen, payment, other))}
<form class="find" action="${base}/inbox#${payment.paymentId}">${renderKept(query)}${renderHidden(
    'payment',
    payment.paymentId,
  )}<input type="search" name="find" value="${search?.text ?? ''}" placeholder="${
    texts.another
  }" aria-label="${texts.another}" maxlength="255" autocomplete="off" required><button class="quiet">${
    texts.find
  }</button></form>`
}

/** A checkout on whose page somebody named the payment, although it asked for another amount: said, not offered. */
function renderNamed({ texts, locale, base }: Screen, payment: CreditRow, { checkout, due }: Likely): Html {
  const price = showMoney(locale, checkout.priceAmount, checkout.priceCurrency)
  return html`<p class="soft words">${fill(texts.inbox.namedElsewhere, {
    order: html`<a href="${base}/checkouts/${checkout.id}"><bdi>${nameOf(checkout)}</bdi></a>`,
    due: due === null ? price : showTokens(locale, payment, due),
  })}</p>`
}

/** None is chosen beforehand: one careless press must not pay an order. */
function renderOffer(screen: Screen, payment: CreditRow, offer: Offer): Html {
  const texts = screen.texts.inbox
  const { locale } = screen
  const { checkout } = offer
  const { id, priceAmount, priceCurrency, status, createdAt } = checkout
  const beforeMs = payment.firstBlockTime.getTime() - createdAt.getTime()
  const due = 'due' in offer ? offer.due : dueIn(checkout, payment)
  const asked =
    due === payment.amount
      ? html`${texts.reasons.same} `
      : due !== null && html`${fill(texts.reasons.wanted, { due: showTokens(locale, payment, due) })} `
  const reasons = [
    asked,
    beforeMs > 0 && html`${fill(texts.reasons.opened, { time: showDuration(locale, beforeMs) })} `,
    'isNamed' in offer && offer.isNamed && html`${texts.reasons.named}`,
  ]
  return html`<label class="choice"><input type="radio" name="checkoutId" value="${id}" required><strong><bdi>${nameOf(
    checkout,
  )}</bdi></strong><span>${showMoney(locale, priceAmount, priceCurrency)} · ${
    texts.statuses[status]
  }</span><small>${reasons}</small></label>`
}

/** What a checkout asked for in the payment's token. */
function dueIn({ options }: Checkout, payment: CreditRow): bigint | null {
  const asked = options.find(
    ({ network, asset }) =>
      network === payment.network && asset.toLowerCase() === payment.asset.toLowerCase(),
  )
  return asked ? BigInt(asked.amount) : null
}

function renderDismiss(screen: Screen, query: InboxQuery, payment: CreditRow): Html {
  const { texts, locale } = screen
  const about = fill(texts.inbox.dismissAbout, { seconds: showCount(locale, undoSeconds) })
  return html`<details id="dismiss-${payment.paymentId}"><summary>${texts.inbox.dismissInstead}</summary>${renderForm(
    screen,
    query,
    payment,
    'dismiss',
    html`<p class="soft">${about}</p>
<label class="field">${texts.inbox.note}<input name="note" maxlength="1000" autocomplete="off"></label>
<div class="buttons"><button class="quiet">${texts.inbox.dismiss}</button></div>`,
  )}</details>`
}

function renderForm(
  { base, formFields }: Screen,
  query: InboxQuery,
  { paymentId }: CreditRow,
  verb: 'accept' | 'dismiss',
  content: Html,
): Html {
  return html`<form class="stack" method="post" action="${base}/inbox/${verb}">${formFields}${renderKept(query)}
${renderHidden('paymentId', paymentId)}${content}</form>`
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
      readonly checkout: StoreCheckout | null
    }
    const amount = html`<strong>${showTokens(locale, payment, payment.amount)}</strong>`
    const what =
      event.type === 'payment.accepted'
        ? fill(texts.accepted, { amount, order: html`<bdi>${checkout ? nameOf(checkout) : ''}</bdi>` })
        : fill(texts.dismissed, { amount })
    const who = event.actor?.name ?? event.actor?.id ?? ''
    const note = event.type === 'payment.dismissed' ? payment.note?.text : undefined
    return html`<li><span><a href="${base}/payments/${payment.id}">${what}</a>
<span class="soft">${fill(texts.by, { name: html`<bdi>${who}</bdi>` })}${
      note !== undefined && html`: “<bdi>${note}</bdi>”`
    }</span></span>${showTime(locale, new Date(event.createdAt), now)}</li>`
  })}</ul></section>`
}
