import { hash } from 'node:crypto'
import type { Actor, Refund as Wire } from '@farthing/sdk'
import type { FastifyReply } from 'fastify'
import { nameOf } from '../../../checkouts/checkout.ts'
import { readCheckouts } from '../../../checkouts/read.ts'
import type { Context } from '../../../context.ts'
import { isId, randomText } from '../../../ids.ts'
import type { Acting } from '../../../members/act.ts'
import type { Role } from '../../../members/member.ts'
import { Refusal } from '../../../members/refusal.ts'
import type { CreditRow } from '../../../payments/credits/credit.ts'
import { readPayment, type StorePayment } from '../../../payments/credits/store-payments.ts'
import type { Rails } from '../../../payments/rail.ts'
import { openRails } from '../../../payments/rails.ts'
import { Problem } from '../../../problems.ts'
import { confirmAddress, judgeNamed } from '../../../refunds/address-requests/confirm.ts'
import { createAddressRequest } from '../../../refunds/address-requests/create.ts'
import { cancelRefund } from '../../../refunds/cancel.ts'
import { type AskedRefund, chooseRecipient, createRefundTo, isAboveLimit } from '../../../refunds/create.ts'
import { listRefunds, readRefund } from '../../../refunds/read.ts'
import { toWire } from '../../../refunds/refund.ts'
import { findRefund, readRefundable } from '../../../refunds/rows.ts'
import { declareRefund, nameTransaction } from '../../../refunds/self-sent.ts'
import { prepareRefund, signRefund } from '../../../refunds/sign.ts'
import { readStore } from '../../../stores/rows.ts'
import { fill, html } from '../../page/html.ts'
import { describeOption } from '../../page/parts/summary.ts'
import { isNothing } from '../fields.ts'
import { showExactTime } from '../formats.ts'
import { renderApiLine, sendSecret } from '../parts.ts'
import { inWords, type Screen, type StoreRoutes, sentenceFor } from '../screen.ts'
import { inToken, orderOf, type PaidOrder, unitsOf } from './amount.ts'
import {
  type EnteredRefund,
  type One,
  pathOf,
  type Remainder,
  renderForm,
  renderList,
  renderOne,
  statuses,
  type To,
} from './view.ts'

const path = '/refunds'
const reading = 'refunds:read'
const writing = 'refunds:write'
const rowsPerPage = 50

/** Refunds: the list, one refund with its next step, and creating one. */
export function mountRefunds(store: StoreRoutes, ctx: Context): void {
  const rails = openRails(ctx)

  store.get(path, reading, async (screen) => {
    const status = statuses.find((each) => each === screen.asked('status')) ?? null
    const cursor = isId('rf', screen.asked('cursor')) ? screen.asked('cursor') : null
    const wanted = { status, cursor, limit: rowsPerPage }
    const { data: refunds, nextCursor } = await listRefunds(screen.ctx, screen.storeId, wanted)
    const names = await readNames(screen, refunds)
    const main = renderList(screen, { status, cursor, refunds, nextCursor, names })
    const parameters = new URLSearchParams({ ...(status && { status }), limit: `${rowsPerPage}` })
    return screen.send({
      screen: 'refunds',
      title: screen.texts.refunds.title,
      isLive: true,
      main: html`${main}${renderApiLine(screen, { path: `/refunds?${parameters}` })}`,
    })
  })

  store.get(`${path}/:refundId`, reading, (screen) => sendOne(screen, null))

  mountActs(store, ctx, rails)
  mountSigning(store, rails)
  mountCreating(store)
}

/**
 * A store's actions on a refund that need no wallet. Confirming the recipient's address takes a touch of the passkey,
 * and so does declaring the refund paid by means that cannot be checked.
 */
