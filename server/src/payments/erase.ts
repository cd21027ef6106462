import type { Database, Transaction } from '../database/db.ts'
import { erasedPosition } from './credits/rows.ts'

/** Erases what is known about a payer. Addresses are in stored form. */

type Reader = Database | Transaction

/** SQL: the checkouts for which an address has paid, signed, or sent the transaction. */
const paidBy = `(select a.checkout_id from authorizations a where a.payer = $1 and a.checkout_id is not null
  union select k.checkout_id from stores s join credits k on k.store_id = s.id and k.payer = $1 and k.checkout_id is not null
  union select k.checkout_id from credits k where k.sender = $1 and k.checkout_id is not null)`
const isRefunded = 'exists (select 1 from refunds r where r.checkout_id = p.checkout_id)'
/** The store may still accept or refund it. */
const isUndecided = `exists (select 1 from credits k where k.checkout_id = p.checkout_id and k.orphaned_at is null
  and k.disposition <> 'exact' and k.accepted_at is null and k.dismissed_at is null)`

/** Checkouts without a refund: the record of a refund needs its recipient. */
export async function listErasable(db: Database, payer: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ checkout_id: string }>(
    `select p.checkout_id from ${paidBy} p where not ${isRefunded} and not ${isUndecided} order by 1 limit $2`,
    [payer, limit],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}

/** Rows that still name a payer. */
export type Left = {
  /** Checkouts with a refund. */
  readonly refunded: number
  /** Checkouts with a payment that its store has not decided about. */
  readonly undecided: number
  /** Payments without a checkout. */
  readonly unmatched: number
}

export async function countLeft(db: Database, payer: string): Promise<Left> {
  const [row] = await db.query<Left>(
    `select (select count(*)::integer from ${paidBy} p where ${isRefunded}) as refunded,
       (select count(*)::integer from ${paidBy} p where not ${isRefunded} and ${isUndecided}) as undecided,
       (select count(distinct k.payment_id)::integer from credits k where k.checkout_id is null
         and (k.payer = $1 or k.sender = $1)) as unmatched`,
    [payer],
  )
  return row ?? { refunded: 0, undecided: 0, unmatched: 0 }
}

/**
 * How many signatures, payments and refunds of a payer can still move money, in these checkouts or in all: signatures
 * that have neither paid nor died, payments that are not final or may return, refunds that have not ended for good. The
 * life of a signature on Solana is counted in blocks, so each is given an hour.
 */
export async function countMoving(
  db: Reader,
  payer: string,
  checkoutIds: readonly string[] | null,
): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select (select count(*)::integer from authorizations a where a.payer = $1 and not a.is_credited
         and ($2::text[] is null or a.checkout_id = any($2)) and (a.state in ('prepared', 'claimed', 'sent')
           or a.valid_before >= extract(epoch from clock()) or a.claimed_at > clock() - interval '1 hour'))
       + (select count(*)::integer from ${paidBy} p join credits k on k.checkout_id = p.checkout_id
         where ($2::text[] is null or k.checkout_id = any($2)) and (k.payer = $1 or k.sender = $1)
           and case when k.orphaned_at is null then k.finalized_at is null or k.witnessed_at is null
             else k.reversed_at is null and not exists (select 1 from credits o where o.payment_id = k.payment_id
               and o.orphaned_at is null) end)
       + (select count(*)::integer from refunds r where ($2::text[] is null or r.checkout_id = any($2))
         and (r.is_watched or r.status in ('REQUESTED', 'SIGNED', 'SENT')
           or (r.status = 'COMPLETED' and r.finality is distinct from 'finalized'))
         and (r.recipient = $1 or r.payment_id in (select k.payment_id from credits k where k.payment_id = r.payment_id
           and k.payer = $1))) as count`,
    [payer, checkoutIds],
  )
  return row?.count ?? 0
}

/** SQL: the nonce of an erased payer's signature in the row `of`. Another payer of the same nonce may be erased too. */
const erasedNonce = (of: string) =>
  `'0x' || encode(sha256(convert_to(${of}.checkout_id || ${of}.nonce, 'UTF8')), 'hex')`

/** A payment, and the period in which it was announced as money without a checkout. */
export type ErasedPayment = { readonly id: string; readonly seenAt: Date; readonly acceptedAt: Date | null }

/**
 * Erases a payer from the payments of these checkouts, which the caller has locked. First keeps a hash that identifies
 * each payment on the chain, so that it is never counted again and its signature is never accepted again.
 *
 * All erased payers share one address. Where the payer is part of a row's key, the nonce or the position changes too:
 * otherwise two buyers of the same thing, paid in one transaction, would become one.
 */
export async function erasePayments(
  tx: Transaction,
  checkoutIds: readonly string[],
  payer: string,
  erased: string,
): Promise<ErasedPayment[]> {
  await tx.query(
    `insert into kept_credits (key, payment_id, outcome)
     select x.key, k.payment_id, case when k.disposition = 'exact' then 'exact'
       when k.accepted_at is not null then 'accepted' else 'dismissed' end
     from credits k cross join lateral (values
       (credit_key(k.network, k.transaction_hash, k.asset, k.payer, k.pay_to, k.amount, k.position)),
       (nonce_key(k.network, k.asset, k.payer, k.nonce))) as x (key)
     where k.checkout_id = any($1) and k.payer = $2 and k.orphaned_at is null and x.key is not null
     on conflict do nothing`,
    [checkoutIds, payer],
  )
  // First the signatures, because their credits find them by the new key.
  const nonces = await tx.query<{ nonce: string; erased: string }>(
    `with signed as (
       select a.network, a.asset, a.payer, a.nonce, ${erasedNonce('a')} as erased from authorizations a
       where a.checkout_id = any($1) and a.payer = $2
     )
     update authorizations a set payer = $3, nonce = s.erased, signature = '', payment_identifier = null
     from signed s where a.network = s.network and a.asset = s.asset and a.payer = s.payer and a.nonce = s.nonce
     returning s.nonce, s.erased`,
    [checkoutIds, payer, erased],
  )
  const payments = await tx.query<ErasedPayment>(
    `update credits k set sender = null, sender_nonce = null,
       payer = case when payer = $2 then $3 else payer end,
       nonce = case when payer = $2 then ${erasedNonce('k')} else nonce end,
       position = case when payer = $2 then ${erasedPosition} + log_index else position end
     where checkout_id = any($1) and (payer = $2 or sender = $2)
     returning payment_id as id, least(first_seen_block_time, included_at) as "seenAt", accepted_at as "acceptedAt"`,
    [checkoutIds, payer, erased],
  )
  await tx.query(
    `update transaction_calls c set payer = $3, nonce = i.erased
     from json_to_recordset($1) as i (nonce text, erased text) where c.nonce = i.nonce and c.payer = $2`,
    [JSON.stringify(nonces), payer, erased],
  )
  await tx.query('delete from pasted_transactions where checkout_id = any($1)', [checkoutIds])
  await tx.query('delete from payment_notes where payment_id = any($1)', [payments.map(({ id }) => id)])
  return payments
}
