import type { RefundStatus, RefundWay, Refund as Wire } from '@farthing/sdk'
import { toShown } from '../../../chains/families.ts'
import { describeForWallets } from '../../../chains/wallet-links.ts'
import { type Checkout, hasOwnOrder, nameOf } from '../../../checkouts/checkout.ts'
import { parsePrice } from '../../../money.ts'
import { networks } from '../../../networks.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { expectedFinalAt } from '../../../refunds/create.ts'
import type { Refund } from '../../../refunds/refund.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { toTyped } from '../fields.ts'
import {
  type Locale,
  showBriefly,
  showExactTime,
  showFours,
  showMoney,
  showShort,
  showTime,
  showTokens,
} from '../formats.ts'
import {
  renderAlert,
  renderChip,
  renderChoice,
  renderChooser,
  renderCopied,
  renderFact,
  renderField,
  renderFilter,
  renderHead,
  renderHidden,
  renderPager,
  renderRaw,
  renderStep,
  renderTable,
  renderTransaction,
  type Tone,
} from '../parts.ts'
import { cut } from '../payments/view.ts'
import { type Screen, withQuery } from '../screen.ts'
import type { Texts } from '../texts/choose.ts'
import { nodeForWallets } from '../wallets/parts.ts'
import { currencyOf, inCurrency, inToken, nearCurrency, orderOf, type PaidOrder } from './amount.ts'

export const statuses: readonly RefundStatus[] = [
  'REQUESTED',
  'SIGNED',
  'SENT',
  'COMPLETED',
  'DECLARED',
  'FAILED',
  'CANCELED',
]

type RefundList = {
  readonly status: RefundStatus | null
  readonly cursor: string | null
  readonly refunds: readonly Wire[]
  readonly nextCursor: string | null
  readonly names: Names
}

/** What people call the checkouts that the money came for, by their ids. */
type Names = ReadonlyMap<string, string>

export function renderList(screen: Screen, { status, cursor, nextCursor, refunds, names }: RefundList): Html {
  const texts = screen.texts.refunds
  const path = `${screen.base}/refunds`
  const filter = (wanted: RefundStatus | null, text: string) =>
    renderFilter(withQuery(path, { status: wanted }), text, wanted === status)
  const filters = [filter(null, texts.all), ...statuses.map((each) => filter(each, texts.statuses[each]))]
  return html`${renderHead(texts.title, { about: html`<p class="soft words">${texts.about}</p>` })}
<div class="pane stack"><div class="row">${filters}</div>
<p class="live soft">${screen.texts.frame.live}</p></div>
${refunds.length > 0 ? renderRefunds(screen, refunds, names) : renderNone(screen, status !== null)}
${renderPager(
  texts,
  cursor === null ? null : withQuery(path, { status }),
  nextCursor === null ? null : withQuery(path, { status, cursor: nextCursor }),
)}`
}

function renderNone({ base, texts: { refunds: texts } }: Screen, isNarrow: boolean): Html {
  if (isNarrow) return html`<div class="pane empty"><p>${texts.emptyFound}</p></div>`
  return html`<section class="pane empty"><h2>${texts.empty}</h2><p class="soft">${texts.emptyAbout}</p>
<p><a class="button quiet" href="${base}/payments">${texts.toPayments}</a></p></section>`
}

function renderRefunds(screen: Screen, refunds: readonly Wire[], names: Names): Html {
  const { base, locale, now } = screen
  const texts = screen.texts.refunds
  const columns = [
    ...[texts.status, { number: texts.amount }, texts.turn, texts.order, texts.to],
    { number: texts.when },
  ]
  const soft = (text: string) => html`<span class="soft">${text}</span>`
  const rows = refunds.map((refund) => {
    const { id, recipient, checkoutId, createdAt } = refund
    const name = names.get(checkoutId ?? '')
    const turn = turnOf(refund)
    const whose = texts.turns[turn]
    return html`<tr><td class="c2">${renderStatus(screen, refund)}</td>
<td class="num c1"><a class="whole" href="${base}/refunds/${id}">${showBriefly(locale, refund, refund.amount)}</a></td>
<td class="c3">${isStoresTurn(turn) ? html`<strong>${whose}</strong>` : soft(whose)}</td>
<td>${name === undefined ? soft('–') : html`<bdi>${cut(name)}</bdi>`}</td>
<td>${recipient === null ? soft(texts.toNobody) : showShort(recipient)}</td>
<td class="num c4">${showTime(locale, new Date(createdAt), now)}</td></tr>
`
  })
  return renderTable(columns, rows)
}

