import { holdCheckout, queryBoth } from '../archive/rows.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { RefundId, StoreId } from '../ids.ts'
import type { NewRefund } from './change.ts'
import type { Refund } from './refund.ts'
import { type RefundRow, refundColumns, toRefund } from './rows.ts'

/** What the chain knows of a payment, and what is left of it. */
export type Refundable = {
  readonly nonce: string | null
  readonly position: number
  readonly isFinal: boolean
  /** Whether the store has proven that it holds the key of the wallet that was paid. */
  readonly isProven: boolean
  /** What refunds have taken; null if there has been none. */
  readonly reserved: bigint | null
  /** The store of the refunds that count. */
  readonly ownerId: StoreId | null
}

/** Of a payment that is part of the chain; null if it is not. */
export async function readRefundable(
  tx: Database | Transaction,
  storeId: StoreId,
  paymentId: string,
): Promise<Refundable | null> {
  const [row] = await queryBoth<{
    nonce: string | null
    position: number
    is_final: boolean
    is_proven: boolean
    reserved: string | null
    owner_id: StoreId | null
  }>(
    tx,
    `select k.nonce, k.position, k.finalized_at is not null as is_final, t.reserved,
       case when t.reserved > 0 then t.store_id end as owner_id, exists (select 1 from wallets w
         where w.store_id = $1 and w.pay_to = k.pay_to and w.proven_at is not null) as is_proven
     from credits k left join refund_totals t on t.payment_id = k.payment_id
     where k.payment_id = $2 and k.orphaned_at is null`,
    [storeId, paymentId],
  )
  if (!row) return null
  return {
    nonce: row.nonce,
    position: row.position,
    isFinal: row.is_final,
    isProven: row.is_proven,
    reserved: row.reserved === null ? null : BigInt(row.reserved),
    ownerId: row.owner_id,
  }
}

/** What refunds have taken of a payment, by what the chain knows it by; null if there has been none. */
export async function readTotal(
  tx: Transaction,
  { network, asset, identity }: Pick<NewRefund, 'network' | 'asset' | 'identity'>,
): Promise<{ readonly storeId: StoreId; readonly reserved: bigint } | null> {
  const [row] = await tx.query<{ store_id: StoreId; reserved: string }>(
    'select store_id, reserved from refund_totals where network = $1 and asset = $2 and identity = $3',
    [network, asset, identity],
  )
  return row ? { storeId: row.store_id, reserved: BigInt(row.reserved) } : null
}

/** How many refunds a payment has had. Counted up to `max`. */
export async function countRefundsOf(tx: Transaction, paymentId: string, max: number): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    'select count(*)::integer as count from (select 1 from refunds where payment_id = $1 limit $2) r',
    [paymentId, max],
  )
  return row?.count ?? 0
}

/** Holds up whoever evaluates the checkout meanwhile: a payment that is being refunded does not become exact. */
export async function lockCheckoutOf(tx: Transaction, checkoutId: string): Promise<void> {
  await holdCheckout(tx, checkoutId)
}

/** Transfers that refunds of the payment made and that no refund accounts for: a restored database has forgotten them. */
export async function findForgotten(
  tx: Database | Transaction,
  { network, asset, wallet }: { network: string; asset: string; wallet: string },
  nonces: readonly string[],
): Promise<
  { slot: number; nonce: string; recipient: string; amount: bigint; transaction: string; at: Date }[]
> {
  const rows = await tx.query<{
    slot: number
    nonce: string
    recipient: string
    amount: string
    transaction: string
    at: Date
  }>(
    `select i.slot::integer - 1 as slot, k.nonce, k.pay_to as recipient, k.amount, k.transaction_hash as transaction,
       k.included_at as at
     from unnest($4::text[]) with ordinality as i (nonce, slot)
     cross join lateral (select * from credits k where k.nonce = i.nonce and k.payer = $3 and k.asset = $2
       and k.network = $1 and k.orphaned_at is null offset 0) k
     where not exists (select 1 from refunds r where r.nonce = i.nonce and r.ended_at is null
       and r.recipient = k.pay_to and r.amount = k.amount)
     order by i.slot`,
    [network, asset, wallet, nonces],
  )
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }))
}

/** Locks a refund of the same amount for the same recipient for which nothing was handed out; null if there is none. */
export async function lockUnprepared(
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

/**
 * Gives a refund that was found on the chain, and that nobody has asked for since, to a key that asks for the same: the
 * key was forgotten with it. Returns its id; null if there is none.
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

/** The payments with a slot whose nonce has moved money on the chain. */
export async function findReturned(
  db: Database | Transaction,
  slots: readonly { paymentId: string; network: string; asset: string; wallet: string; nonce: string }[],
): Promise<string[]> {
  const rows = await db.query<{ payment_id: string }>(
    `select distinct i."paymentId" as payment_id
     from json_to_recordset($1) as i ("paymentId" text, network text, asset text, wallet text, nonce text)
     cross join lateral (select 1 from credits k where k.nonce = i.nonce and k.payer = i.wallet and k.asset = i.asset
       and k.network = i.network and k.orphaned_at is null offset 0) k`,
    [JSON.stringify(slots)],
  )
  return rows.map(({ payment_id }) => payment_id)
}
