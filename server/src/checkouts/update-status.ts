import type { CheckoutPayment, Disposition } from '@farthing/sdk'
import { toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type CheckoutId, newId } from '../ids.ts'
import { followCheckouts } from '../links/follow.ts'
import { idOfNetwork } from '../networks.ts'
import {
  type CreditRow,
  finalityOf,
  type RawCredit,
  toCheckoutPayment,
  toCreditRow,
  toPayment,
} from '../payments/credits/credit.ts'
import {
  type Announcement,
  isFinalByAnnouncement,
  safeSentence,
  writeAnnouncements,
  writeDispositions,
} from '../payments/credits/rows.ts'
import { authorizationOf, rejectUnsent } from '../payments/rows.ts'
import { readReturned } from '../refunds/create.ts'
import { type Checkout, type Credit, evaluate, isUnpaid, toStoreWire } from './checkout.ts'
import { cancelOpenOf } from './links/cancel-open.ts'
import { type CheckoutRow, moveCheckouts, notePagesChanged, toCheckout } from './rows.ts'

/**
 * Re-evaluates checkouts whose facts changed: credits came or went, authorizations were resolved, or time passed. Locks
 * them, computes dispositions and status from the facts, and writes each difference with its event. Idempotent.
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
  // A canceled checkout stays closed if the chain removes a payment that the store accepted for it.
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
  const moved = evaluated.filter(({ checkout, status }) => checkout.status !== status)
  for (const [status, moving] of Map.groupBy(moved, ({ status }) => status)) {
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
  await followLinks(
    ctx,
    tx,
    moved.map(({ checkout }) => checkout),
    now,
  )
  report(ctx, tx, evaluated)
  // A paid checkout no longer needs the authorizations that were not sent yet.
  await rejectUnsent(
    tx,
    evaluated.filter(({ isPaid }) => isPaid).map(({ checkout }) => checkout.id),
  )
}

/** A payment ends the link that its checkout was made for, if one payment does, and the other checkouts of that link. */
async function followLinks(
  ctx: Context,
  tx: Transaction,
  moved: readonly Checkout[],
  now: Date,
): Promise<void> {
  const linkIds = [...new Set(moved.flatMap(({ linkId }) => linkId ?? []))]
  if (linkIds.length === 0) return
  const paid = await followCheckouts(ctx, tx, linkIds, now)
  if (paid.length === 0) return
  const ids = paid.map(({ id }) => id)
  await cancelOpenOf(ctx, tx, ids, null, now)
}

const checkoutsPerRun = 500

/** Re-evaluates every PROCESSING checkout, to catch anything that was missed. */
export async function reviewCheckouts(ctx: Context, now: Date): Promise<void> {
  let after = ''
  for (;;) {
    const ids = await listProcessing(ctx.db, after, checkoutsPerRun)
    const last = ids.at(-1)
    if (last === undefined) return
    await ctx.db.transaction((tx) => updateStatus(ctx, tx, ids, now))
    after = last
  }
}

/**
 * A payment that did not complete its checkout when it arrived may do so now, unless it was refunded meanwhile. Refunds
 * that a restored database has forgotten are found on the chain. Most checkouts have no such payment and need no query.
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
    // A new credit is stored as exact, and this decides whether it is.
    disposition: row.isNew && row.disposition === 'exact' ? 'overpaid' : row.disposition,
    finality: finalityOf(row),
    counts: row.counts,
    isRefunded: row.isRefunded,
  }
}

/** The announcement that a credit needs in addition to that of its checkout's status; null if none. */
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
    // Pages do not show when a payment becomes final.
    told.flatMap(({ announcement, checkout_id }) => (announcement === 'finalized' ? [] : checkout_id)),
  )
}

/** The facts that decide the status of checkouts. */
type StatusFacts = {
  readonly credits: readonly FactCredit[]
  readonly unresolved: ReadonlySet<string>
  /** For checkouts with reserved amounts: the time up to which their chains were read. */
  readonly readUntil: ReadonlyMap<string, Date>
}

/**
 * In order of id. Throws if one was deleted after the caller learned of it. The caller's transaction is then rolled
 * back and, when it runs again, no longer finds the checkout.
 */