const tones: Readonly<Partial<Record<RefundTurn, Tone>>> = {
  ...{ sign: 'bad', pay: 'bad', confirm: 'bad', link: 'bad', failed: 'bad' },
  ...{ moving: 'busy', buyer: 'busy', canceling: 'busy', done: 'good' },
}

function renderStatus({ texts }: Pick<Screen, 'texts'>, refund: Wire): Html {
  return renderChip(texts.refunds.statuses[refund.status], tones[turnOf(refund)])
}

/** One refund, as its screen shows it to this member. */
export type One = {
  readonly refund: Refund
  readonly wire: Wire
  readonly checkout: Checkout | null
  /** See `mayVouch` in routes.ts. */
  readonly mayVouch: boolean
  /** Why the last attempt was refused. */
  readonly problem: string | null
}

export function renderOne(screen: Screen, one: One): Html {
  const { base, locale } = screen
  const { refund, wire, checkout, problem } = one
  const texts = screen.texts.refunds
  const turn = turnOf(wire)
  const { title, text } = texts.next[turn]
  const mayWrite = screen.may('refunds:write')
  const order = checkout && html` / <bdi>${nameOf(checkout)}</bdi>`
  const near = checkout && nearCurrency(orderOf(checkout, refund), refund.amount)
  const priced = near && checkout && html`≈ ${showMoney(locale, near, checkout.priceCurrency)} · `
  const steps = stepsOf(refund, wire, locale).map((step) => renderOneStep(screen, step))
  return html`<div class="head"><div><p class="soft"><a href="${base}/refunds">${texts.title}</a>${order}</p>
<h1 class="price"><bdi>${showTokens(locale, wire, wire.amount)}</bdi> ${renderStatus(screen, wire)}</h1>
<p>${priced}${describeOption(wire).name}</p></div>
<div class="next"><p><strong>${title}</strong> ${text}${
    isStoresTurn(turn) && !mayWrite && html` ${texts.mayNot}`
  }</p></div></div>
${renderAlert(problem)}
${mayWrite && renderActs(screen, one)}
<div class="split"><section class="pane"><h2>${texts.happened}</h2><ol class="line">${steps}</ol></section>
<section class="facts"><h2>${texts.facts}</h2>${renderFacts(screen, wire)}</section></div>`
}

function renderOneStep({ texts: { refunds: texts }, locale }: Screen, step: RefundStep): Html {
  const { id, at, tone, fills, by } = step
  const { title, text } = texts.steps[id]
  const who = by !== null && html` · ${fill(texts.by, { name: html`<bdi>${by}</bdi>` })}`
  return renderStep(
    html`<strong>${title}</strong>`,
    html`${fill(text, fills)}${who}`,
    at && showExactTime(locale, at),
    tone,
  )
}

function renderFacts(screen: Screen, wire: Wire): Html {
  const {
    base,
    texts: { refunds: texts },
  } = screen
  const text = (value: string | null | undefined) => (value == null ? null : html`<bdi>${value}</bdi>`)
  const { recipient, network, transaction, paymentId } = wire
  return html`<dl class="list tall">
${renderFact(texts.recipient, recipient === null ? texts.toNobody : showFours(recipient))}
${renderFact(texts.from, showFours(wire.from))}
${renderFact(texts.network, describeOption(wire).name)}
${renderFact(texts.transaction, transaction === null ? null : renderTransaction(network, transaction))}
${renderFact(texts.reason, text(wire.reason))}
${renderFact(texts.declaredAs, text(wire.declared))}
${renderFact(texts.payment, html`<a href="${base}/payments/${paymentId}"><code>${paymentId}</code></a>`)}
${renderFact(texts.id, html`<code>${wire.id}</code>`)}
</dl>
${renderRaw(screen, texts.raw, withoutCode(wire))}`
}

/** The member who confirms an address gets the code from the buyer, not from this screen. */
function withoutCode({ addressRequest, ...wire }: Wire) {
  if (!addressRequest) return wire
  const { code: _, ...shown } = addressRequest
  return { ...wire, addressRequest: shown }
}

