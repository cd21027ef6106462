import type { Actor, Disposition, EventType } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { Alongside, NumberedEvent } from '../events/assign-sequence.ts'
import { type CheckoutId, type EventId, newId, type RefundId, type StoreId } from '../ids.ts'
import { findQuote, type Quote, rateText } from '../rates/quote.ts'
import { isFull, type Movement, noValue, shareOfPrice, type Value, valueAtRate } from './movement.ts'
import { insertMovements, type MovementRow, movementColumns, type NewMovement, toMovement } from './rows.ts'

/**
 * Books lines from the facts. What an event or a queued item says is only that there may be something to book: a payment
 * is booked if it is final and not booked, and taken back if it is booked and gone for good or another store's. So
 * booking again does nothing. Only decisions follow from their event alone, which is numbered once.
 *
 * The caller holds the counters of the stores' logs, in the transaction that numbers the events. No crash loses or
 * doubles a line.
 */

const decisions: readonly EventType[] = ['payment.accepted', 'payment.dismissed']
const payments: readonly EventType[] = ['payment.finalized', 'payment.reversed']
const refunds: readonly EventType[] = [
  'refund.finalized',
  'refund.declared',
  'refund.reorged',
  'refund.failed',
  'refund.canceled',
]

export function openBooks(ctx: Context): Alongside {
  return {
    types: [...decisions, ...payments, ...refunds],
    run: (tx, events) => book(ctx, tx, events.map(toBookable)),
  }
}

/** Something of which there may be a line to book. */
export type Bookable =
  | { readonly kind: 'payment'; readonly storeId: StoreId; readonly paymentId: string }
  | { readonly kind: 'refund'; readonly storeId: StoreId; readonly refundId: string }
  | {
      readonly kind: 'decision'
      readonly storeId: StoreId
      readonly paymentId: string
      readonly eventId: EventId
    }

function toBookable({ id, storeId, type, paymentId, refundId }: NumberedEvent): Bookable {
  if (refunds.includes(type)) return { kind: 'refund', storeId, refundId: refundId ?? '' }
  return decisions.includes(type)
    ? { kind: 'decision', storeId, paymentId: paymentId ?? '', eventId: id }
    : { kind: 'payment', storeId, paymentId: paymentId ?? '' }
}

/** A line, and its place among the subjects. */
type Placed = { readonly place: number; readonly line: NewMovement }

export async function book(ctx: Context, tx: Transaction, subjects: readonly Bookable[]): Promise<void> {
  const known = new Set<string>()
  // A payment may be told of twice in one run, and its facts are read once.
  const once = subjects.filter((subject) => {
    const key = JSON.stringify(subject)
    return !known.has(key) && known.add(key)
  })
  const quotes = openQuotes(ctx, tx)
  // A refund's value follows from its payment's line, so that comes first.
  const ofPayments = once.filter(({ kind }) => kind !== 'refund').map(toPlaced)
  if (ofPayments.length > 0) {
    const facts = await readPaymentFacts(tx, ofPayments)
    await write(ctx, tx, await Promise.all(facts.map((each) => draftPayment(ctx, each, quotes))))
  }
  const ofRefunds = once.filter(({ kind }) => kind === 'refund').map(toPlaced)
  if (ofRefunds.length > 0) {
    const facts = await readRefundFacts(tx, ofRefunds)
    await write(ctx, tx, await Promise.all(facts.map((each) => draftRefund(ctx, each, quotes))))
  }
}

function toPlaced(subject: Bookable, place: number) {
  return { ...subject, place }
}

async function write(ctx: Context, tx: Transaction, drafts: readonly (Draft | null)[]): Promise<void> {
  const found = drafts.filter((draft) => draft !== null)
  const lines = await withReversed(ctx, tx, found)
  const inOrder = lines.toSorted((a, b) => a.place - b.place).map(({ line }) => line)
  if (inOrder.length > 0) await insertMovements(tx, inOrder)
}

type Draft =
  | Placed
  | {
      readonly place: number
      readonly storeId: StoreId
      readonly reverses: string
      readonly type: 'payment_reversed' | 'payment_ceded' | 'refund_reversed'
      readonly happenedAt: Date
    }

