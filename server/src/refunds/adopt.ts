import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { systemActor } from '../events/actor.ts'
import { newId, type RefundId } from '../ids.ts'
import { ownRecovered } from '../payments/hand-outs.ts'
import { addRefund, changeRefund, explainUnwritten, type NewRefund, type RefundBase } from './change.ts'
import { identityOf, noncesOf, type Refund } from './refund.ts'
import { findForgotten, type RefundRow, refundColumns, toRefund } from './rows.ts'

/**
 * Records refunds that the chain shows and a restored database has forgotten. A refund that still waits with the same
 * terms has lost only its preparation; otherwise one is added. Returns how much the added ones take of the payment.
 */
export async function adoptForgotten(
  ctx: Context,
  tx: Transaction,
  base: RefundBase,
  now: Date,
): Promise<bigint> {
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
export async function takeFound(
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
  // Those with a slot whose nonce has moved money on the chain.
  const rows = await db.query<{ paymentId: string }>(
    `select distinct i."paymentId"
     from json_to_recordset($1) as i ("paymentId" text, network text, asset text, wallet text, nonce text)
     cross join lateral (select 1 from credits k where k.nonce = i.nonce and k.payer = i.wallet and k.asset = i.asset
       and k.network = i.network and k.orphaned_at is null offset 0) k`,
    [JSON.stringify(slots)],
  )
  return new Set(rows.map(({ paymentId }) => paymentId))
}