/** What the store can do about a refund now. */
function renderActs(screen: Screen, one: One): Html | null {
  const { wire } = one
  if (wire.isCanceling) return null
  if (wire.status === 'SENT' && wire.way === 'self-sent')
    return html`<section class="pane">${renderNaming(screen, wire)}</section>`
  if (wire.status !== 'REQUESTED') return null
  const turn = turnOf(wire)
  return html`<section class="pane stack">${turn === 'sign' && renderSigning(screen, wire)}${
    turn === 'pay' && html`${renderNaming(screen, wire)}${one.mayVouch && renderDeclaring(screen, wire)}`
  }${wire.recipient === null && renderAddressRequest(screen, one)}${renderCancel(screen, wire)}</section>`
}

export function pathOf({ base }: Screen, { id }: Pick<Wire, 'id'>): string {
  return `${base}/refunds/${id}`
}

/** What the forms of the screen send: their token, the store and the refund. */
function hiddenOf({ formFields }: Screen, { id }: Wire): Html {
  return html`${formFields}${renderHidden('refundId', id)}`
}

/**
 * Signing needs a wallet, so it needs a script, which adds a button for every wallet that it finds here. Until then, and
 * without one, the screen says how to sign elsewhere. The script signs only what is the same as these values.
 */
function renderSigning(screen: Screen, wire: Wire): Html {
  const { ctx } = screen
  const texts = screen.texts.refunds
  const network = networks.find(({ caip2 }) => caip2 === wire.network)
  if (!network || wire.recipient === null) return html``
  const described = describeForWallets(network, nodeForWallets(ctx, network))
  if (!described) return html``
  const { family, ...chain } = described
  const path = pathOf(screen, wire)
  const values = {
    sign: family,
    ...{ prepare: `${path}/prepare`, present: `${path}/signature` },
    ...{ from: wire.from, recipient: wire.recipient, units: wire.amount, network: JSON.stringify(chain) },
    ...{ label: texts.signWith, unnamed: texts.yourWallet, ...texts.signTroubles },
  }
  const elsewhere = html`<p class="words">${fill(texts.noWallet, { wallet: showShort(wire.from) })}</p>`
  return html`<div class="stack"${Object.entries(values).map(([name, value]) => html` data-${name}="${value}"`)}>
<div class="buttons" data-wallets></div>
<p role="status" hidden>${texts.asking}</p>
<p class="note" id="unsigned" role="alert" hidden></p>
<div data-no-wallet>${elsewhere}${renderCopied(screen.texts, `farthing refund sign ${wire.id}`)}</div></div>`
}

function renderCancel(screen: Screen, wire: Wire): Html {
  const { cancel, cancelAbout } = screen.texts.refunds
  return html`<details id="cancel"><summary>${cancel}</summary>
<form class="stack" method="post" action="${pathOf(screen, wire)}/cancel">${screen.formFields}
<p class="soft">${cancelAbout}</p><div class="buttons"><button class="quiet">${cancel}</button></div></form></details>`
}

/** For a refund that the store pays by itself: naming the transaction. */
function renderNaming(screen: Screen, wire: Wire): Html {
  const { locale } = screen
  const texts = screen.texts.refunds
  const amount = html`<strong>${showTokens(locale, wire, wire.amount)}</strong>`
  const attributes = { value: wire.transaction ?? '', required: true, maxlength: 100, autocomplete: 'off' }
  const transaction = { ...attributes, spellcheck: 'false', class: 'address' }
  return html`<h2>${texts.naming}</h2><p class="words">${fill(texts.namingAbout, { amount })}</p>
<dl class="list tall">${renderFact(texts.from, showFours(wire.from))}${renderFact(
    texts.recipient,
    wire.recipient === null ? '' : showFours(wire.recipient),
  )}</dl>
<form class="fields" method="post" action="${pathOf(screen, wire)}/transaction">${hiddenOf(screen, wire)}
${renderField(texts.transaction, 'transaction', transaction)}
<div class="buttons"><button>${texts.name}</button></div></form>`
}

/** The store's word that it paid another way. */
function renderDeclaring(screen: Screen, wire: Wire): Html {
  const texts = screen.texts.refunds
  const attributes = {
    required: true,
    maxlength: 500,
    placeholder: texts.referenceExample,
    autocomplete: 'off',
  }
  const action = `${pathOf(screen, wire)}/declare`
  return html`
<details id="declare"><summary>${texts.declaring}</summary>
<form class="fields" method="post" action="${action}" data-confirm="refund.declare">${hiddenOf(screen, wire)}
<p class="soft">${texts.declaringAbout}</p>
${renderField(texts.reference, 'reference', attributes)}
<div class="buttons"><button class="quiet">${texts.declare}</button></div></form></details>`
}