/** The rate of each currency is read once per run, on the transaction's own connection. */
type Quotes = (currency: string) => Promise<Quote | null>

function openQuotes(outer: Context, tx: Transaction): Quotes {
  const ctx: Context = { ...outer, db: { ...outer.db, query: (text, values) => tx.query(text, values) } }
  const read = new Map<string, Promise<Quote | null>>()
  return (currency) => {
    const known = read.get(currency) ?? findQuote(ctx, currency, outer.now())
    read.set(currency, known)
    return known
  }
}

type PricedFacts = {
  readonly orderId: string | null
  readonly priceAmount: string | null
  readonly priceCurrency: string | null
  readonly rate: (Omit<Quote, 'asOf'> & { readonly asOf: string }) | null
}

type PaymentFacts = PricedFacts & {
  readonly place: number
  readonly kind: 'payment' | 'decision'
  readonly storeId: StoreId
  readonly reportCurrency: string
  readonly paymentId: string
  readonly eventType: EventType | null
  readonly decidedAt: Date | null
  readonly actor: Actor | null
  /** The payment as it is on the chain, or as it was there last. */
  readonly credit: {
    readonly network: string
    readonly asset: string
    readonly amount: string
    readonly pay_to: string
    readonly transaction_hash: string
    readonly log_index: number
    readonly block_time: string
    readonly store_id: string | null
    readonly checkout_id: CheckoutId | null
    readonly disposition: Disposition
    readonly accepted_at: string | null
    readonly finalized_at: string | null
    readonly orphaned_at: string | null
  } | null
  /** When the chain had taken it back for good, if it is not on the chain. */
  readonly goneAt: Date | null
  readonly options: Parameters<typeof isFull>[1] | null
  /** The payment's last line, if that is not taken back. */
  readonly booked: string | null
}

async function readPaymentFacts(
  tx: Transaction,
  subjects: readonly (Bookable & { readonly place: number })[],
): Promise<PaymentFacts[]> {
  return await tx.query<PaymentFacts>(
    `select i.place, i.kind, s.id as "storeId", s.report_currency as "reportCurrency", i."paymentId",
       e.type as "eventType", e.created_at as "decidedAt", e.actor,
       to_jsonb(k) || jsonb_build_object('amount', k.amount::text) as credit, g.gone_at as "goneAt",
       c.order_id as "orderId", c.price_amount as "priceAmount", c.price_currency as "priceCurrency", c.rate, c.options,
       case when b.type = 'payment' then b.number::text end as booked
     from json_to_recordset($1) as i (place integer, kind text, "storeId" text, "paymentId" text, "eventId" text)
     join stores s on s.id = i."storeId"
     left join lateral (select * from credits where payment_id = i."paymentId"
       order by orphaned_at desc nulls first limit 1) k on true
     left join lateral (select max(o.reversed_at) as gone_at from credits o where o.payment_id = i."paymentId"
       and k.orphaned_at is not null offset 0) g on true
     left join lateral (select * from events where id = i."eventId" offset 0) e on true
     left join lateral (select * from checkouts where id = k.checkout_id and store_id = i."storeId" offset 0) c on true
     left join lateral (select m.type, m.number from movements m where m.payment_id = i."paymentId"
       and m.store_id = i."storeId" and m.type in ('payment', 'payment_reversed', 'payment_ceded')
       order by m.number desc limit 1) b on true`,
    [JSON.stringify(subjects)],
  )
}

