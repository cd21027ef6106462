import type { Actor, RefundWay, Refund as Wire } from '@farthing/sdk'
import { decimalsOf, isErased, toShown, toStored } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { systemActor } from '../events/append.ts'
import { firstIdAt, isId, newId, type RefundId, type StoreId } from '../ids.ts'
import { parseDecimal, unitsToText } from '../money.ts'
import { networks } from '../networks.ts'
import { finalityOf } from '../payments/credits/credit.ts'
import { holdCheckout } from '../payments/credits/decide.ts'
import { readPayment, type StorePayment } from '../payments/credits/store-payments.ts'
import { ownRecovered } from '../payments/hand-outs.ts'
import { invalid, Problem } from '../problems.ts'
import { checkText } from '../stores/check-text.ts'
import {
  addRefund,
  changeRefund,
  exceeds,
  explainUnwritten,
  type NewRefund,
  type RefundBase,
  refundedElsewhere,
} from './change.ts'
import { requireRecipient } from './recipient.ts'
import { identityOf, noncesOf, type Refund, reasonBytesMax, refundsPerPaymentMax, toWire } from './refund.ts'
import {
  findForgotten,
  findRefund,
  lockRefundsOf,
  type Refundable,
  type RefundRow,
  readRefundable,
  refundColumns,
  toRefund,
} from './rows.ts'

export type AskedRefund = {
  readonly paymentId: string
  /** In the asset's smallest unit; null for all that is left. */
  readonly amount: bigint | null
  /** As it was typed; null for the payer who signed. */
  readonly recipient: string | null
  readonly reason: string | null
  readonly way: RefundWay
  readonly idempotency: { readonly key: string; readonly bodyHash: string } | null
}

/** Who asks for a refund, and whether they may choose its recipient. */
type Requester = {
  readonly actor: Actor
  /** An API key may not: a thief could use it to send money to an address of their own. */
  readonly mayChooseRecipient: boolean
}

/** The longest that any chain has needed to make a payment final. */
const finalSeconds = 20 * 60

/**
 * Creates a refund and reserves its amount of the payment. No money can move until the wallet signs what `prepare` hands
 * out. The same Idempotency-Key returns the same refund.
 */
export async function createRefund(
  ctx: Context,
  storeId: StoreId,
  requester: Requester,
  asked: AskedRefund,
  now: Date,
): Promise<Wire> {
  const known = await findReplayed(ctx.db, storeId, asked)
  if (known) return toWire(known)
  const recipient = await chooseRecipient(ctx, storeId, requester, asked)
  return await createRefundTo(ctx, storeId, asked, { actor: requester.actor, recipient }, now)
}

/** Creates a refund whose recipient was chosen before. Asks no nodes, so a transaction that holds locks may call it. */
export async function createRefundTo(
  ctx: Context,
  storeId: StoreId,
  asked: AskedRefund,
  { actor, recipient }: Pick<NewRefund, 'actor' | 'recipient'>,
  now: Date,
): Promise<Wire> {
  const mistakes = asked.reason === null ? [] : checkText('/reason', asked.reason, reasonBytesMax)
  if (mistakes.length > 0) throw invalid(...mistakes)
  const refund = await ctx.db.transaction(async (tx) => {
    if (asked.idempotency) await lockIdempotencyKey(tx, storeId, asked.idempotency.key)
    const replayed = await findReplayed(tx, storeId, asked)
    if (replayed) return replayed
    await lockRefundsOf(tx, asked.paymentId)
    const payment = await readKnown(tx, storeId, asked.paymentId)
    // Keeps the checkout from being evaluated until we commit: a payment that is being refunded must not become exact.
    if (payment.checkoutId !== null) await holdCheckout(tx, payment.checkoutId)
    return await create(ctx, tx, payment, { ...asked, storeId, actor, recipient }, now)
  })
  return toWire(refund)
}

/**
 * Chooses the recipient, in stored form: the payer who signed, unless a member names another. Null for a plain transfer
 * without a named recipient. Asks nodes whether the recipient can be paid.
 */