/** For a refund without a recipient: the buyer's link, and confirming the address that the buyer named. */
function renderAddressRequest(screen: Screen, { wire, mayVouch }: One): Html {
  const { locale } = screen
  const texts = screen.texts.refunds
  const { addressRequest } = wire
  const [path, hidden] = [pathOf(screen, wire), hiddenOf(screen, wire)]
  const button = addressRequest
    ? html`<button class="quiet">${texts.newLink}</button>`
    : html`<button>${texts.makeLink}</button>`
  const makeLink = html`<form method="post" action="${path}/address-request">${hidden}${button}</form>`
  if (addressRequest?.status !== 'NAMED') {
    const until =
      addressRequest?.status === 'OPEN' && showExactTime(locale, new Date(addressRequest.expiresAt))
    return html`${until && html`<p>${fill(texts.linkUntil, { time: until })}</p>`}${makeLink}`
  }
  const address = addressRequest.address ?? ''
  const named = html`<div><p class="soft">${texts.named}</p>${showFours(address)}</div>`
  if (!mayVouch) return html`${named}<p>${texts.notTheirs}</p>`
  const code = { required: true, maxlength: 20, autocomplete: 'off', spellcheck: 'false' }
  return html`<form class="fields" method="post" action="${path}/confirm" data-confirm="refund.confirm">${hidden}
${renderHidden('address', address)}${named}
${renderField(texts.code, 'code', code, texts.codeAbout)}
<div class="buttons"><button>${texts.confirm}</button></div></form>
<details id="another-link"><summary>${texts.newLink}</summary>${makeLink}</details>`
}

/** The next action on a refund. `sign`, `pay`, `confirm` and `link` are the store's. */
type RefundTurn = keyof Texts['refunds']['turns']

function turnOf({ status, way, recipient, isCanceling, addressRequest }: Wire): RefundTurn {
  switch (status) {
    case 'REQUESTED':
      if (isCanceling) return 'canceling'
      if (recipient !== null) return way === 'signed' ? 'sign' : 'pay'
      if (addressRequest?.status === 'NAMED') return 'confirm'
      return addressRequest?.status === 'OPEN' ? 'buyer' : 'link'
    case 'SIGNED':
    case 'SENT':
      return 'moving'
    case 'COMPLETED':
      return 'done'
    case 'DECLARED':
      return 'declared'
    case 'FAILED':
      return 'failed'
    case 'CANCELED':
      return 'canceled'
  }
}

const stores: readonly RefundTurn[] = ['sign', 'pay', 'confirm', 'link']

function isStoresTurn(turn: RefundTurn): boolean {
  return stores.includes(turn)
}

type StepId = keyof Texts['refunds']['steps']

/** One step of a refund: when it happened, what fills its sentence, and who caused it. */
type RefundStep = {
  readonly id: StepId
  /** Null if the time was not recorded, or if it has not happened yet. */
  readonly at: Date | null
  readonly tone: '' | 'failed' | 'coming'
  readonly fills: Readonly<Record<string, string | Html>>
  readonly by: string | null
}

/** The recorded steps of a refund in order, then the expected ones. */
function stepsOf(refund: Refund, wire: Wire, locale: Locale): RefundStep[] {
  const { status, actor, network } = refund
  const shown = (address: string | null) => (address === null ? '' : showShort(toShown(network, address)))
  const fills = {
    amount: showTokens(locale, wire, wire.amount),
    payment: html`<code>${refund.paymentId}</code>`,
    wallet: shown(refund.wallet),
    address: shown(refund.recipient),
    transaction: refund.transaction === null ? '' : renderTransaction(network, refund.transaction),
    reference: html`<bdi>${refund.declared ?? ''}</bdi>`,
    failure: html`<bdi>${refund.failure ?? ''}</bdi>`,
  }
  const step = (
    id: StepId,
    at: Date | null,
    tone: RefundStep['tone'] = '',
    by: string | null = null,
  ): RefundStep => ({
    ...{ id, at, tone, by, fills },
  })
  const isMoving = status === 'SENT' && refund.transaction !== null
  const isFinal = refund.finality === 'finalized'
  const steps: (RefundStep | false)[] = [
    step('requested', refund.createdAt, '', actor.name ?? `${actor.type} ${actor.id}`),
    refund.signedAt !== null && step('signed', refund.signedAt),
    isMoving && step('sent', null),
    status === 'COMPLETED' && step('completed', refund.completedAt),
    status === 'COMPLETED' && (isFinal ? step('final', null) : step('awaitFinal', null, 'coming')),
    status === 'DECLARED' && step('declared', refund.endedAt),
    wire.isCanceling && step('cancelAsked', refund.cancelAskedAt),
    status === 'CANCELED' && step('canceled', refund.endedAt, 'failed'),
    status === 'FAILED' && step('failed', refund.endedAt, 'failed'),
  ]
  return steps.filter((each) => each !== false)
}

