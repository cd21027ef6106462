import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import type { AddressRequest } from './address-requests/address-request.ts'
import type { Refund } from './refund.ts'

type AddressRequestJson = {
  expiresAt: string
  isExpired: boolean
  address: string | null
  code: string | null
  browserHash: string | null
  isConfirmed: boolean
}

export type RefundRow = Omit<Refund, 'amount' | 'addressRequest'> & {
  amount: string
  addressRequest: AddressRequestJson | null
}

export function toRefund({ amount, addressRequest, ...row }: RefundRow): Refund {
  return {
    ...row,
    amount: BigInt(amount),
    addressRequest: addressRequest && toAddressRequest(addressRequest),
  }
}

function toAddressRequest({ address, code, browserHash, ...row }: AddressRequestJson): AddressRequest {
  const isNamed = address !== null && code !== null && browserHash !== null
  return {
    expiresAt: new Date(row.expiresAt),
    isExpired: row.isExpired,
    named: isNamed ? { address, code, browserHash: Buffer.from(browserHash, 'hex') } : null,
    isConfirmed: row.isConfirmed,
  }
}

/** SQL: the columns of a row `r` that `toRefund` reads. */
export const refundColumns = `r.id, r.store_id as "storeId", r.payment_id as "paymentId", r.checkout_id as "checkoutId",
  (select c.order_id from checkouts c where c.id = r.checkout_id) as "orderId", r.network, r.asset, r.identity, r.wallet,
  r.amount::text as amount, r.recipient, r.way, r.reason, r.status, r.version, r.actor, r.created_at as "createdAt",
  r.slot, r.nonce, r.signed_at as "signedAt", r.cancel_asked_at as "cancelAskedAt", r.transaction_hash as transaction,
  r.position, r.finality, r.declared, r.failure, r.completed_at as "completedAt", r.ended_at as "endedAt",
  r.is_watched as "isWatched",
  (select json_build_object('expiresAt', m.expires_at, 'isExpired', m.expires_at <= clock(), 'address', m.address,
     'code', m.code, 'browserHash', encode(m.browser_hash, 'hex'), 'isConfirmed', m.confirmed_at is not null)
   from address_requests m where m.refund_id = r.id) as "addressRequest"`

/** A store's refund; null if it has none with this id. */
export async function findRefund(
  db: Database | Transaction,
  storeId: StoreId,
  id: string,
): Promise<Refund | null> {
  const [row] = await db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.id = $2 and r.store_id = $1`,
    [storeId, id],
  )
  return row ? toRefund(row) : null
}

/** Locks a refund. Every transaction that changes a refund does this first. */
export async function lockRefund(tx: Transaction, storeId: StoreId, id: string): Promise<Refund | null> {
  const [row] = await tx.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.id = $2 and r.store_id = $1 for no key update of r`,
    [storeId, id],
  )
  return row ? toRefund(row) : null
}

/** The refunds of these checkouts' payments, oldest first. */
export async function listByCheckouts(
  db: Database | Transaction,
  checkoutIds: readonly string[],
): Promise<Refund[]> {
  const rows = await db.query<RefundRow>(
    `select ${refundColumns} from refunds r where r.checkout_id = any($1) order by r.id`,
    [checkoutIds],
  )
  return rows.map(toRefund)
}

/**
 * Serialises refunds and acceptances of one payment. The order of locks is: the payment's chain, this one, the payment's
 * checkout. The checkout comes last because the payment may move to another checkout until this lock is held.
 */
export async function lockRefundsOf(tx: Transaction, paymentId: string): Promise<void> {
  await tx.query("select pg_advisory_xact_lock(hashtextextended('refunds of ' || $1, 0))", [paymentId])
}

/** Whether a refund of the payment counts. */
export async function isRefunded(tx: Transaction, paymentId: string): Promise<boolean> {
  const rows = await tx.query('select 1 as one from refund_totals where payment_id = $1 and reserved > 0', [
    paymentId,
  ])
  return rows.length > 0
}

/** How much of a payment was returned, and how much is left; null if the store has not refunded it. */
export async function readLeft(
  db: Database,
  storeId: StoreId,
  paymentId: string,
): Promise<{ readonly refundedAmount: string; readonly refundable: string } | null> {
  const [row] = await db.query<{ returned: string; left: string }>(
    `select (t.amount - t.reserved)::text as left, (select coalesce(sum(r.amount), 0)::text from refunds r
       where r.payment_id = t.payment_id and r.store_id = t.store_id and r.status = 'COMPLETED') as returned
     from refund_totals t where t.payment_id = $2 and t.store_id = $1`,
    [storeId, paymentId],
  )
  return row ? { refundedAmount: row.returned, refundable: row.left } : null
}

/** How much of each payment was returned or declared as returned, in the smallest unit of its asset. */
export async function sumReturned(
  db: Database,
  storeId: StoreId,
  paymentIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.query<{ payment_id: string; units: string }>(
    `select r.payment_id, sum(r.amount)::text as units from refunds r
     where r.payment_id = any($2) and r.store_id = $1 and r.status in ('COMPLETED', 'DECLARED') group by r.payment_id`,
    [storeId, paymentIds],
  )
  return new Map(rows.map(({ payment_id, units }) => [payment_id, BigInt(units)]))
}

/** A payment's identity on the chain, and how much of it refunds have taken. */
export type Refundable = {
  readonly nonce: string | null
  readonly position: number
  readonly isFinal: boolean
  /** Whether the store has proven that it holds the key of the wallet that received the payment. */
  readonly isProven: boolean
  /** How much refunds have taken; null if there has been none. */
  readonly reserved: bigint | null
  /** The store whose refunds count; null if none do. */
  readonly ownerId: StoreId | null
}

/** Null if the payment is not part of the chain. */
export async function readRefundable(
  tx: Database | Transaction,
  storeId: StoreId,
  paymentId: string,
): Promise<Refundable | null> {
  const [row] = await tx.query<Omit<Refundable, 'reserved'> & { reserved: string | null }>(
    `select k.nonce, k.position, k.finalized_at is not null as "isFinal", t.reserved::text as reserved,
       case when t.reserved > 0 then t.store_id end as "ownerId", exists (select 1 from wallets w
         where w.store_id = $1 and w.pay_to = k.pay_to and w.proven_at is not null) as "isProven"
     from credits k left join refund_totals t on t.payment_id = k.payment_id
     where k.payment_id = $2 and k.orphaned_at is null`,
    [storeId, paymentId],
  )
  return row ? { ...row, reserved: row.reserved === null ? null : BigInt(row.reserved) } : null
}

/** A transfer by one of a payment's refund nonces. */
type Forgotten = {
  readonly slot: number
  readonly nonce: string
  readonly recipient: string
  readonly amount: bigint
  readonly transaction: string
  readonly at: Date
}

/**
 * Finds transfers by a payment's refund nonces that no refund accounts for, because a restored database has forgotten the
 * refund.
 */
export async function findForgotten(
  tx: Database | Transaction,
  { network, asset, wallet }: { network: string; asset: string; wallet: string },
  nonces: readonly string[],
): Promise<Forgotten[]> {
  const rows = await tx.query<Omit<Forgotten, 'amount'> & { amount: string }>(
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