function mountActs({ post }: StoreRoutes, ctx: Context, rails: Rails): void {
  const on = (act: string, work: (screen: Screen, id: string) => Promise<unknown>) =>
    post(`${path}/:refundId/${act}`, writing, (screen) => answer(screen, work))

  on('cancel', ({ act, storeId }, id) =>
    act((acting) => cancelRefund(acting.ctx, storeId, acting.actor, id, ctx.now())),
  )

  on('transaction', ({ act, storeId, field }, id) =>
    act((acting) =>
      nameTransaction(acting.ctx, rails, storeId, id, {
        transaction: field('transaction').trim(),
        actor: acting.actor,
      }),
    ),
  )

  on('declare', async (screen, id) => {
    const reference = screen.field('reference')
    const values = { refundId: id, reference }
    return await screen.actWith(await screen.touch(), 'refund.declare', values, async (acting) => {
      await requireVouching(screen, acting, id)
      return await declareRefund(acting.ctx, screen.storeId, acting.actor, id, reference.trim())
    })
  })

  on('confirm', async (screen, id) => {
    const { storeId } = screen
    const [address, code] = [screen.field('address'), screen.field('code')]
    const judged = await judgeNamed(screen.ctx, storeId, id)
    const values = { refundId: id, address, code }
    return await screen.actWith(await screen.touch(), 'refund.confirm', values, async (acting) => {
      await requireVouching(screen, acting, id)
      // The passkey confirmed the address that was shown, so it must still be the named one.
      const { addressRequest } = await readRefund(acting.ctx, storeId, id)
      if (addressRequest?.address !== address)
        throw new Problem('address_request_closed', 'Another address was named.')
      return await confirmAddress(acting.ctx, storeId, id, { judged, code, actor: acting.actor }, ctx.now())
    })
  })

  /** A link alone moves no money: confirming the address that is named with it takes a touch. */
  post(`${path}/:refundId/address-request`, writing, async (screen) => {
    const id = idOf(screen)
    const { refunds: texts } = screen.texts
    try {
      const { url, expiresAt } = await screen.act((acting) =>
        createAddressRequest(acting.ctx, screen.storeId, acting.actor, id),
      )
      const until = fill(texts.linkUntil, { time: showExactTime(screen.locale, new Date(expiresAt)) })
      return await sendSecret(screen, {
        title: texts.linkMade,
        about: html`${texts.linkAbout} ${until}`,
        secret: url,
        copy: texts.copyLink,
        back: { href: pathOf(screen, { id }), text: texts.back },
      })
    } catch (error) {
      return await refuse(screen, error)
    }
  })
}

/**
 * For the script: hands out the data to sign, and takes the signature. Neither needs a touch: money moves only with the
 * wallet's key, and only to the refund's recipient.
 */
function mountSigning({ post }: StoreRoutes, rails: Rails): void {
  const on = (act: string, work: (screen: Screen, id: string) => Promise<unknown>) =>
    post(`${path}/:refundId/${act}`, writing, (screen) => {
      return inWords(screen.texts.refunds.problems, async () => {
        const id = idOf(screen)
        // Checks the right again: a role that was taken away counts at once.
        await screen.act(async () => {})
        return await work(screen, id)
      })
    })

  on('prepare', (screen, id) => prepareRefund(screen.ctx, rails, screen.storeId, id))

  on('signature', async (screen, id) => {
    const [signature, transaction] = [screen.field('signature'), screen.field('transaction')]
    const given = transaction === '' ? { signature } : { transaction }
    await signRefund(screen.ctx, rails, screen.storeId, id, given)
    return { to: pathOf(screen, { id }) }
  })
}

function idOf({ part }: Screen): string {
  const id = part('refundId')
  if (!isId('rf', id)) throw new Refusal('not_found')
  return id
}

/**
 * Whether a member may name the recipient of a refund, or declare it paid by means that cannot be checked. A manager
 * may do so only for refunds that they requested: those are within the limit that owners set.
 */
function mayVouch(role: Role, memberId: string, { actor }: { readonly actor: Actor }): boolean {
  return role === 'owner' || actor.id === memberId
}

async function requireVouching(screen: Screen, { ctx, actor, role }: Acting, id: string): Promise<void> {
  const refund = await findRefund(ctx.db, screen.storeId, id)
  if (refund && !mayVouch(role, actor.id, refund))
    throw new Refusal('role', { detail: screen.texts.refunds.notTheirs })
}

