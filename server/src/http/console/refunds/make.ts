import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../../../context.ts'
import { isId, randomText, type StoreId } from '../../../ids.ts'
import { actAs, actWithTouch } from '../../../members/act.ts'
import { readTouch } from '../../../members/confirm.ts'
import { Refusal } from '../../../members/refusal.ts'
import { type Decimal, parsePrice } from '../../../money.ts'
import { readPayment, type StorePayment } from '../../../payments/credits/store-rows.ts'
import { invalid } from '../../../problems.ts'
import { type AskedRefund, chooseRecipient, createRefundTo } from '../../../refunds/create.ts'
import { isAboveLimit } from '../../../refunds/limit.ts'
import { readStore } from '../../../stores/rows.ts'
import { html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { isAmbiguous, withPoint } from '../amount.ts'
import { sendPage } from '../document.ts'
import { fieldsOf, textOf, touchOf } from '../fields.ts'
import { formField } from '../form-field.ts'
import { readerOf } from '../formats.ts'
import { renderApiLine } from '../frame/api-line.ts'
import { textsOf } from '../texts/choose.ts'
import { forStore, giveFormToken, sessionOf, storeOf } from '../visitor.ts'
import { type Entered, fieldNames, renderForm, type To } from './form.ts'
import { readStanding } from './standing.ts'
import { wordsOf } from './words.ts'

const path = '/stores/:storeId/payments/:paymentId/refund'
const writing = { config: { right: 'refunds:write' } } as const
/** Keys of the API are stores' own texts; those of forms cannot be mistaken for them. */
const keyForm = /^[0-9a-z]{26}$/

/** The form that makes a refund. */
export function mountMaking(scope: FastifyInstance, ctx: Context): void {
  scope.get(path, writing, (request, reply) => {
    const { to } = request.query as { to?: unknown }
    const entered = { key: randomText(26), amount: '', recipient: '', reason: '', way: 'signed' } as const
    return sendForm(ctx, request, reply, to === 'address' ? 'address' : 'own', entered, null)
  })

  /** To whoever signed the payment, or to whom the buyer will name: a stolen cookie sends money nowhere else. */
  scope.post(path, writing, (request, reply) =>
    answer(ctx, request, reply, 'own', async (payment, entered) => {
      const { storeId } = storeOf(request)
      const session = sessionOf(request)
      const mine = forStore(ctx, storeId)
      const asked = toAsked(payment, entered, null)
      const recipient = await chooseRecipient(mine, storeId, { mayChooseRecipient: false }, asked)
      return await actAs(mine, storeId, session, 'refunds:write', (acting) =>
        create(request, { ...acting, storeId, asked, recipient }, ctx.now()),
      )
    }),
  )

  /** To an address that a member names, by a touch for exactly that. */
  scope.post(`${path}/address`, writing, (request, reply) =>
    answer(ctx, request, reply, 'address', async (payment, entered) => {
      const { storeId } = storeOf(request)
      const fields = fieldsOf(request)
      const { paymentId } = payment
      const touch = await readTouch(ctx, sessionOf(request), touchOf(fields))
      const values = { paymentId, ...entered, way: textOf(fields, 'way') }
      const wanted = { action: 'refund.create', values } as const
      const mine = forStore(ctx, storeId)
      const asked = toAsked(payment, entered, entered.recipient)
      const recipient = await chooseRecipient(mine, storeId, { mayChooseRecipient: true }, asked)
      return await actWithTouch(mine, storeId, touch, 'refunds:write', wanted, ctx.now(), (acting) =>
        create(request, { ...acting, storeId, asked, recipient }, ctx.now()),
      )
    }),
  )
}

type Making = Parameters<Parameters<typeof actAs>[4]>[0] & {
  readonly storeId: StoreId
  readonly asked: AskedRefund
  /** Chosen before anything was locked. */
  readonly recipient: string | null
}

/** By the verb of the API. A manager's refund that goes beyond their limit is undone with its transaction. */
async function create(request: FastifyRequest, making: Making, now: Date): Promise<string> {
  const { ctx, actor, role, storeId, asked, recipient } = making
  const { id } = await createRefundTo(ctx, storeId, actor, asked, recipient, now)
  const store = role === 'manager' ? await readStore(ctx.db, storeId) : null
  if (store && (await isAboveLimit(ctx, storeId, actor.id, store.managerRefundLimit, now))) {
    const detail = textsOf(request).refunds.limit.replace('{limit}', store.managerRefundLimit)
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

/** On to the refund, or back to the form, which keeps what was entered and says what is wrong. */
async function answer(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  to: To,
  work: (payment: StorePayment, entered: Entered) => Promise<string>,
): Promise<FastifyReply> {
  const { storeId } = storeOf(request)
  const entered = readEntered(request)
  const payment = await find(ctx, request)
  try {
    const id = await work(payment, entered)
    return await reply.code(303).header('location', `/stores/${storeId}/refunds/${id}`).send()
  } catch (error) {
    const limit = error instanceof Refusal && error.reason === 'role' ? (error.detail ?? null) : null
    const problem = limit ?? wordsOf(request, error)
    if (problem === null) throw error
    // What was asked for twice under one key must be the same, so what is entered now is another refund.
    return await sendForm(ctx, request, reply, to, { ...entered, key: randomText(26) }, problem)
  }
}

function readEntered(request: FastifyRequest): Entered {
  const fields = fieldsOf(request)
  const texts = Object.fromEntries(fieldNames.map((name) => [name, textOf(fields, name)])) as Record<
    (typeof fieldNames)[number],
    string
  >
  if (!keyForm.test(texts.key)) throw new Refusal('invalid')
  return { ...texts, way: texts.way === 'sent' ? 'sent' : 'signed' }
}

async function find(ctx: Context, request: FastifyRequest): Promise<StorePayment> {
  const { storeId } = storeOf(request)
  const { paymentId } = request.params as { paymentId: string }
  const mine = forStore(ctx, storeId)
  const payment = isId('pay', paymentId) ? await readPayment(mine.db, storeId, paymentId) : null
  if (!payment) throw new Refusal('not_found')
  return payment
}

async function sendForm(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  to: To,
  entered: Entered,
  problem: string | null,
): Promise<FastifyReply> {
  const { storeId, role } = storeOf(request)
  const payment = await find(ctx, request)
  const standing = await readStanding(forStore(ctx, storeId), storeId, role, payment, payment.mayDecide)
  const main = renderForm(request, {
    standing,
    to,
    entered,
    problem,
    reader: readerOf(request),
    now: ctx.now(),
    formField: formField(giveFormToken(ctx, request, reply)),
  })
  return sendPage(ctx, request, reply, {
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: textsOf(request).refunds.refund,
    main: html`${main}${
      standing.obstacle === null &&
      renderApiLine(request, ctx.config.baseUrl, {
        method: 'POST',
        path: `/payments/${payment.paymentId}/refunds`,
        body: { amount: standing.left.toString() },
      })
    }`,
  })
}
