import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Actor, Payment } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { newId, type StoreId } from '../ids.ts'
import { advancePlaces } from '../payments/credits/rows.ts'
import { writeCredits } from '../payments/credits/write.ts'
import { addRefund, changeRefund, type NewRefund } from '../refunds/change.ts'
import { identityOf, noncesOf } from '../refunds/refund.ts'
import { readRefundable } from '../refunds/rows.ts'
import { watchRefunds } from '../refunds/watch.ts'
import type { Order, OrderStep } from './orders.ts'

/** The demo store, which is given a past of two months so that the console has something to show. */
export type Shop = {
  readonly storeId: StoreId
  /** Where payments go: CAIP-2 network, token and address. */
  readonly network: string
  readonly asset: string
  readonly payTo: string
  readonly actor: Actor
}

/**
 * Makes refunds in the demo store's past. Each one's transfer is written first, as if a follower had seen it, so that no
 * loop finds a refund without its transfer later.
 */
export function openRefunder(past: Context, tx: Transaction, { storeId, actor, ...shop }: Shop) {
  const { network } = shop
  const [asset, wallet] = [toStored(network, shop.asset), toStored(network, shop.payTo)]
  return async (order: Order, payment: Payment, does: OrderStep['does']): Promise<void> => {
    const now = past.now()
    const known = await readRefundable(tx, storeId, payment.id)
    assert(known, 'an order of the demo store is refunded without a payment')
    const recipient = toStored(network, payment.payer)
    const received = BigInt(payment.amount)
    const amount = does === 'refund' ? received : received / 2n
    const identity = identityOf({
      ...{ payer: recipient, nonce: known.nonce, transaction: payment.transaction, payTo: wallet },
      ...{ amount: received, position: known.position },
    })
    const [nonce = ''] = noncesOf(network, asset, identity)
    const transaction = hashOf('refund', order)
    if (does !== 'ask-refund') {
      const place = { hash: hashOf('refund block', order), number: 0, time: now }
      const seen = { asset, payer: wallet, to: recipient, value: amount, transactionHash: transaction }
      const claim = { checkoutId: null, storeId: null, isMatch: true }
      const concern = { seen: { ...seen, logIndex: 0, position: 0, nonce }, claim }
      await writeCredits(past, tx, network, place, { concerns: [concern] })
      await advancePlaces(tx, network, [place.hash], 'finalized')
    }
    const id = newId('rf', past.config.cell, now)
    const added: NewRefund = {
      ...{ id, storeId, paymentId: payment.id, checkoutId: payment.checkoutId },
      ...{ network, asset, identity, wallet, received, amount, recipient, way: 'signed', actor, now },
      reason: does === 'refund' ? 'Returned within 14 days' : 'One piece was broken',
      idempotency: null,
    }
    const refund = await addRefund(past, tx, added, 'refund.requested')
    assert(refund, 'an order of the demo store is refunded twice')
    const facts = { handOut: { slot: 0, nonce }, signedAt: now }
    if (does !== 'ask-refund') await changeRefund(past, tx, refund, facts, { actor: null, now })
    // Now, in the past: when the demo starts, the store would get all of their events at once.
    while (await watchRefunds(past, { after: '' }));
  }
}

function hashOf(what: string, { number }: Order): string {
  return `0x${createHash('sha256').update(`${what} ${number}`).digest('hex')}`
}