/** Shows the changed refund, or the reason why nothing changed. */
async function answer(
  screen: Screen,
  work: (screen: Screen, id: string) => Promise<unknown>,
): Promise<FastifyReply> {
  const id = idOf(screen)
  try {
    await work(screen, id)
  } catch (error) {
    return await refuse(screen, error)
  }
  return screen.go(`/refunds/${id}`)
}

async function refuse(screen: Screen, error: unknown): Promise<FastifyReply> {
  const isRole = error instanceof Refusal && error.reason === 'role'
  const problem = isRole ? (error.detail ?? null) : sentenceFor(error, screen.texts.refunds.problems)
  if (problem !== null) return await sendOne(screen, problem)
  if (error instanceof Problem && error.code === 'not_found') throw new Refusal('not_found')
  throw error
}

/** The screen of the refund in the path. */
/** What people call the checkouts that the money came for, by their ids. */
async function readNames(
  { ctx, storeId }: Screen,
  refunds: readonly Wire[],
): Promise<ReadonlyMap<string, string>> {
  const ids = refunds.flatMap(({ checkoutId }) => checkoutId ?? [])
  const checkouts = await readCheckouts(ctx.db, storeId, ids)
  return new Map([...checkouts].map(([id, checkout]) => [id, nameOf(checkout)]))
}

async function sendOne(screen: Screen, problem: string | null): Promise<FastifyReply> {
  const { storeId, store, session } = screen
  const refund = await findRefund(screen.ctx.db, storeId, idOf(screen))
  if (!refund) throw new Refusal('not_found')
  const wire = toWire(refund)
  const { checkoutId } = wire
  const found = checkoutId && (await readCheckouts(screen.ctx.db, storeId, [checkoutId])).get(checkoutId)
  const checkout = found || null
  const one: One = {
    refund,
    wire,
    checkout,
    problem,
    mayVouch: mayVouch(store.role, session.member.id, refund),
  }
  const line = renderApiLine(screen, { path: `/refunds/${wire.id}` })
  return screen.send({
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: `${screen.texts.refunds.id} ${checkout ? nameOf(checkout) : wire.id}`,
    isLive: problem === null,
    main: html`${renderOne(screen, one)}${line}`,
  })
}

const newPath = '/payments/:paymentId/refund'
/**
 * The idempotency key of a form, stored as `console KEY`. Keys that stores send to the API cannot contain a space, so
 * the two never collide.
 */
const keyForm = /^[0-9a-z]{26}$/
const keyLength = 26

/** The form that makes a refund of a payment. */
function mountCreating({ get, post }: StoreRoutes): void {
  get(newPath, writing, (screen) => {
    const entered = {
      key: randomText(keyLength),
      amount: '',
      recipient: '',
      reason: '',
      unit: '',
      way: 'signed',
    } as const
    return sendForm(screen, screen.asked('to') === 'address' ? 'address' : 'own', entered, null)
  })

  /** To the payer who signed, or to the address that the buyer will name: a stolen cookie sends money nowhere else. */
  post(newPath, writing, (screen) => {
    return answerForm(screen, 'own', async (payment, entered) => {
      const asked = await toAsked(screen, payment, entered, null)
      const may = { mayChooseRecipient: false }
      const recipient = await chooseRecipient(screen.ctx, screen.storeId, may, asked)
      return await screen.act((acting) => create(screen, acting, asked, recipient))
    })
  })

  /** To an address that a member names, by a touch for exactly that. */
  post(`${newPath}/address`, writing, (screen) => {
    return answerForm(screen, 'address', async (payment, entered) => {
      const touch = await screen.touch()
      const values = { paymentId: payment.paymentId, ...entered, way: screen.field('way') }
      const asked = await toAsked(screen, payment, entered, entered.recipient)
      const may = { mayChooseRecipient: true }
      const recipient = await chooseRecipient(screen.ctx, screen.storeId, may, asked)
      return await screen.actWith(touch, 'refund.create', values, (acting) =>
        create(screen, acting, asked, recipient),
      )
    })
  })
}