async function lockCheckouts(tx: Transaction, ids: readonly string[]): Promise<Checkout[]> {
  const rows = await tx.query<CheckoutRow>(
    'select * from checkouts where id = any($1) order by id for no key update',
    [ids],
  )
  if (rows.length < new Set(ids).size) throw new Error('A checkout was deleted meanwhile; this runs again.')
  return rows.map(toCheckout)
}

/**
 * Call this after locking the checkouts: everyone who changes these facts holds that lock too. On a chain that is read
 * block by block, a credit becomes final with its block. The fact is written with its announcement.
 */
async function readFacts(tx: Transaction, ids: readonly string[]): Promise<StatusFacts> {
  const credits = await tx.query<
    RawCredit & {
      is_new: boolean
      is_newly_safe: boolean
      claimed_at: Date | null
      is_refunded: boolean
      nonce: string | null
      position: number
    }
  >(
    `select k.*, k.orphaned_at is not null and exists (select 1 from credits o where o.payment_id = k.payment_id
       and o.checkout_id = k.checkout_id and o.orphaned_at is null offset 0) as is_included_again,
       a.claimed_at is not null as is_claimed, a.claimed_at,
       coalesce(k.finalized_at, case when ${isFinalByAnnouncement} and k.block_number <= f.finalized_number
         and f.witnesses is not null then clock() end) as finalized_at,
       k.included_at = clock() as is_new, coalesce(k.safe_at = clock(), false) as is_newly_safe,
       exists (select 1 from reserved_amounts r where r.checkout_id = k.checkout_id and r.network = k.network
         and r.asset = k.asset and r.pay_to = k.pay_to and r.amount = k.amount) as is_reserved,
       exists (select 1 from refund_totals t where t.payment_id = k.payment_id and t.reserved > 0) as is_refunded
     from credits k
     left join followers f on f.network = k.network
     left join ${authorizationOf('k')} on a.checkout_id = k.checkout_id and a.state in ('claimed', 'sent')
     where k.checkout_id = any($1)`,
    [ids],
  )
  const unresolved = await tx.query<{ checkout_id: string }>(
    `select a.checkout_id from authorizations a
     where a.checkout_id = any($1) and a.state in ('claimed', 'sent')
       and not exists (select 1 from credits k where k.network = a.network and k.asset = a.asset
         and k.payer = a.payer and k.nonce = a.nonce and k.orphaned_at is null and k.checkout_id = a.checkout_id
         offset 0)
     union
     select k.checkout_id from credits k
     where k.checkout_id = any($1) and k.disposition = 'exact' and k.orphaned_at is not null and k.reversed_at is null
       and (k.nonce is null or exists (select 1 from authorizations a where a.network = k.network and a.asset = k.asset
         and a.payer = k.payer and a.nonce = k.nonce and a.checkout_id = k.checkout_id
         and a.state in ('rejected', 'dead')))
       and not exists (select 1 from credits o where o.payment_id = k.payment_id
         and o.checkout_id = k.checkout_id and o.orphaned_at is null)`,
    [ids],
  )
  const reserved = await tx.query<{ checkout_id: string; read_until: Date }>(
    `select r.checkout_id, min(coalesce(f.head_time, 'epoch')) as read_until
     from reserved_amounts r left join followers f on f.network = r.network
     where r.checkout_id = any($1) group by r.checkout_id`,
    [ids],
  )
  return {
    readUntil: new Map(reserved.map(({ checkout_id, read_until }) => [checkout_id, read_until])),
    unresolved: new Set(unresolved.map(({ checkout_id }) => checkout_id)),
    credits: credits.map((row) => ({
      ...toCreditRow(row),
      isNew: row.is_new,
      isNewlySafe: row.is_newly_safe,
      claimedAt: row.claimed_at,
      isRefunded: row.is_refunded,
      nonce: row.nonce,
      position: row.position,
    })),
  }
}

/** Those of these checkouts that their store has ever canceled, according to their events. */
async function listCanceled(tx: Transaction, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await tx.query<{ checkout_id: string }>(
    "select distinct checkout_id from events where checkout_id = any($1) and type = 'checkout.canceled'",
    [ids],
  )
  return new Set(rows.map(({ checkout_id }) => checkout_id))
}

