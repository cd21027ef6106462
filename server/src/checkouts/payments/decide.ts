import assert from 'node:assert/strict'
import type { Actor, Payment } from '@farthing/sdk'
import { toShown } from '../../chains/families.ts'
import { lockFollower } from '../../chains/rows.ts'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { appendEvent, newEvent } from '../../events/append.ts'
import { type Id, isId, type StoreId } from '../../ids.ts'
import { type CreditRow, toPayment } from '../../payments/credits/credit.ts'
import * as rows from '../../payments/credits/decide.ts'
import { readPayment, type StorePayment } from '../../payments/credits/store-payments.ts'
import { readIsRestoring } from '../../payments/reconcile.ts'
import { invalid, Problem } from '../../problems.ts'
import { readReturned } from '../../refunds/create.ts'
import { isRefunded, lockRefundsOf, readRefundable } from '../../refunds/rows.ts'
import { checkText } from '../../stores/check-text.ts'
import { toStoreWire } from '../checkout.ts'
import { cedeLink } from '../links/cede.ts'
import { lockCheckout, notePagesChanged, readCheckout } from '../rows.ts'
import { updateStatus } from '../update-status.ts'

/**
 * A store's decision about a payment is a fact like those from the chain, and statuses are computed from it. All verbs
 * are idempotent. They run in `work`, in the transaction that takes the decision from its queue.
 */

export type DecisionId = Id<'dec'>

/** A store's decision about a payment. */
export type Decision = {
  readonly id: DecisionId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly kind: 'accept' | 'dismiss' | 'note'
  /** The checkout to accept it for; null for the one it belongs to. */
  readonly checkoutId: string | null
  /** The store's note. With `dismiss`, null keeps the present note. With `note`, null removes it. */
  readonly note: string | null
  readonly actor: Actor
  readonly createdAt: Date
}

/** A few sentences. The database refuses longer ones too. */
const noteBytesMax = 1_000

export function checkNote(note: string | null): void {
  const mistakes = note === null ? [] : checkText('/note', note, noteBytesMax)
  if (mistakes.length > 0) throw invalid(...mistakes)
}

/** Accepts a payment for a checkout although its amount or time is wrong, or although its checkout is unknown. */
export async function acceptPayment(
  ctx: Context,
  tx: Transaction,
  decision: Decision,
  now: Date,
): Promise<Payment> {
  const { storeId, paymentId, checkoutId: wanted } = decision
  const payment = await lockPayment(tx, storeId, paymentId)
  const checkoutId = wanted ?? payment.checkoutId
  if (checkoutId === null) {
    throw invalid({
      pointer: '/checkoutId',
      code: 'required',
      detail: 'Required, because the payment belongs to no checkout yet.',
    })
  }
  const found = isId('ch', checkoutId) ? await lockCheckout(tx, storeId, checkoutId) : null
  if (!found) throw new Problem('not_found', 'No such checkout.')
  if (payment.acceptedAt && payment.checkoutId === checkoutId) return toPayment(payment)
  if (payment.checkoutId !== null && payment.checkoutId !== checkoutId)
    throw notOpen('The payment belongs to another checkout.')
  if (found.checkout.status === 'PROCESSING') {
    throw new Problem(
      'payment_in_progress',
      'A payment is being settled. Its outcome decides whether the checkout still needs this one.',
      {
        retryAfterSeconds: 5,
      },
    )
  }
  if (found.checkout.status === 'COMPLETED' || (await rows.hasExact(tx, checkoutId)))
    throw new Problem('already_paid', 'The checkout is already paid.')
  refuseClosed(payment)
  await refuseReturned(tx, storeId, payment)
  if (!(await rows.acceptPayment(tx, storeId, paymentId, checkoutId)))
    throw notOpen('The payment was signed for another checkout.')
  await cedeLink(ctx, tx, found.checkout, decision.actor, now)
  await tell(ctx, tx, decision, 'payment.accepted', now)
  await updateStatus(ctx, tx, [checkoutId], now)
  return toPayment(await readKnown(tx, storeId, paymentId))
}

/**
 * Refunded money can't pay. After a restore, refunds that the database has forgotten are found on the chain, once its
 * blocks were read again.
 */
