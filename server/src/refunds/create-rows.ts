import type { Actor, RefundWay } from '@farthing/sdk'
import { holdCheckout, queryBoth } from '../archive/rows.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { RefundId, StoreId } from '../ids.ts'

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

/**
 * Records that a refund which nothing was handed out for, as far as the database knows, is the one that the chain shows:
 * the same amount for the same recipient. False if there is none.
 */
export async function noteLanded(
  tx: Transaction,
  { paymentId, amount, recipient }: Pick<NewRefund, 'paymentId' | 'amount' | 'recipient'>,
  { slot, nonce, transaction, at }: NonNullable<NewRefund['found']>,
): Promise<boolean> {
  const rows = await tx.query(
    `update refunds set slot = $4, nonce = $5, transaction_hash = $6, signed_at = $7, status = 'SENT',
       version = version + 1, is_watched = true
     where id = (
       select id from refunds where payment_id = $1 and amount = $2::numeric and recipient = $3 and way = 'signed'
         and status = 'REQUESTED' and nonce is null
       order by id limit 1 for update)
     returning id`,
    [paymentId, amount.toString(), recipient, slot, nonce, transaction, at],
  )
  return rows.length > 0
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

/** A refund about to be written. Addresses are in stored form. */
export type NewRefund = {
  readonly id: RefundId
  readonly storeId: StoreId
  readonly paymentId: string
  readonly checkoutId: string | null
  readonly network: string
  readonly asset: string
  readonly identity: string
  readonly wallet: string
  /** The payment's own amount. */
  readonly received: bigint
  readonly amount: bigint
  readonly recipient: string | null
  readonly way: RefundWay
  readonly reason: string | null
  readonly actor: Actor
  readonly idempotency: { readonly key: string; readonly bodyHash: string } | null
  readonly now: Date
  /** A refund that the chain shows and the database has forgotten. */
  readonly found: {
    readonly slot: number
    readonly nonce: string
    readonly transaction: string
    readonly at: Date
  } | null
}

/**
 * Raises the payment's total and writes the refund, in one statement: two at once cannot take more than the payment, and
 * the row's own constraint says so too. One that was found on the chain is SENT until `work` confirms it. False if less
 * than that is left, or another store refunds the payment.
 */
export async function insertRefund(tx: Transaction, refund: NewRefund): Promise<boolean> {
  const rows = await tx.query(
    `with raised as (
       insert into refund_totals as t (network, asset, identity, payment_id, store_id, amount, reserved)
       select $1, $2, $3, $4, $5, $6::numeric, $7::numeric where $7::numeric <= $6::numeric
       on conflict (network, asset, identity) do update set reserved = t.reserved + excluded.reserved,
         payment_id = excluded.payment_id, store_id = excluded.store_id
         where (t.store_id = excluded.store_id or t.reserved = 0) and t.reserved + excluded.reserved <= t.amount
       returning t.network
     )
     insert into refunds (id, store_id, payment_id, checkout_id, network, asset, identity, wallet, amount, recipient, way,
       reason, status, version, actor, idempotency_key, body_hash, created_at, slot, nonce, signed_at, transaction_hash,
       is_watched)
     select $8, $5, $4, $9, $1, $2, $3, $10, $7::numeric, $11, $12, $13,
       case when $18::text is null then 'REQUESTED' else 'SENT' end, 1, $14, $15, $16, $17, $19, $18, $21, $20,
       $18::text is not null
     from raised returning id`,
    [
      refund.network,
      refund.asset,
      refund.identity,
      refund.paymentId,
      refund.storeId,
      refund.received.toString(),
      refund.amount.toString(),
      refund.id,
      refund.checkoutId,
      refund.wallet,
      refund.recipient,
      refund.way,
      refund.reason,
      JSON.stringify(refund.actor),
      refund.idempotency?.key ?? null,
      refund.idempotency?.bodyHash ?? null,
      refund.now,
      refund.found?.nonce ?? null,
      refund.found?.slot ?? null,
      refund.found?.transaction ?? null,
      refund.found?.at ?? null,
    ],
  )
  return rows.length > 0
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
