import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Payment } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import { cancelCheckout } from '../checkouts/cancel.ts'
import { type Option, toStoreWire } from '../checkouts/checkout.ts'
import { claimAuthorizations } from '../checkouts/claim.ts'
import { openCreateCheckout } from '../checkouts/create.ts'
import { expireCheckouts } from '../checkouts/expire.ts'
import { acceptPayment, dismissPayment } from '../checkouts/payments/decide.ts'
import { listPayments } from '../checkouts/payments/list.ts'
import { readCheckout } from '../checkouts/rows.ts'
import { updateStatus } from '../checkouts/update-status.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { openLog } from '../log.ts'
import { advancePlaces } from '../payments/credits/rows.ts'
import { writeCredits } from '../payments/credits/write.ts'
import { rejectAuthorizations } from '../payments/rows.ts'
import { createKey } from '../stores/api-keys.ts'
import { openAuthenticator } from '../stores/authenticate.ts'
import { historyDays, type Order, planOrders, type Step } from './orders.ts'
import { openRefunder } from './returns.ts'
import type { Shop } from './shop.ts'

/**
 * Writes the demo store's past with the functions that would have written it then, each at its own time: all of them ask
 * the context or the database for it. It is one transaction, so there is all of it or none. The chain knows nothing of
 * these payments. They are final, so nobody looks for them there.
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
      // For the rest of this transaction only. `work` runs beside it and may hold the chain for a while: nobody waits for
      // an answer here, so only the time limit of a statement counts. Creating a checkout shortens it again.
      await tx.query(
        "select set_config('farthing.clock_offset', $1, true), set_config('lock_timeout', '0', true)",
        [`${at.getTime() - now.getTime()} milliseconds`],
      )
    }
    // Thousands of small statements: planning each of them anew would take longer than running them.
    await tx.script('set local plan_cache_mode = force_generic_plan')
    await turnTo(first)
    const run = await openRunner(past, tx, shop)
    const steps = start.flatMap((order) => order.steps.map((step) => ({ ...step, order })))
    for (const { order, ...step } of steps.toSorted((a, b) => a.at.getTime() - b.at.getTime())) {
      await turnTo(step.at)
      await run(order, step)
    }
  })
}

/** The same database inside of one transaction. */
function within(db: Database, tx: Transaction): Database {
  return { ...db, query: (text, values) => tx.query(text, values), transaction: (work) => work(tx) }
}

async function openRunner(past: Context, tx: Transaction, shop: Shop) {
  const { storeId, network, actor } = shop
  const authenticator = openAuthenticator(past)
  const { text } = await createKey(past, storeId, { actor, limit: null }, { label: 'Web shop' }, past.now())
  const create = openCreateCheckout(past, authenticator)
  const refund = openRefunder(past, tx, shop)
  const asset = toStored(network, shop.asset)
  const payTo = toStored(network, shop.payTo)
  const ids = new Map<Order, string>()
  let sent = 0

  async function find(order: Order) {
    const row = await readCheckout(tx, storeId, ids.get(order) ?? '')
    assert(row, 'an order of the demo store has no checkout')
    const option: Option | undefined = row.checkout.options.find((each) => each.network === network)
    assert(option)
    return { checkout: row.checkout, due: BigInt(option.amount) }
  }

  /** Money arrives and is final. */
  async function credit(order: Order, value: bigint, checkoutId: string | null): Promise<void> {
    const at = past.now()
    const hash = (what: string) =>
      `0x${createHash('sha256').update(`${what} ${order.number} ${sent}`).digest('hex')}`
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
    const sender = { address: order.payer, nonce: sent++ }
    const match = { seen, sender, checkoutId, storeId: checkoutId && storeId }
    const concerned = await writeCredits(past, tx, network, place, [], [match])
    await advancePlaces(tx, network, [place.hash], 'finalized')
    if (concerned.length > 0) await updateStatus(past, tx, concerned, at)
  }

  /** A signature that turns out to be worth nothing before anything is sent. */
  async function refuse(order: Order): Promise<void> {
    const at = past.now()
    const { checkout, due } = await find(order)
    const nonce = `0x${createHash('sha256').update(`nonce ${order.number}`).digest('hex')}` as const
    const data = { checkout: toStoreWire(past, { ...checkout, status: 'PROCESSING' }, null) }
    const authorization = { from: order.payer, to: payTo, value: due, validAfter: 0n, validBefore: 1n, nonce }
    const transfer = { asset, authorization, signature: '0x', isContract: false } as const
    const eventId = newId('evt', past.config.cell, at)
    const claim = {
      checkoutId: checkout.id,
      network,
      transfer,
      isBound: true,
      identifier: null,
      eventId,
      data,
      now: at,
    }
    await claimAuthorizations(tx, [claim], '')
    await rejectAuthorizations(tx, network, [
      { asset, payer: order.payer, nonce, reason: 'insufficient_funds' },
    ])
    await updateStatus(past, tx, [checkout.id], at)
  }

  async function paymentOf(order: Order): Promise<Payment> {
    const [payment] = (await listPayments(past, storeId, { checkoutId: ids.get(order) ?? null, limit: 1 }))
      .data
    assert(payment, 'an order of the demo store has no payment')
    return payment
  }

  async function decide(order: Order, kind: 'accept' | 'dismiss'): Promise<void> {
    const payment = await paymentOf(order)
    const decision = {
      id: `dec_${order.number}`,
      storeId,
      paymentId: payment.id,
      kind,
      checkoutId: null,
      note: null,
    } as const
    const verb = kind === 'accept' ? acceptPayment : dismissPayment
    await verb(past, tx, { ...decision, actor, createdAt: past.now() }, past.now())
  }

  return async (order: Order, { does }: Step): Promise<void> => {
    switch (does) {
      case 'create': {
        const caller = await authenticator.authenticate(text, () => {})
        ids.set(order, (await create(caller, order.input, null, past.now())).id)
        return
      }
      case 'pay': {
        const { checkout, due } = await find(order)
        return await credit(order, (due * BigInt(order.percent)) / 100n, checkout.id)
      }
      case 'stray':
        return await credit(order, BigInt(order.percent) * 1_000_000n, null)
      case 'refuse':
        return await refuse(order)
      case 'cancel':
        await cancelCheckout(past, storeId, actor, ids.get(order) ?? '', past.now())
        return
      case 'expire':
        await expireCheckouts(past, past.now())
        return
      case 'accept':
      case 'dismiss':
        return await decide(order, does)
      case 'refund':
      case 'refund-half':
      case 'ask-refund':
        return await refund(order, await paymentOf(order), does)
    }
  }
}