async function refuseReturned(tx: Transaction, storeId: StoreId, payment: CreditRow): Promise<void> {
  const known = await readRefundable(tx, storeId, payment.paymentId)
  const onChain = known && { ...payment, nonce: known.nonce, position: known.position }
  const isReturned =
    (await isRefunded(tx, payment.paymentId)) || (onChain && (await readReturned(tx, [onChain])).size > 0)
  if (isReturned) throw new Problem('payment_refunded', 'A refund of the payment counts.')
  if (await readIsRestoring(tx, payment.network))
    throw new Problem(
      'payment_in_progress',
      'The database was restored, and refunds made since then are still being looked for.',
      { retryAfterSeconds: 60 },
    )
}

/** Records that nothing more needs to be done about a payment. */
export async function dismissPayment(
  ctx: Context,
  tx: Transaction,
  decision: Decision,
  now: Date,
): Promise<Payment> {
  const { storeId, actor, paymentId, note } = decision
  const payment = await lockPayment(tx, storeId, paymentId)
  if (payment.dismissedAt)
    return note === null ? toPayment(payment) : await notePayment(ctx, tx, decision, now)
  refuseClosed(payment)
  await rows.dismissPayment(tx, storeId, paymentId)
  if (note !== null) await rows.writeNote(tx, storeId, paymentId, note, actor)
  await tell(ctx, tx, decision, 'payment.dismissed', now)
  const shownOn = [payment.checkoutId, ...payment.hints.map(({ checkoutId }) => checkoutId)]
  await notePagesChanged(
    tx,
    shownOn.filter((id) => id !== null),
  )
  return toPayment(await readKnown(tx, storeId, paymentId))
}

/** Stores the store's note about a payment, whatever its state. This decides nothing. */
export async function notePayment(
  ctx: Context,
  tx: Transaction,
  decision: Decision,
  now: Date,
): Promise<Payment> {
  const { storeId, actor, paymentId, note } = decision
  await takeUp(tx, storeId, paymentId)
  if (await rows.writeNote(tx, storeId, paymentId, note, actor))
    await tell(ctx, tx, decision, 'payment.noted', now)
  return toPayment(await readKnown(tx, storeId, paymentId))
}

/** Locks the payment's chain and its refunds, so that nothing about it changes meanwhile, and reads the payment. */
async function lockPayment(tx: Transaction, storeId: StoreId, paymentId: string): Promise<CreditRow> {
  const { network } = await readKnown(tx, storeId, paymentId)
  await lockFollower(tx, network)
  await lockRefundsOf(tx, paymentId)
  const payment = await takeUp(tx, storeId, paymentId)
  if (!payment.mayDecide) {
    throw new Problem(
      'wallet_unproven',
      `Other stores have registered ${toShown(payment.network, payment.payTo)} too, or it was released to other cells before the money came.`,
    )
  }
  return payment
}

/** Locks the payment's checkout and reads the payment, because retention may have deleted both meanwhile. */
async function takeUp(tx: Transaction, storeId: StoreId, paymentId: string): Promise<StorePayment> {
  const payment = await readKnown(tx, storeId, paymentId)
  if (payment.checkoutId === null) return payment
  await rows.holdCheckout(tx, payment.checkoutId)
  return await readKnown(tx, storeId, paymentId)
}

async function readKnown(tx: Transaction, storeId: StoreId, paymentId: string): Promise<StorePayment> {
  const payment = await readPayment(tx, storeId, paymentId)
  if (!payment) throw new Problem('not_found', 'No such payment.')
  return payment
}

/** Writes the event of a decision, before the events of its consequences. */
async function tell(
  ctx: Context,
  tx: Transaction,
  { storeId, actor, paymentId }: Decision,
  type: 'payment.accepted' | 'payment.dismissed' | 'payment.noted',
  now: Date,
): Promise<void> {
  const payment = await readPayment(tx, storeId, paymentId)
  assert(payment, 'a payment that was just decided about is gone')
  const row = payment.checkoutId === null ? null : await readCheckout(tx, storeId, payment.checkoutId)
  const data = { checkout: row && toStoreWire(ctx, row.checkout, row.payment), payment: toPayment(payment) }
  await appendEvent(tx, newEvent(ctx, storeId, actor, { type, data, checkout: row?.checkout ?? null }, now))
}

function refuseClosed(payment: CreditRow): void {
  if (payment.dismissedAt) throw notOpen('The payment was dismissed.')
  if (payment.isReversed) throw notOpen('The payment was reversed on the chain.')
  if (payment.disposition === 'exact') throw notOpen('The payment has already completed its checkout.')
}

function notOpen(detail: string): Problem {
  return new Problem('payment_not_open', detail)
}