async function draftPayment(ctx: Context, facts: PaymentFacts, quotes: Quotes): Promise<Draft | null> {
  const { place, storeId, booked, goneAt } = facts
  if (facts.kind === 'decision') return draftDecision(ctx, facts)
  const credit = facts.credit?.orphaned_at === null ? facts.credit : null
  const isOthers = credit !== null && credit.checkout_id !== null && credit.store_id !== storeId
  if (booked !== null) {
    if (isOthers && credit.finalized_at !== null) {
      const happenedAt = new Date(credit.accepted_at ?? credit.finalized_at)
      return { place, storeId, reverses: booked, type: 'payment_ceded', happenedAt }
    }
    return credit === null && goneAt !== null
      ? { place, storeId, reverses: booked, type: 'payment_reversed', happenedAt: goneAt }
      : null
  }
  if (credit === null || credit.finalized_at === null || isOthers) return null
  const amount = BigInt(credit.amount)
  const { network, asset } = credit
  const { reportCurrency, priceAmount, priceCurrency, options } = facts
  const isPrice =
    priceAmount !== null &&
    priceCurrency === reportCurrency &&
    credit.disposition === 'exact' &&
    isFull({ network, asset, amount }, options ?? [])
  const value = isPrice
    ? shareOfPrice(priceAmount, 1n, 1n)
    : valueAtRate({ network, asset, amount }, reportCurrency, await quotes(reportCurrency))
  const line = {
    ...partsOf(ctx, facts, 'payment', value),
    happenedAt: new Date(credit.block_time),
    ...{ network, asset, amount, wallet: credit.pay_to, transaction: credit.transaction_hash },
    place: credit.log_index,
    refundId: null,
    checkoutId: credit.checkout_id,
    actor: null,
    disposition: credit.disposition,
  }
  return { place, line }
}

function draftDecision(ctx: Context, facts: PaymentFacts): Placed | null {
  const { place, credit, eventType, decidedAt, actor } = facts
  if (credit === null || decidedAt === null) return null
  const type = eventType === 'payment.accepted' ? 'acceptance' : 'dismissal'
  const line = {
    ...partsOf(ctx, facts, type, noValue),
    happenedAt: decidedAt,
    ...{ network: credit.network, asset: credit.asset, amount: 0n, wallet: null },
    ...{ transaction: credit.transaction_hash, place: credit.log_index },
    refundId: null,
    checkoutId: credit.store_id === facts.storeId ? credit.checkout_id : null,
    actor: actor && { type: actor.type, id: actor.id },
    disposition: credit.disposition,
  }
  return { place, line }
}

/** The parts of a line that lines of every type fill alike. */
function partsOf(
  ctx: Context,
  facts: PricedFacts & Pick<PaymentFacts, 'storeId' | 'paymentId' | 'reportCurrency'>,
  type: Movement['type'],
  value: Value,
) {
  const { storeId, paymentId, orderId, priceAmount, priceCurrency, rate } = facts
  const quote = rate && { ...rate, asOf: new Date(rate.asOf) }
  return {
    id: newId('mov', ctx.config.cell, ctx.now()),
    ...{ storeId, type, paymentId, orderId, priceAmount, priceCurrency },
    rate: quote && rateText(quote),
    rateSource: quote?.source ?? null,
    rateTime: quote?.asOf ?? null,
    reverses: null,
    valueCurrency: facts.reportCurrency,
    ...value,
  }
}

type RefundFacts = PricedFacts & {
  readonly place: number
  readonly storeId: StoreId
  readonly reportCurrency: string
  readonly paymentId: string
  readonly id: RefundId
  readonly checkoutId: CheckoutId | null
  readonly network: string
  readonly asset: string
  readonly amount: string
  readonly wallet: string
  readonly status: string
  readonly isFinal: boolean
  readonly transaction: string | null
  readonly transferPlace: number | null
  readonly happenedAt: Date
  readonly actor: Actor
  /** The refund's last line, if that is not taken back. */
  readonly booked: string | null
  readonly isBooked: boolean
  /** The line of the refunded payment. */
  readonly paid: {
    readonly amount: string
    readonly value: string | null
    readonly source: string | null
  } | null
}