/** The recipient. `own`: the payer if they signed, else the address that the buyer names. `address`: a member names it. */
export type To = 'own' | 'address'

/** The form's values. Each form has its own key, so that submitting it twice makes one refund. */
export type EnteredRefund = {
  readonly key: string
  readonly amount: string
  /** What the amount is in: the order's currency or the token. Empty: as the form suggests. */
  readonly unit: string
  readonly recipient: string
  readonly reason: string
  readonly way: RefundWay
}
const ways: readonly RefundWay[] = ['signed', 'self-sent']

/** What the form is about: what is left of a payment, the order that it paid, and who is to get it. */
export type FormSubject = Remainder & { readonly order: PaidOrder | null; readonly to: To }

export function renderForm(
  screen: Screen,
  refundable: FormSubject,
  entered: EnteredRefund,
  problem: string | null,
): Html {
  const { base, locale } = screen
  const texts = screen.texts.refunds
  const { payment, left, order } = refundable
  const units = (amount: bigint) => showTokens(locale, payment, amount)
  const obstacle = renderObstacle(screen, refundable)
  const from = showFours(toShown(payment.network, payment.payTo))
  const above = html`<p><a href="${base}/payments/${payment.paymentId}">${texts.ofPayment}</a></p>`
  return html`${renderHead(texts.refund, { above })}
${renderAlert(problem)}
<div class="split"><section class="pane stack">${
    obstacle ? html`<p class="words">${obstacle}</p>` : renderFields(screen, refundable, entered)
  }</section>
<section class="facts stack">${order && renderOrder(screen, order, payment)}
<dl class="list">${renderFact(texts.received, units(payment.amount))}
${renderFact(texts.refunded, units(payment.amount - left))}
${renderFact(texts.left, html`<strong>${units(left)}</strong>`)}</dl>
<dl class="list tall">${renderFact(texts.from, from)}</dl></section></div>`
}

function renderOrder({ locale, texts }: Screen, { checkout, due }: PaidOrder, payment: CreditRow): Html {
  const { orderId, description, priceAmount, priceCurrency, rate } = checkout
  const price = showMoney(locale, priceAmount, priceCurrency)
  const order = hasOwnOrder(checkout) ? html`<bdi>${cut(orderId)}</bdi>` : null
  return html`<dl class="list">${renderFact(texts.refunds.order, order)}
${description !== null && renderFact(texts.refunds.description, html`<bdi>${description}</bdi>`)}
${renderFact(texts.payments.price, price)}
${rate && renderFact(texts.refunds.dueFor, showTokens(locale, payment, due))}</dl>`
}

function renderFields(screen: Screen, refundable: FormSubject, entered: EnteredRefund): Html {
  const { base, formFields } = screen
  const texts = screen.texts.refunds
  const { payment, isSigned, to } = refundable
  const { paymentId } = payment
  const { name } = describeOption(payment)
  const own = `${base}/payments/${paymentId}/refund`
  const tab = (each: To, href: string, text: string) =>
    html`<a href="${href}"${each === to && html` aria-current="page"`}>${text}</a>`
  const isAddress = to === 'address'
  const about = isAddress ? texts.toAddressAbout : isSigned ? texts.toPayerAbout : texts.toBuyerAbout
  const action = isAddress
    ? html` action="${own}/address" data-confirm="refund.create"`
    : html` action="${own}"`
  const off = { autocomplete: 'off' }
  const address = { value: entered.recipient, required: true, maxlength: 100, ...off, spellcheck: 'false' }
  return html`<h2 id="who">${texts.who}</h2>
<nav class="tabs" aria-labelledby="who">${tab('own', own, isSigned ? texts.toPayer : texts.toBuyer)}${tab(
    'address',
    `${own}?to=address`,
    texts.toAddress,
  )}</nav>
<form class="fields" method="post"${action}>${formFields}
${renderHidden('paymentId', paymentId)}${renderHidden('key', entered.key)}
<p class="soft">${about}</p>
${
  isAddress
    ? renderField(fill(texts.address, { network: name }), 'recipient', { ...address, class: 'address' })
    : isSigned && showFours(toShown(payment.network, payment.payer))
}
${renderAmount(screen, refundable, entered)}
${renderField(texts.why, 'reason', { value: entered.reason, maxlength: 500, ...off }, texts.whyAbout)}
<fieldset><legend>${texts.way}</legend>${ways.map((way) =>
    renderChoice('way', way, way === entered.way, texts.ways[way]),
  )}</fieldset>
<div class="buttons"><button>${isAddress ? texts.touch : texts.create}</button></div></form>`
}