export async function chooseRecipient(
  ctx: Context,
  storeId: StoreId,
  { mayChooseRecipient }: Pick<Requester, 'mayChooseRecipient'>,
  asked: Pick<AskedRefund, 'paymentId' | 'recipient'>,
): Promise<string | null> {
  const payment = await readKnown(ctx.db, storeId, asked.paymentId)
  const known = await readRefundable(ctx.db, storeId, payment.paymentId)
  const { network, payer } = payment
  const signer = known?.nonce ? payer : null
  const wanted = asked.recipient ?? signer
  if (wanted === null) return null
  if (toStored(network, wanted.trim()) !== signer && !mayChooseRecipient)
    throw new Problem('recipient_needs_member', 'The recipient is not the wallet that signed the payment.')
  return await requireRecipient(ctx, storeId, payment, wanted)
}

async function findReplayed(
  tx: Database | Transaction,
  storeId: StoreId,
  { idempotency, paymentId }: AskedRefund,
): Promise<Refund | null> {
  if (!idempotency) return null
  const [row] = await tx.query<RefundRow & { bodyHash: string }>(
    `select ${refundColumns}, r.body_hash as "bodyHash" from refunds r
     where r.store_id = $1 and r.idempotency_key = $2`,
    [storeId, idempotency.key],
  )
  if (!row) return null
  const { bodyHash, ...known } = row
  if (bodyHash !== idempotency.bodyHash || known.paymentId !== paymentId)
    throw new Problem('idempotency_key_reused', 'The Idempotency-Key belongs to another refund.')
  return toRefund(known)
}

async function readKnown(
  tx: Database | Transaction,
  storeId: StoreId,
  paymentId: string,
): Promise<StorePayment> {
  const payment = isId('pay', paymentId) ? await readPayment(tx, storeId, paymentId) : null
  if (!payment) throw new Problem('not_found', 'No such payment.')
  // Refunds of a payment are counted by its payer's address.
  if (isErased(payment.payer))
    throw new Problem('payment_not_open', 'The payer’s data was erased, so it cannot be refunded.')
  return payment
}

async function create(
  ctx: Context,
  tx: Transaction,
  payment: StorePayment,
  asked: AskedRefund & Pick<NewRefund, 'storeId' | 'actor' | 'recipient'>,
  now: Date,
): Promise<Refund> {
  const { storeId, actor, recipient, way, reason, idempotency } = asked
  const { network, asset } = payment
  const known = await requireRefundable(tx, storeId, payment)
  const base: RefundBase = {
    storeId,
    paymentId: payment.paymentId,
    checkoutId: payment.checkoutId,
    network,
    asset,
    identity: identityOf({ ...payment, nonce: known.nonce, position: known.position }),
    wallet: payment.payTo,
    received: payment.amount,
  }
  const adopted = await adoptForgotten(ctx, tx, base, now)
  const foundId =
    idempotency && asked.amount !== null
      ? await takeFound(tx, { ...base, amount: asked.amount, recipient }, idempotency)
      : null
  const paidBefore = foundId && (await findRefund(tx, storeId, foundId))
  if (paidBefore) return paidBefore
  const left = payment.amount - (known.reserved ?? 0n) - adopted
  const amount = asked.amount ?? left
  checkAmount(network, asset, amount, left)
  const earlier = await tx.query('select 1 as one from refunds where payment_id = $1 limit $2', [
    payment.paymentId,
    refundsPerPaymentMax,
  ])
  if (earlier.length === refundsPerPaymentMax)
    throw new Problem(
      'payment_not_open',
      `The payment has had ${refundsPerPaymentMax} refunds, canceled ones included, and cannot have more.`,
    )
  const id = newId('rf', ctx.config.cell, now)
  const added = { ...base, id, amount, recipient, way, reason, actor, idempotency, now }
  const refund = await addRefund(ctx, tx, added, 'refund.requested')
  if (!refund) throw await explainUnwritten(tx, base)
  return refund
}

