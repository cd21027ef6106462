import type { CheckoutPayment, Disposition } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { type CreditRow, finalityOf, toCheckoutPayment, toPayment } from '../payments/credits/credit.ts'
import { type Announcement, writeAnnouncements, writeDispositions } from '../payments/credits/rows.ts'
import { rejectUnsent } from '../payments/rows.ts'
import { type Checkout, type Credit, evaluate, toStoreWire } from './checkout.ts'
import { moveCheckouts } from './move.ts'
import { notePagesChanged } from './page-rows.ts'
import { lockCheckouts, readFacts, type StatusFacts } from './status-rows.ts'

/**
 * Looks again at checkouts whose facts changed: credits that came or went, authorizations whose fate was decided, time
 * that passed. Locks them, computes dispositions and status from the facts, and writes what is different, with an event
 * for each difference. Doing it once more changes nothing.
 */
export async function updateStatus(
  ctx: Context,
  tx: Transaction,
  checkoutIds: readonly string[],
  now: Date,
): Promise<void> {
  const checkouts = await lockCheckouts(tx, checkoutIds)
  const facts = await readFacts(tx, checkoutIds)
  const creditsOf = Map.groupBy(facts.credits, ({ checkoutId }) => checkoutId)
  const judged = checkouts.map((checkout) => judge(checkout, creditsOf.get(checkout.id) ?? [], facts, now))

  await writeDispositions(
    tx,
    judged.flatMap(({ changed }) => changed),
  )
  for (const [status, group] of Map.groupBy(judged, ({ status }) => status)) {
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
  await announce(ctx, tx, judged, now)
  // Paid is paid: what was not sent yet need not be.
  await rejectUnsent(
    tx,
    judged.filter(({ payment }) => payment !== null).map(({ checkout }) => checkout.id),
  )
}

type Judged = {
  readonly checkout: Checkout
  readonly status: Checkout['status']
  readonly payment: CheckoutPayment | null
  readonly credits: readonly (CreditRow & { disposition: Disposition })[]
  readonly changed: readonly { key: string; disposition: Disposition }[]
}

function judge(checkout: Checkout, all: readonly CreditRow[], facts: StatusFacts, now: Date): Judged {
  const live = all.filter(({ isOrphaned }) => !isOrphaned)
  const { status, dispositions } = evaluate(
    checkout,
    {
      credits: live.map((row) => toCredit(checkout, row)),
      hasUnresolved: facts.unresolved.has(checkout.id),
      readUntil: facts.readUntil.get(checkout.id) ?? null,
    },
    now,
  )
  const credits = all.map((row) => ({ ...row, disposition: dispositions.get(row.key) ?? row.disposition }))
  const exact = credits.find((row) => !row.isOrphaned && row.disposition === 'exact')
  const changed = live.flatMap((row) => {
    const disposition = dispositions.get(row.key)
    return disposition && disposition !== row.disposition ? [{ key: row.key, disposition }] : []
  })
  return { checkout, status, payment: exact ? toCheckoutPayment(exact) : null, credits, changed }
}

function toCredit(checkout: Checkout, row: CreditRow): Credit {
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
    disposition: row.disposition,
    finality: finalityOf(row),
  }
}

/** What a store must be told of a credit, beside the status of its checkout. */
function announcementOf(row: CreditRow & { disposition: Disposition }): Announcement['announcement'] | null {
  if (row.isReversed) return 'reversed'
  if (row.isOrphaned) return row.isIncludedAgain ? null : 'reorged'
  if (row.disposition !== 'exact') return row.disposition
  return row.finalizedAt ? 'finalized' : null
}

async function announce(ctx: Context, tx: Transaction, judged: readonly Judged[], now: Date): Promise<void> {
  const told = judged.flatMap(({ checkout, status, payment, credits }) =>
    credits.flatMap((row) => {
      const announcement = announcementOf(row)
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
    told.map(({ checkout_id }) => checkout_id),
  )
}