/** In the order's currency where the price was converted, unless less is left than that can say. */
function renderAmount(
  { locale, texts: { refunds: texts } }: Screen,
  { payment, left, order }: FormSubject,
  entered: EnteredRefund,
): Html {
  const { symbol, decimals } = describeOption(payment)
  const currency = currencyOf(order)
  const most = order && currency ? inCurrency(order, left) : null
  const isPriced = most !== null && parsePrice(most) !== null
  const unit = entered.unit || (isPriced ? currency : inToken)
  const value = entered.amount || (unit === inToken || most === null ? toTyped(left, decimals) : most)
  const tokens = showTokens(locale, payment, left)
  const shown = most && currency ? `${showMoney(locale, most, currency)} (${tokens})` : tokens
  const attributes = { value, required: true, inputmode: 'decimal', maxlength: 40, autocomplete: 'off' }
  const hint = fill(texts.howMuchAbout, { left: shown })
  if (!currency)
    return html`${renderHidden('unit', inToken)}
${renderField(fill(texts.howMuch, { symbol }), 'amount', attributes, hint)}`
  const units = [[currency, currency] as const, [inToken, symbol] as const]
  return html`${renderField(texts.amount, 'amount', attributes, hint)}
${renderChooser(texts.unit, 'unit', unit ?? inToken, units)}`
}

/** Why a member cannot refund a payment. */
type Obstacle = 'notAllowed' | 'ownersOnly' | 'reversed' | 'unproven' | 'notFinal' | 'nothingLeft'

/** What of a payment has gone back, what is left, and whether this member can refund it. */
export type Remainder = {
  readonly payment: CreditRow
  /** In the asset's smallest unit. */
  readonly left: bigint
  /** Whether the payer signed it: then it goes back to them. */
  readonly isSigned: boolean
  readonly refunds: readonly Wire[]
  readonly obstacle: Obstacle | null
}

/** Says in words why not. */
function renderObstacle(screen: Screen, { obstacle, payment }: Remainder): Html | null {
  if (obstacle === null) return null
  const { base, locale, now } = screen
  const texts = screen.texts.refunds
  if (obstacle === 'notFinal') {
    const time = expectedFinalAt(payment)
    return time > now
      ? fill(texts.notFinal, { time: showTime(locale, time, now) })
      : html`${texts.notFinalSoon}`
  }
  if (obstacle === 'unproven') return html`${texts.unproven} <a href="${base}/wallets">${texts.toWallets}</a>`
  return html`${texts[obstacle]}`
}

/** On a payment's screen: what went back of it, and the way to send more back, or why there is none. */
export function renderRemainders(screen: Screen, remainders: readonly Remainder[]): Html | null {
  if (remainders.length === 0) return null
  const { refundsOf } = screen.texts.refunds
  return html`<h2 id="refunds">${refundsOf}</h2>${remainders.map((each) => renderRemainder(screen, each))}`
}

function renderRemainder(screen: Screen, remainder: Remainder): Html {
  const { base, locale, now } = screen
  const { payment, refunds, left, obstacle } = remainder
  const lines = refunds.map((refund) => {
    const link = html`<a href="${base}/refunds/${refund.id}">${showTokens(locale, refund, refund.amount)}</a>`
    const time = showTime(locale, new Date(refund.createdAt), now)
    return html`<li><span>${link} ${renderStatus(screen, refund)}</span>${time}</li>`
  })
  const label = fill(screen.texts.refunds.refundOf, { amount: showTokens(locale, payment, left) })
  return html`<div class="stack">${lines.length > 0 && html`<ul class="list">${lines}</ul>`}${
    obstacle === null
      ? html`<p><a class="button quiet" href="${base}/payments/${payment.paymentId}/refund">${label}</a></p>`
      : html`<p class="soft">${renderObstacle(screen, remainder)}</p>`
  }</div>`
}