export async function listProcessing(db: Database, after: string, limit: number): Promise<CheckoutId[]> {
  const rows = await db.query<{ id: CheckoutId }>(
    "select id from checkouts where status = 'PROCESSING' and id > $1 order by id limit $2",
    [after, limit],
  )
  return rows.map(({ id }) => id)
}

/** A credit, and what is new about it since its transaction began. */
type FactCredit = CreditRow & {
  readonly isNew: boolean
  readonly isNewlySafe: boolean
  /** When its authorization was claimed; null if it was not paid through a claim. */
  readonly claimedAt: Date | null
  /** Whether a refund of it counts. */
  readonly isRefunded: boolean
  /** With its transaction, its identity on the chain: its nonce, or null and its position among equal transfers. */
  readonly nonce: string | null
  readonly position: number
}

/** A checkout that was just evaluated: its status before and after, and its credits with the announcement of each. */
type Reported = {
  readonly checkout: Pick<Checkout, 'id' | 'status'>
  readonly status: Checkout['status']
  readonly credits: readonly (FactCredit & {
    readonly disposition: Disposition
    readonly announcement: Announcement['announcement'] | null
  })[]
  /** The credits whose disposition changed. */
  readonly changed: readonly { readonly key: string }[]
}

type Step = 'credited' | 'undecided' | 'safe' | 'confirmed' | 'finalized' | 'reorged' | 'reversed'

const sentences: Readonly<Record<Step, string>> = {
  credited: 'payment credited: it is in a block',
  undecided: 'payment in a block, but it does not pay its checkout; its store decides about it',
  safe: safeSentence,
  confirmed: 'payment confirmed: enough nodes report it, and its checkout completed with that',
  finalized: 'payment finalized, and its checkout completed with that',
  reorged:
    'payment removed by a reorganisation of the chain; it is sent again or found again, or else reversed',
  reversed: 'payment reversed: it left the chain and can never return, so the payer still has the money',
}

/**
 * Reports the steps of payments to the operator after the commit: one log line per step, and the counters. Not every
 * payment takes every step. On chains whose blocks are safe when they are read, `credited` includes `safe`. `finalized`
 * is reported only if a checkout waits for it, and `confirmed` only if too few nodes reported the payment at first, or
 * if its block was replaced for a while.
 */
function report(ctx: Context, tx: Transaction, evaluated: readonly Reported[]): void {
  const told = evaluated.flatMap((one) =>
    one.credits.flatMap((credit) => {
      const step = stepOf(one, credit)
      return step === null ? [] : { one, credit, step }
    }),
  )
  if (told.length > 0)
    tx.afterCommit(() => {
      for (const { one, credit, step } of told) tell(ctx, one, credit, step)
    })
}

function stepOf({ checkout, status, changed }: Reported, credit: Reported['credits'][number]): Step | null {
  const { announcement } = credit
  if (announcement === 'reorged' || announcement === 'reversed')
    return announcement === credit.announced ? null : announcement
  if (credit.isOrphaned) return null
  if (credit.isNew || changed.some(({ key }) => key === credit.key))
    return credit.disposition === 'exact' ? 'credited' : 'undecided'
  if (credit.isNewlySafe) return 'safe'
  if (credit.disposition !== 'exact' || checkout.status === status || status !== 'COMPLETED') return null
  return finalityOf(credit) === 'finalized' ? 'finalized' : 'confirmed'
}

function tell(
  ctx: Context,
  { checkout, status }: Reported,
  credit: Reported['credits'][number],
  step: Step,
): void {
  const network = idOfNetwork(credit.network)
  const { disposition, claimedAt } = credit
  const fields = {
    checkoutId: checkout.id,
    paymentId: credit.paymentId,
    network,
    txHash: credit.transaction,
    block: credit.blockNumber,
    disposition,
    finality: finalityOf(credit),
    status,
  }
  if (step === 'reorged' || step === 'reversed') ctx.log.warn(fields, sentences[step])
  else ctx.log.info(fields, sentences[step])
  if (step === 'safe' || step === 'confirmed' || step === 'finalized') return
  ctx.metrics.payments.inc({ network, outcome: step === 'undecided' ? disposition : step })
  if (step === 'credited' && claimedAt !== null)
    ctx.metrics.paymentSeconds.observe(
      { network },
      Math.max(0, credit.includedAt.getTime() - claimedAt.getTime()) / 1_000,
    )
}