/** Throws a Problem unless the store may refund the payment now. */
async function requireRefundable(
  tx: Transaction,
  storeId: StoreId,
  payment: StorePayment,
): Promise<Refundable> {
  const { network, payTo } = payment
  const known = payment.isReversed ? null : await readRefundable(tx, storeId, payment.paymentId)
  if (!known) throw new Problem('payment_not_open', 'The chain took the payment back.')
  if (!known.isProven)
    throw new Problem('wallet_unproven', `Prove that ${toShown(network, payTo)} is the store’s wallet first.`)
  if (!payment.mayDecide)
    throw new Problem(
      'wallet_unproven',
      `${toShown(network, payTo)} was released to other cells before the money came.`,
    )
  if (finalityOf(payment) !== 'finalized') {
    const expectedAt = expectedFinalAt(payment)
    throw new Problem(
      'payment_not_final',
      `Expected to be final by ${expectedAt.toISOString()}, usually sooner.`,
      {
        retryAfterSeconds: 60,
        members: { expectedAt: expectedAt.toISOString() },
      },
    )
  }
  if (known.ownerId !== null && known.ownerId !== storeId) throw refundedElsewhere()
  return known
}

/** When a payment is final at the latest, if the chain runs normally. */
export function expectedFinalAt({ includedAt }: Pick<StorePayment, 'includedAt'>): Date {
  return new Date(includedAt.getTime() + finalSeconds * 1_000)
}

function checkAmount(network: string, asset: string, amount: bigint, left: bigint): void {
  const known = networks.find(({ caip2 }) => caip2 === network)
  const decimals = decimalsOf(network, asset)
  const unitsMin = BigInt(known?.refundCentsMin ?? 1) * 10n ** BigInt(decimals - 2)
  if (left <= 0n || amount > left) throw exceeds(network, asset, left)
  if (amount < unitsMin) {
    throw invalid({
      pointer: '/amount',
      code: 'too_small',
      detail: `Must be at least ${unitsToText(unitsMin, decimals)}.`,
    })
  }
}

/** Serialises requests with the same key, so that later ones find the refund of the first. */
async function lockIdempotencyKey(tx: Transaction, storeId: StoreId, key: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('refund ' || $1 || ' ' || $2, 0))", [
    storeId,
    key,
  ])
}

/** The last 24 hours. With calendar days, a manager could refund twice the limit around midnight. */
const dayMs = 24 * 3_600_000
/** No token has more, so sums of different tokens are exact. */
const decimalsMax = 18

/**
 * Whether a member has refunded more than `limit` whole tokens within a day. The transaction that creates a refund asks
 * this after creating it, and rolls back if so.
 */
export async function isAboveLimit(
  ctx: Context,
  storeId: StoreId,
  actorId: string,
  limit: string,
  now: Date,
): Promise<boolean> {
  const since = firstIdAt('rf', ctx.config.cell, new Date(now.getTime() - dayMs))
  const sums = await ctx.db.query<{ network: string; asset: string; units: string }>(
    `select r.network, r.asset, sum(r.amount)::text as units from refunds r
     where r.store_id = $1 and r.id >= $3 and r.actor ->> 'id' = $2 and r.status not in ('FAILED', 'CANCELED')
     group by r.network, r.asset`,
    [storeId, actorId, since],
  )
  const refunded = sums.reduce(
    (sum, { network, asset, units }) =>
      sum + BigInt(units) * 10n ** BigInt(decimalsMax - decimalsOf(network, asset)),
    0n,
  )
  const { coefficient, scale } = parseDecimal(limit)
  return refunded > coefficient * 10n ** BigInt(decimalsMax - scale)
}

/**
 * Records refunds that the chain shows and a restored database has forgotten. If a refund with the same terms still waits,
 * only its preparation was lost, and it is used. Otherwise a refund is added. Returns how much of the payment the added
 * refunds take.
 */
