import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Actor, Payment } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import { cancelCheckout } from '../checkouts/cancel.ts'
import { type Option, toStoreWire } from '../checkouts/checkout.ts'
import { claimAuthorizations } from '../checkouts/claim.ts'
import { openCreateCheckout } from '../checkouts/create.ts'
import { expireCheckouts } from '../checkouts/expire.ts'
import { numberEvents } from '../checkouts/number-events.ts'
import { acceptPayment, dismissPayment } from '../checkouts/payments/decide.ts'
import { listPayments } from '../checkouts/payments/list.ts'
import { readCheckout } from '../checkouts/rows.ts'
import { updateStatus } from '../checkouts/update-status.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { newId, type StoreId } from '../ids.ts'
import { openLog } from '../log.ts'
import { bookDue } from '../movements/book-due.ts'
import { advancePlaces } from '../payments/credits/rows.ts'
import { writeCredits } from '../payments/credits/write.ts'
import { rejectAuthorizations } from '../payments/end.ts'
import { addRefund, changeRefund, type NewRefund } from '../refunds/change.ts'
import { identityOf, noncesOf } from '../refunds/refund.ts'
import { readRefundable } from '../refunds/rows.ts'
import { watchRefunds } from '../refunds/watch.ts'
import { createKey } from '../stores/api-keys.ts'
import { openAuthenticator } from '../stores/authenticate.ts'
import { historyDays, type Order, type OrderStep, planOrders } from './orders.ts'

/**
 * Writes the demo store's past with the server's own functions. They take the time from the context or the database,
 * which are set to each step's time. One transaction writes all of it or nothing. The payments are on no chain, but
 * they are final, so no loop looks for them.
 */