async function readRefundFacts(
  tx: Transaction,
  subjects: readonly (Bookable & { readonly place: number })[],
): Promise<RefundFacts[]> {
  return await tx.query<RefundFacts>(
    `select i.place, s.id as "storeId", s.report_currency as "reportCurrency", r.payment_id as "paymentId", r.id,
       r.checkout_id as "checkoutId", r.network, r.asset, r.amount::text as amount,
       coalesce(r.sent_from, r.wallet) as wallet, r.status, r.finality is not distinct from 'finalized' as "isFinal",
       r.transaction_hash as transaction, coalesce(k.log_index, r.position) as "transferPlace",
       coalesce(k.block_time, r.sent_at, r.completed_at, r.named_at, r.created_at) as "happenedAt",
       case when r.status = 'DECLARED' then coalesce(r.said_by, r.actor) else r.actor end as actor,
       c.order_id as "orderId", c.price_amount as "priceAmount", c.price_currency as "priceCurrency", c.rate,
       case when b.type = 'refund' then b.number::text end as booked,
       coalesce(b.type <> 'refund_reversed', false) as "isBooked",
       case when p.number is not null then json_build_object('amount', p.amount::text, 'value', p.value::text,
         'source', case when p.value_currency = s.report_currency then p.value_rate_source end) end as paid
     from json_to_recordset($1) as i (place integer, "storeId" text, "refundId" text)
     join stores s on s.id = i."storeId"
     cross join lateral (select * from refunds where id = i."refundId" and store_id = i."storeId" offset 0) r
     left join lateral (select * from credits where network = r.network and asset = r.asset and payer = r.wallet
       and nonce = r.nonce and orphaned_at is null limit 1) k on true
     left join lateral (select * from checkouts where id = r.checkout_id offset 0) c on true
     left join lateral (select m.type, m.number from movements m where m.payment_id = r.payment_id
       and m.store_id = r.store_id and m.refund_id = r.id order by m.number desc limit 1) b on true
     left join lateral (select * from movements m where m.payment_id = r.payment_id and m.store_id = r.store_id
       and m.type = 'payment' order by m.number desc limit 1) p on true`,
    [JSON.stringify(subjects)],
  )
}

async function draftRefund(ctx: Context, facts: RefundFacts, quotes: Quotes): Promise<Draft | null> {
  const { place, storeId, status, booked, network, asset, paid } = facts
  const isPaid = status === 'COMPLETED' && facts.isFinal
  if (booked !== null) {
    if (status === 'COMPLETED') return null
    return { place, storeId, reverses: booked, type: 'refund_reversed', happenedAt: ctx.now() }
  }
  const isDeclared = status === 'DECLARED'
  if (facts.isBooked || (!isPaid && !isDeclared)) return null
  const amount = -BigInt(facts.amount)
  // What goes back of a payment that counted as its price is that part of the price.
  const value =
    paid?.source === 'price' && paid.value !== null
      ? shareOfPrice(paid.value, amount, BigInt(paid.amount))
      : valueAtRate({ network, asset, amount }, facts.reportCurrency, await quotes(facts.reportCurrency))
  const line = {
    ...partsOf(ctx, facts, isDeclared ? 'refund_declared' : 'refund', value),
    happenedAt: facts.happenedAt,
    ...{ network, asset, amount, wallet: isDeclared ? null : facts.wallet },
    ...{ transaction: facts.transaction, place: facts.transferPlace },
    refundId: facts.id,
    checkoutId: facts.checkoutId,
    actor: { type: facts.actor.type, id: facts.actor.id },
    disposition: null,
  }
  return { place, line }
}

/** Completes lines that take back others: each is the negative of the line that it names. */
async function withReversed(ctx: Context, tx: Transaction, drafts: readonly Draft[]): Promise<Placed[]> {
  const taken = drafts.filter((draft) => 'reverses' in draft)
  const rows =
    taken.length === 0
      ? []
      : await tx.query<MovementRow>(
          `select ${movementColumns} from unnest($1::text[], $2::bigint[]) as i (store_id, number)
           cross join lateral (select * from movements where store_id = i.store_id and number = i.number offset 0) m`,
          [taken.map(({ storeId }) => storeId), taken.map(({ reverses }) => reverses)],
        )
  const byNumber = new Map(rows.map((row) => [`${row.storeId} ${row.number}`, toMovement(row)]))
  return drafts.flatMap((draft) => {
    if (!('reverses' in draft)) return [draft]
    const before = byNumber.get(`${draft.storeId} ${draft.reverses}`)
    if (!before) return []
    const { number: reverses, bookedAt: _, ...copied } = before
    const line = {
      ...copied,
      id: newId('mov', ctx.config.cell, ctx.now()),
      type: draft.type,
      happenedAt: draft.happenedAt,
      amount: -before.amount,
      value: before.value === null ? null : negated(before.value),
      reverses,
      actor: null,
    }
    return [{ place: draft.place, line }]
  })
}

function negated(decimal: string): string {
  return decimal.startsWith('-') ? decimal.slice(1) : `-${decimal}`
}