async function adoptForgotten(ctx: Context, tx: Transaction, base: RefundBase, now: Date): Promise<bigint> {
  const forgotten = await findForgotten(tx, base, noncesOf(base.network, base.asset, base.identity))
  let sum = 0n
  for (const { recipient, amount, slot, nonce, transaction, at } of forgotten) {
    const terms = { ...base, amount, recipient }
    const waiting = await lockUnprepared(tx, terms)
    const refund = waiting ?? (await addForgotten(ctx, tx, terms, now))
    await ownRecovered(tx, base, refund.id, nonce)
    const facts = { handOut: { slot, nonce }, signedAt: at }
    await changeRefund(ctx, tx, refund, facts, { actor: null, now })
    if (waiting) continue
    sum += amount
    ctx.log.warn(
      { refundId: refund.id, paymentId: base.paymentId, txHash: transaction },
      'refund found on the chain that the database had forgotten; it counts',
    )
  }
  return sum
}

async function addForgotten(
  ctx: Context,
  tx: Transaction,
  terms: RefundBase & Pick<NewRefund, 'amount' | 'recipient'>,
  now: Date,
): Promise<Refund> {
  const id = newId('rf', ctx.config.cell, now)
  const rest = { way: 'signed', reason: null, actor: systemActor, idempotency: null, now } as const
  const refund = await addRefund(ctx, tx, { ...terms, id, ...rest }, null)
  if (!refund) throw await explainUnwritten(tx, terms)
  return refund
}

/**
 * Gives an adopted refund to an idempotency key that asks for the same terms, because the database has forgotten the key
 * together with the refund. Returns its id; null if there is no such refund.
 */
async function takeFound(
  tx: Transaction,
  { paymentId, amount, recipient }: Pick<NewRefund, 'paymentId' | 'amount' | 'recipient'>,
  { key, bodyHash }: { readonly key: string; readonly bodyHash: string },
): Promise<RefundId | null> {
  const [row] = await tx.query<{ id: RefundId }>(
    `update refunds set idempotency_key = $4, body_hash = $5 where id = (
       select id from refunds where payment_id = $1 and amount = $2::numeric and recipient = $3
         and idempotency_key is null and actor ->> 'type' = 'system' and ended_at is null
       order by id limit 1 for update)
     returning id`,
    [paymentId, amount.toString(), recipient, key, bodyHash],
  )
  return row?.id ?? null
}

/** Locks a refund with these terms for which nothing was handed out; null if there is none. */
async function lockUnprepared(
  tx: Transaction,
  { paymentId, amount, recipient }: Pick<NewRefund, 'paymentId' | 'amount' | 'recipient'>,
): Promise<Refund | null> {
  const [row] = await tx.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.payment_id = $1 and r.amount = $2::numeric and r.recipient = $3
       and r.way = 'signed' and r.status = 'REQUESTED' and r.nonce is null
     order by r.id limit 1 for no key update of r`,
    [paymentId, amount.toString(), recipient],
  )
  return row ? toRefund(row) : null
}

/** A payment with the facts that identify it on the chain. */
type OnChainPayment = Parameters<typeof identityOf>[0] & {
  readonly paymentId: string
  readonly network: string
  readonly asset: string
}

/**
 * The payments of which the chain shows a refund, even if `refund_totals` has none. A restored database has forgotten
 * refunds, and adopts them only when another refund of the same payment is created.
 */
export async function readReturned(
  db: Database | Transaction,
  payments: readonly OnChainPayment[],
): Promise<ReadonlySet<string>> {
  if (payments.length === 0) return new Set()
  const slots = payments.flatMap((payment) =>
    noncesOf(payment.network, payment.asset, identityOf(payment)).map((nonce) => ({
      paymentId: payment.paymentId,
      network: payment.network,
      asset: payment.asset,
      wallet: payment.payTo,
      nonce,
    })),
  )
  // Selects the payments with a slot whose nonce has moved money on the chain.
  const rows = await db.query<{ paymentId: string }>(
    `select distinct i."paymentId"
     from json_to_recordset($1) as i ("paymentId" text, network text, asset text, wallet text, nonce text)
     cross join lateral (select 1 from credits k where k.nonce = i.nonce and k.payer = i.wallet and k.asset = i.asset
       and k.network = i.network and k.orphaned_at is null offset 0) k`,
    [JSON.stringify(slots)],
  )
  return new Set(rows.map(({ paymentId }) => paymentId))
}