export async function writeHistory(ctx: Context, shop: Shop, days = historyDays): Promise<void> {
  const now = ctx.now()
  await ctx.db.transaction(async (tx) => {
    const clock = { now }
    const past: Context = { ...ctx, db: within(ctx.db, tx), log: openLog('silent'), now: () => clock.now }
    const start = planOrders(now, days)
    const first = start[0]?.steps[0]?.at ?? now
    const turnTo = async (at: Date) => {
      clock.now = at
      // Applies to the rest of this transaction only. `work` runs at the same time and may hold the chain for a while.
      // No request waits here, so only the time limit of a statement counts. Creating a checkout shortens it again.
      await tx.query(
        `select set_config('farthing.clock_offset', extract(epoch from $1::timestamptz - now()) || ' seconds', true),
           set_config('lock_timeout', '0', true)`,
        [at],
      )
    }
    // Thousands of small statements: planning each of them anew would take longer than running them.
    await tx.script('set local plan_cache_mode = force_generic_plan')
    await turnTo(first)
    const run = await openRunner(past, tx, shop)
    const steps = start.flatMap((order) => order.steps.map((step) => ({ ...step, order })))
    let booked = dayOf(first)
    for (const { order, ...step } of steps.toSorted((a, b) => a.at.getTime() - b.at.getTime())) {
      await turnTo(step.at)
      // Each day's lines are booked in it, as `work` would have done.
      if (dayOf(step.at) !== booked) while ((await numberEvents(past)) > 0 || (await bookDue(past)));
      booked = dayOf(step.at)
      await run(order, step)
    }
  })
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

/** The same database inside of one transaction. */
function within(db: Database, tx: Transaction): Database {
  return { ...db, query: (text, values) => tx.query(text, values), transaction: (work) => work(tx) }
}

/** The shop in its past. */
type Past = {
  readonly ctx: Context
  readonly tx: Transaction
  readonly shop: Shop
  /** The token and the shop's wallet, in the form that rows have. */
  readonly asset: string
  readonly payTo: string
  readonly checkoutIds: Map<Order, string>
  transfers: number
}

async function openRunner(ctx: Context, tx: Transaction, shop: Shop) {
  const { storeId, network, actor } = shop
  const past: Past = {
    ...{ ctx, tx, shop, asset: toStored(network, shop.asset), payTo: toStored(network, shop.payTo) },
    ...{ checkoutIds: new Map(), transfers: 0 },
  }
  const authenticator = openAuthenticator(ctx)
  const { text } = await createKey(ctx, storeId, { actor, limit: null }, { label: 'Web shop' }, ctx.now())
  const create = openCreateCheckout(ctx, authenticator)
  const refund = openRefunder(ctx, tx, shop)

  return async (order: Order, { does }: OrderStep): Promise<void> => {
    switch (does) {
      case 'create': {
        const caller = await authenticator.authenticate(text, () => {})
        past.checkoutIds.set(order, (await create(caller, order.input, null, ctx.now())).id)
        return
      }
      case 'pay': {
        const { checkout, due } = await readOrder(past, order)
        return await credit(past, order, (due * BigInt(order.percent)) / 100n, checkout.id)
      }
      case 'stray':
        return await credit(past, order, BigInt(order.percent) * 1_000_000n, null)
      case 'refuse':
        return await refuse(past, order)
      case 'cancel':
        await cancelCheckout(ctx, storeId, actor, past.checkoutIds.get(order) ?? '', ctx.now())
        return
      case 'expire':
        await expireCheckouts(ctx, ctx.now())
        return
      case 'accept':
      case 'dismiss':
        return await decide(past, order, does)
      case 'refund':
      case 'refund-half':
      case 'ask-refund':
        return await refund(order, await readPayment(past, order), does)
    }
  }
}

async function readOrder({ tx, shop: { storeId, network }, checkoutIds }: Past, order: Order) {
  const row = await readCheckout(tx, storeId, checkoutIds.get(order) ?? '')
  assert(row, 'an order of the demo store has no checkout')
  const option: Option | undefined = row.checkout.options.find((each) => each.network === network)
  assert(option)
  return { checkout: row.checkout, due: BigInt(option.amount) }
}

async function readPayment({ ctx, shop, checkoutIds }: Past, order: Order): Promise<Payment> {
  const query = { checkoutId: checkoutIds.get(order) ?? null, limit: 1 }
  const [payment] = (await listPayments(ctx, shop.storeId, query)).data
  assert(payment, 'an order of the demo store has no payment')
  return payment
}

/** Money arrives and is final. */
async function credit(past: Past, order: Order, value: bigint, checkoutId: string | null): Promise<void> {
  const { ctx, tx, asset, payTo } = past
  const { storeId, network } = past.shop
  const at = ctx.now()
  const hash = (what: string) =>
    `0x${createHash('sha256').update(`${what} ${order.number} ${past.transfers}`).digest('hex')}`
  const place = { hash: hash('block'), number: 0, time: at }
  const seen = {
    asset,
    payer: order.payer,
    to: payTo,
    value,
    transactionHash: hash('transaction'),
    logIndex: 0,
    position: 0,
  }
  const sender = { address: order.payer, nonce: past.transfers++ }
  const match = { seen, sender, checkoutId, storeId: checkoutId && storeId }
  const concerned = await writeCredits(ctx, tx, network, place, { matches: [match] })
  await advancePlaces(tx, network, [place.hash], 'finalized')
  if (concerned.length > 0) await updateStatus(ctx, tx, concerned, at)
}

/** A signature that is found to be worthless before anything is sent. */
async function refuse(past: Past, order: Order): Promise<void> {
  const { ctx, tx, asset, payTo } = past
  const { network } = past.shop
  const at = ctx.now()
  const { checkout, due } = await readOrder(past, order)
  const nonce = `0x${createHash('sha256').update(`nonce ${order.number}`).digest('hex')}` as const
  const data = { checkout: toStoreWire(ctx, { ...checkout, status: 'PROCESSING' }, null) }
  const authorization = { from: order.payer, to: payTo, value: due, validAfter: 0n, validBefore: 1n, nonce }
  const transfer = { asset, authorization, signature: '0x', isContract: false } as const
  const claim = {
    checkoutId: checkout.id,
    network,
    transfer,
    isBound: true,
    identifier: null,
    eventId: newId('evt', ctx.config.cell, at),
    data,
    now: at,
  }
  await claimAuthorizations(tx, [claim], '')
  await rejectAuthorizations(tx, network, [
    { asset, payer: order.payer, nonce, reason: 'insufficient_funds' },
  ])
  await updateStatus(ctx, tx, [checkout.id], at)
}

async function decide(past: Past, order: Order, kind: 'accept' | 'dismiss'): Promise<void> {
  const { ctx, tx, shop } = past
  const payment = await readPayment(past, order)
  const decision = {
    id: `dec_${order.number}`,
    storeId: shop.storeId,
    paymentId: payment.id,
    kind,
    checkoutId: null,
    note: null,
    actor: shop.actor,
    createdAt: ctx.now(),
  } as const
  const verb = kind === 'accept' ? acceptPayment : dismissPayment
  await verb(ctx, tx, decision, ctx.now())
}

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
function openRefunder(past: Context, tx: Transaction, { storeId, actor, ...shop }: Shop) {
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
    // Numbers the events at this time of the past. Otherwise the store would get all of them at once when the demo
    // starts.
    while (await watchRefunds(past, { after: '' }));
  }
}

function hashOf(what: string, { number }: Order): string {
  return `0x${createHash('sha256').update(`${what} ${number}`).digest('hex')}`
}
