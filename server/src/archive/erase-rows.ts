import type { Database, Transaction } from '../database/db.ts'

/** SQL to erase what is known of a payer from the archive. Addresses are in stored form. */

/** SQL: the archived checkouts that an address has paid, signed a payment for, or sent the transaction of one. */
const paidBy = `select a.checkout_id from archived_authorizations a where a.payer = $1
  union select k.checkout_id from stores s join archived_credits k on k.store_id = s.id and k.payer = $1
  union select k.checkout_id from archived_credits k where k.sender = $1`
const isRefunded = 'exists (select 1 from refunds r where r.checkout_id = p.checkout_id)'

/** Refunded ones are left alone: what went back to whom is known by the payer. */
export async function listErasable(db: Database, payer: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ checkout_id: string }>(
    `select p.checkout_id from (${paidBy}) p where not ${isRefunded} order by 1 limit $2`,
    [payer, limit],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}

/** What still names a payer. */
export type Kept = {
  /** Archived checkouts with a refund. */
  readonly refunded: number
  /** Checkouts that are not in the archive. */
  readonly recent: number
  /** Payments without a checkout, which are not archived. */
  readonly unmatched: number
}

export async function countKept(db: Database, payer: string): Promise<Kept> {
  const [row] = await db.query<Kept>(
    `select (select count(*)::integer from (${paidBy}) p where ${isRefunded}) as refunded,
       (select count(*)::integer from (
         select a.checkout_id from authorizations a where a.payer = $1 and a.checkout_id is not null
         union select k.checkout_id from stores s join credits k on k.store_id = s.id and k.payer = $1
           and k.checkout_id is not null
         union select k.checkout_id from credits k where k.sender = $1 and k.checkout_id is not null) p) as recent,
       (select count(distinct k.payment_id)::integer from credits k where k.checkout_id is null
         and (k.payer = $1 or k.sender = $1)) as unmatched`,
    [payer],
  )
  return row ?? { refunded: 0, recent: 0, unmatched: 0 }
}

/** More than a transaction has transfers. */
const erasedPosition = 1_000_000

/** SQL: the nonce of an erased payer's signature in the row `of`. Another payer of the same nonce may be erased too. */
const erasedNonce = (of: string) =>
  `'0x' || encode(sha256(convert_to(${of}.checkout_id || ${of}.nonce, 'UTF8')), 'hex')`

/** A payment, and between which times it was announced as money without a checkout, if it was. */
export type ErasedPayment = { readonly id: string; readonly seenAt: Date; readonly acceptedAt: Date | null }

/** A signature's nonce, and what takes its place. */
export type ErasedNonce = { readonly nonce: string; readonly erased: string }

/**
 * Erases a payer from these checkouts, as far as they are still in the archive, and with it what the store wrote there
 * about the buyer: metadata, and the addresses of pages that may name them. Returns the payments.
 *
 * All erased payers have one address. Where tables know a row by its payer, the nonce or the position of the transfer
 * changes too: two buyers of the same thing whose payments were sent together would be one.
 */
export async function eraseArchived(
  tx: Transaction,
  checkoutIds: readonly string[],
  payer: string,
  erased: string,
): Promise<{ checkoutIds: string[]; payments: ErasedPayment[]; nonces: ErasedNonce[] }> {
  const locked = await tx.query<{ id: string }>(
    `update archived_checkouts set metadata = null, success_redirect_url = null, cancel_url = null
     where id = any($1) returning id`,
    [checkoutIds],
  )
  const ids = locked.map(({ id }) => id)
  const payments = await tx.query<ErasedPayment>(
    `update archived_credits k set sender = null, sender_nonce = null,
       payer = case when payer = $2 then $3 else payer end,
       nonce = case when payer = $2 then ${erasedNonce('k')} else nonce end,
       position = case when payer = $2 then ${erasedPosition} + log_index else position end
     where checkout_id = any($1) and (payer = $2 or sender = $2)
     returning payment_id as id, least(first_seen_block_time, included_at) as "seenAt", accepted_at as "acceptedAt"`,
    [ids, payer, erased],
  )
  const nonces = await tx.query<ErasedNonce>(
    `with signed as (
       select a.checkout_id, a.nonce, a.asset, a.network, ${erasedNonce('a')} as erased
       from archived_authorizations a where a.checkout_id = any($1) and a.payer = $2 for update
     )
     update archived_authorizations a set payer = $3, nonce = s.erased, signature = '', payment_identifier = null
     from signed s where a.checkout_id = s.checkout_id and a.payer = $2 and a.nonce = s.nonce and a.asset = s.asset
       and a.network = s.network
     returning s.nonce, s.erased`,
    [ids, payer, erased],
  )
  await tx.query(
    `update archived_transaction_calls c set payer = $3, nonce = i.erased
     from json_to_recordset($1) as i (nonce text, erased text) where c.nonce = i.nonce and c.payer = $2`,
    [JSON.stringify(nonces), payer, erased],
  )
  await tx.query('delete from archived_pasted_transactions where checkout_id = any($1)', [ids])
  await tx.query(
    `update archived_events set data = (regexp_replace(data::text, $2, $3, 'gi')::jsonb #- '{checkout,metadata}'
       #- '{checkout,successRedirectUrl}' #- '{checkout,cancelUrl}')::json
     where checkout_id = any($1)`,
    [ids, payer, erased],
  )
  return { checkoutIds: ids, payments, nonces }
}
