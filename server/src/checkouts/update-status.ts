import type { CheckoutPayment, Disposition } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { type CreditRow, finalityOf, toCheckoutPayment, toPayment } from '../payments/credits/credit.ts'
import { type Announcement, writeAnnouncements, writeDispositions } from '../payments/credits/rows.ts'
import { rejectUnsent } from '../payments/rows.ts'
import { readReturned } from '../refunds/returned.ts'
import { type Checkout, type Credit, evaluate, isUnpaid, toStoreWire } from './checkout.ts'
import { moveCheckouts } from './move.ts'
import { notePagesChanged } from './page-rows.ts'
import { type Reported, report } from './report.ts'
import { type FactCredit, listCanceled, lockCheckouts, readFacts, type StatusFacts } from './status-rows.ts'

/**
 * Re-evaluates checkouts whose facts changed: credits that came or went, authorizations whose fate was decided, time
 * that passed. Locks them, computes dispositions and status from the facts, and writes each difference with its event.
 * Idempotent.
 */
export async function updateStatus(
  ctx: Context,
  tx: Transaction,
  checkoutIds: readonly string[],
  now: Date,
): Promise<void> {
  const checkouts = await lockCheckouts(tx, checkoutIds)
  const facts = await withReturned(tx, await readFacts(tx, checkoutIds))
  const creditsOf = Map.groupBy(facts.credits, ({ checkoutId }) => checkoutId)
  const evaluateAll = (wasCanceled: ReadonlySet<string>) =>
    checkouts.map((checkout) =>
      evaluateFacts(checkout, creditsOf.get(checkout.id) ?? [], facts, wasCanceled.has(checkout.id), now),
    )
  const first = evaluateAll(new Set())
  const reopening = first.filter(
    ({ checkout, status }) => checkout.status === 'PROCESSING' && isUnpaid(status),
  )
  // A payment that the store accepted for a canceled checkout, and that the chain took back, does not reopen it.
  const canceled =
    reopening.length === 0
      ? new Set<string>()
      : await listCanceled(
          tx,
          reopening.map(({ checkout }) => checkout.id),
        )
  const evaluated = canceled.size === 0 ? first : evaluateAll(canceled)

  await writeDispositions(
    tx,
    evaluated.flatMap(({ changed }) => changed),
  )
  for (const [status, group] of Map.groupBy(evaluated, ({ status }) => status)) {
    const moving = group.filter(({ checkout }) => checkout.status !== status)
    if (moving.length === 0) continue
    const payments = new Map(moving.map(({ checkout, payment }) => [checkout.id, payment]))
    await moveCheckouts(
      ctx,
      tx,
      moving.map(({ checkout }) => checkout),
      { status, payments },
      now,
    )
  }
  await announce(ctx, tx, evaluated, now)
  report(ctx, tx, evaluated)
  // A paid checkout no longer needs the authorizations that were not sent yet.
  await rejectUnsent(
    tx,
    evaluated.filter(({ isPaid }) => isPaid).map(({ checkout }) => checkout.id),
  )
}

/**
 * A payment that did not pay when it came, and may now, must not have gone back meanwhile. Refunds that a restored database
 * has forgotten are seen on the chain. Most checkouts have no such payment, so nothing is asked.
 */
async function withReturned(tx: Transaction, facts: StatusFacts): Promise<StatusFacts> {
  const second = facts.credits.filter(
    ({ isNew, isOrphaned, isRefunded, disposition }) =>
      !isNew && !isOrphaned && !isRefunded && disposition !== 'exact',
  )
  if (second.length === 0) return facts
  const returned = await readReturned(tx, second)
  const credits = facts.credits.map((credit) => ({
    ...credit,
    isRefunded: credit.isRefunded || returned.has(credit.paymentId),
  }))
  return { ...facts, credits }
}

type Evaluated = Reported & {
  readonly checkout: Checkout
  readonly payment: CheckoutPayment | null
  readonly isPaid: boolean
  readonly changed: readonly { key: string; disposition: Disposition }[]
}

function evaluateFacts(
  checkout: Checkout,
  all: readonly FactCredit[],
  facts: StatusFacts,
  wasCanceled: boolean,
  now: Date,
): Evaluated {
  const live = all.filter(({ isOrphaned }) => !isOrphaned)
  const { status, dispositions } = evaluate(
    checkout,
    {
      credits: live.map((row) => toCredit(checkout, row)),
      hasUnresolved: facts.unresolved.has(checkout.id),
      readUntil: facts.readUntil.get(checkout.id) ?? null,
      wasCanceled,
    },
    now,
  )
  const credits = all.map((row) => {
    const disposition = dispositions.get(row.key) ?? row.disposition
    return { ...row, disposition, announcement: announcementOf({ ...row, disposition }) }
  })
  const exact = credits.find((row) => !row.isOrphaned && row.disposition === 'exact')
  const changed = live.flatMap((row) => {
    const disposition = dispositions.get(row.key)
    return disposition && disposition !== row.disposition ? [{ key: row.key, disposition }] : []
  })
  const payment = exact ? toCheckoutPayment(exact) : null
  return { checkout, status, payment, isPaid: exact?.counts === true, credits, changed }
}

function toCredit(checkout: Checkout, row: FactCredit): Credit {
  const offer = checkout.options.find(
    ({ network, asset, payTo }) =>
      network === row.network &&
      toStored(network, asset) === row.asset &&
      toStored(network, payTo) === row.payTo,
  )
  return {
    key: row.key,
    amount: row.amount,
    due: row.isReserved ? row.amount : offer ? BigInt(offer.amount) : null,
    isAccepted: row.acceptedAt !== null,
    isClaimed: row.isClaimed,
    firstBlockTime: row.firstBlockTime,
    blockNumber: row.blockNumber,
    logIndex: row.logIndex,
    // One that was written just now as what was expected of it is decided about here.
    disposition: row.isNew && row.disposition === 'exact' ? 'overpaid' : row.disposition,
    finality: finalityOf(row),
    counts: row.counts,
    isRefunded: row.isRefunded,
  }
}

/** The announcement that a credit needs in addition to its checkout's status; null if none. */
function announcementOf(row: CreditRow & { disposition: Disposition }): Announcement['announcement'] | null {
  if (row.isReversed) return 'reversed'
  if (row.isOrphaned) return row.isIncludedAgain ? null : 'reorged'
  if (row.disposition !== 'exact') return row.disposition
  return row.finalizedAt ? 'finalized' : null
}

async function announce(
  ctx: Context,
  tx: Transaction,
  evaluated: readonly Evaluated[],
  now: Date,
): Promise<void> {
  const told = evaluated.flatMap(({ checkout, status, payment, credits }) =>
    credits.flatMap((row) => {
      const { announcement } = row
      if (announcement === null || announcement === row.announced) return []
      const current = {
        ...checkout,
        status,
        version: checkout.version + (status === checkout.status ? 0 : 1),
      }
      return {
        key: row.key,
        announcement,
        event_id: newId('evt', ctx.config.cell, now),
        store_id: checkout.storeId,
        type: `payment.${announcement}` as const,
        checkout_id: checkout.id,
        checkout_version: current.version,
        data: { checkout: toStoreWire(ctx, current, payment), payment: toPayment(row) },
        created_at: now,
      }
    }),
  )
  if (told.length === 0) return
  await writeAnnouncements(tx, told)
  await notePagesChanged(
    tx,
    // Pages do not show when a payment is final.
    told.flatMap(({ announcement, checkout_id }) => (announcement === 'finalized' ? [] : checkout_id)),
  )
}
