import { hash } from 'node:crypto'
import type { RefundWay } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import { toShown } from '../../../chains/families.ts'
import type { Context } from '../../../context.ts'
import { isId, randomText } from '../../../ids.ts'
import type { Acting } from '../../../members/act.ts'
import { Refusal } from '../../../members/refusal.ts'
import { type Decimal, parsePrice } from '../../../money.ts'
import { readPayment, type StorePayment } from '../../../payments/credits/store-payments.ts'
import { invalid } from '../../../problems.ts'
import { type AskedRefund, chooseRecipient, createRefundTo, isAboveLimit } from '../../../refunds/create.ts'
import { readStore } from '../../../stores/rows.ts'
import { fill, type Html, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { isAmbiguous, toTyped, withPoint } from '../fields.ts'
import { showFours, showTokens } from '../formats.ts'
import {
  renderAlert,
  renderApiLine,
  renderChoice,
  renderFact,
  renderField,
  renderHead,
  renderHidden,
} from '../parts.ts'
import { type Screen, type StoreRoutes, sentenceFor } from '../screen.ts'
import { type Remainder, readRemainder, renderObstacle } from './remainder.ts'

const path = '/payments/:paymentId/refund'
const writing = 'refunds:write'
/** Keys of the API are stores' own texts; those of forms cannot be mistaken for them. */
const keyForm = /^[0-9a-z]{26}$/
const keyLength = 26
const ways: readonly RefundWay[] = ['signed', 'self-sent']

/** The recipient. `own`: the payer if they signed, else the address that the buyer names. `address`: a member names it. */
type To = 'own' | 'address'

/** The form's values. Each form has its own key, so that submitting it twice makes one refund. */
type Entered = {
  readonly key: string
  readonly amount: string
  readonly recipient: string
  readonly reason: string
  readonly way: RefundWay
}

/** The form that makes a refund of a payment. */
export function mountCreating({ get, post }: StoreRoutes, _ctx: Context): void {
  get(path, writing, (screen) => {
    const entered = {
      key: randomText(keyLength),
      amount: '',
      recipient: '',
      reason: '',
      way: 'signed',
    } as const
    return sendForm(screen, screen.asked('to') === 'address' ? 'address' : 'own', entered, null)
  })

  /** To the payer who signed, or to the address that the buyer will name: a stolen cookie sends money nowhere else. */
  post(path, writing, (screen) => {
    return answer(screen, 'own', async (payment, entered) => {
      const asked = toAsked(payment, entered, null)
      const may = { mayChooseRecipient: false }
      const recipient = await chooseRecipient(screen.ctx, screen.storeId, may, asked)
      return await screen.act((acting) => create(screen, acting, asked, recipient))
    })
  })

  /** To an address that a member names, by a touch for exactly that. */
  post(`${path}/address`, writing, (screen) => {
    return answer(screen, 'address', async (payment, entered) => {
      const touch = await screen.touch()
      const values = { paymentId: payment.paymentId, ...entered, way: screen.field('way') }
      const asked = toAsked(payment, entered, entered.recipient)
      const may = { mayChooseRecipient: true }
      const recipient = await chooseRecipient(screen.ctx, screen.storeId, may, asked)
      return await screen.actWith(touch, 'refund.create', values, (acting) =>
        create(screen, acting, asked, recipient),
      )
    })
  })
}

/**
 * By the verb of the API, for a recipient that was chosen before anything was locked. A manager's refund that goes beyond
 * their limit is undone with its transaction.
 */
async function create(
  { storeId, texts }: Screen,
  { ctx, actor, role }: Acting,
  asked: AskedRefund,
  recipient: string | null,
): Promise<string> {
  const { id } = await createRefundTo(ctx, storeId, asked, { actor, recipient }, ctx.now())
  const store = role === 'manager' ? await readStore(ctx.db, storeId) : null
  if (store && (await isAboveLimit(ctx, storeId, actor.id, store.managerRefundLimit, ctx.now()))) {
    const detail = texts.refunds.limit.replace('{limit}', store.managerRefundLimit)
    throw new Refusal('role', { detail })
  }
  return id
}

function toAsked(payment: StorePayment, entered: Entered, recipient: string | null): AskedRefund {
  const { paymentId } = payment
  const { key, way } = entered
  const reason = entered.reason.trim().replaceAll(/\s+/g, ' ')
  const bodyHash = hash('sha256', JSON.stringify([paymentId, recipient, entered]), 'base64')
  return {
    ...{ paymentId, recipient, way },
    amount: unitsOf(entered.amount, describeOption(payment).decimals),
    reason: reason === '' ? null : reason,
    idempotency: { key: `console ${key}`, bodyHash },
  }
}

/** Whole tokens as people write them, in the asset's smallest unit. */
function unitsOf(text: string, decimals: number): bigint {
  if (isAmbiguous(text, decimals))
    throw invalid({ pointer: '/amount', code: 'ambiguous', detail: 'Thousands or decimals?' })
  const amount: Decimal | null = parsePrice(withPoint(text))
  if (!amount || amount.scale > decimals)
    throw invalid({ pointer: '/amount', code: 'amount', detail: 'Must be an amount of the token.' })
  return amount.coefficient * 10n ** BigInt(decimals - amount.scale)
}

/** Goes to the refund, or back to the form with the entered values and what is wrong with them. */
async function answer(
  screen: Screen,
  to: To,
  work: (payment: StorePayment, entered: Entered) => Promise<string>,
): Promise<FastifyReply> {
  const entered = readEntered(screen)
  const payment = await readOwn(screen)
  try {
    return screen.go(`/refunds/${await work(payment, entered)}`)
  } catch (error) {
    const limit = error instanceof Refusal && error.reason === 'role' ? (error.detail ?? null) : null
    const problem = limit ?? sentenceFor(error, screen.texts.refunds.problems)
    if (problem === null) throw error
    // Two requests under one key must be the same, so a corrected form needs another key.
    return await sendForm(screen, to, { ...entered, key: randomText(keyLength) }, problem)
  }
}

function readEntered({ field }: Screen): Entered {
  const key = field('key')
  if (!keyForm.test(key)) throw new Refusal('invalid')
  return {
    key,
    amount: field('amount'),
    recipient: field('recipient'),
    reason: field('reason'),
    way: field('way') === 'self-sent' ? 'self-sent' : 'signed',
  }
}

async function readOwn({ ctx, storeId, part }: Screen): Promise<StorePayment> {
  const id = part('paymentId')
  const payment = isId('pay', id) ? await readPayment(ctx.db, storeId, id) : null
  if (!payment) throw new Refusal('not_found')
  return payment
}

async function sendForm(
  screen: Screen,
  to: To,
  entered: Entered,
  problem: string | null,
): Promise<FastifyReply> {
  const payment = await readOwn(screen)
  const remainder = await readRemainder(screen, payment, payment.mayDecide)
  const line = {
    method: 'POST',
    path: `/payments/${payment.paymentId}/refunds`,
    body: { amount: remainder.left.toString() },
  }
  return screen.send({
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: screen.texts.refunds.refund,
    main: html`${renderForm(screen, remainder, to, entered, problem)}${
      remainder.obstacle === null && renderApiLine(screen, line)
    }`,
  })
}

function renderForm(
  screen: Screen,
  remainder: Remainder,
  to: To,
  entered: Entered,
  problem: string | null,
): Html {
  const { base, locale } = screen
  const texts = screen.texts.refunds
  const { payment, left } = remainder
  const units = (amount: bigint) => showTokens(locale, payment, amount)
  const obstacle = renderObstacle(screen, remainder)
  const from = showFours(toShown(payment.network, payment.payTo))
  const above = html`<p><a href="${base}/payments/${payment.paymentId}">${texts.ofPayment}</a></p>`
  return html`${renderHead(texts.refund, { above })}
${renderAlert(problem)}
<div class="split"><section class="pane stack">${
    obstacle ? html`<p class="words">${obstacle}</p>` : renderFields(screen, remainder, to, entered)
  }</section>
<section class="facts stack"><dl class="list">${renderFact(texts.received, units(payment.amount))}
${renderFact(texts.refunded, units(payment.amount - left))}
${renderFact(texts.left, html`<strong>${units(left)}</strong>`)}</dl>
<dl class="list tall">${renderFact(texts.from, from)}</dl></section></div>`
}

function renderFields(screen: Screen, remainder: Remainder, to: To, entered: Entered): Html {
  const { base, locale, formFields } = screen
  const texts = screen.texts.refunds
  const { payment, left, isSigned } = remainder
  const { paymentId } = payment
  const { symbol, decimals, name } = describeOption(payment)
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
  const amount = { value: entered.amount || toTyped(left, decimals), required: true, inputmode: 'decimal' }
  const hint = fill(texts.howMuchAbout, { left: showTokens(locale, payment, left) })
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
${renderField(fill(texts.howMuch, { symbol }), 'amount', { ...amount, maxlength: 40, ...off }, hint)}
${renderField(texts.why, 'reason', { value: entered.reason, maxlength: 500, ...off }, texts.whyAbout)}
<fieldset><legend>${texts.way}</legend>${ways.map((way) =>
    renderChoice('way', way, way === entered.way, texts.ways[way]),
  )}</fieldset>
<div class="buttons"><button>${isAddress ? texts.touch : texts.create}</button></div></form>`
}