/**
 * Creates the refund as the API does (`createRefundTo`), for a recipient that was chosen before anything was locked. If
 * it takes a manager beyond their limit, the transaction is rolled back.
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

async function toAsked(
  screen: Screen,
  payment: StorePayment,
  entered: EnteredRefund,
  recipient: string | null,
): Promise<AskedRefund> {
  const { paymentId } = payment
  const [order, { left }] = await Promise.all([
    readOrder(screen, payment),
    readRemainder(screen, payment, payment.mayDecide),
  ])
  const { key, way } = entered
  const reason = entered.reason.trim().replaceAll(/\s+/g, ' ')
  const bodyHash = hash('sha256', JSON.stringify([paymentId, recipient, entered]), 'base64')
  return {
    ...{ paymentId, recipient, way },
    amount: unitsOf(entered, describeOption(payment).decimals, order, left),
    reason: reason === '' ? null : reason,
    idempotency: { key: `console ${key}`, bodyHash },
  }
}

async function readOrder({ ctx, storeId }: Screen, payment: CreditRow): Promise<PaidOrder | null> {
  const { checkoutId } = payment
  const checkouts = checkoutId === null ? null : await readCheckouts(ctx.db, storeId, [checkoutId])
  return orderOf(checkouts?.get(checkoutId ?? '') ?? null, payment)
}

/** Goes to the refund, or back to the form with the entered values and what is wrong with them. */
async function answerForm(
  screen: Screen,
  to: To,
  work: (payment: StorePayment, entered: EnteredRefund) => Promise<string>,
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

function readEntered({ field }: Screen): EnteredRefund {
  const key = field('key')
  if (!keyForm.test(key)) throw new Refusal('invalid')
  return {
    key,
    amount: field('amount'),
    unit: field('unit') || inToken,
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
  entered: EnteredRefund,
  problem: string | null,
): Promise<FastifyReply> {
  const payment = await readOwn(screen)
  const [order, remainder] = await Promise.all([
    readOrder(screen, payment),
    readRemainder(screen, payment, payment.mayDecide),
  ])
  const line = {
    method: 'POST',
    path: `/payments/${payment.paymentId}/refunds`,
    body: { amount: remainder.left.toString() },
  }
  return screen.send({
    ...(problem !== null && { status: 409 }),
    screen: 'refunds',
    title: screen.texts.refunds.refund,
    main: html`${renderForm(screen, { ...remainder, order, to }, entered, problem)}${
      remainder.obstacle === null && renderApiLine(screen, line)
    }`,
  })
}

/** More refunds than a payment usually has. The Refunds screen lists all of them. */
const refundsMax = 20

export async function readRemainder(
  { ctx, storeId, store: { role }, may }: Pick<Screen, 'ctx' | 'storeId' | 'store' | 'may'>,
  payment: CreditRow,
  mayDecide: boolean,
): Promise<Remainder> {
  const [known, { data: refunds }, store] = await Promise.all([
    readRefundable(ctx.db, storeId, payment.paymentId),
    listRefunds(ctx, storeId, { paymentId: payment.paymentId, limit: refundsMax }),
    role === 'manager' ? readStore(ctx.db, storeId) : null,
  ])
  // If several stores share a wallet, only one of them may refund a payment to it.
  const isAnotherStores = known !== null && known.ownerId !== null && known.ownerId !== storeId
  const left = known === null || isAnotherStores ? 0n : payment.amount - (known.reserved ?? 0n)
  const find = (): Remainder['obstacle'] => {
    if (!may('refunds:write')) return 'notAllowed'
    if (store && isNothing(store.managerRefundLimit)) return 'ownersOnly'
    if (known === null || payment.isReversed) return 'reversed'
    if (!mayDecide || !known.isProven) return 'unproven'
    if (payment.finalizedAt === null) return 'notFinal'
    return left <= 0n ? 'nothingLeft' : null
  }
  return { payment, left, isSigned: known?.nonce != null, refunds, obstacle: find() }
}
