import type { Actor } from '@farthing/sdk'
import type { Transaction } from '../../database/db.ts'
import type { StoreId } from '../../ids.ts'

/** Locks a payment's checkout, so that it is neither evaluated nor deleted until the transaction ends. */
export async function holdCheckout(tx: Transaction, checkoutId: string): Promise<void> {
  await tx.query('select 1 as one from checkouts where id = $1 for no key update', [checkoutId])
}

/**
 * Accepts a payment for a checkout. The caller has checked that the store may decide about it. A transfer by authorization
 * is claimed for the checkout in the same statement, so that it cannot be presented for another one later. False if it
 * already was.
 */
export async function acceptPayment(
  tx: Transaction,
  storeId: StoreId,
  paymentId: string,
  checkoutId: string,
): Promise<boolean> {
  const rows = await tx.query(
    `with found as (
       select * from credits where payment_id = $2 and orphaned_at is null and (checkout_id is null or store_id = $1)
     ), claimed as (
       insert into authorizations as a (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, reason, claimed_at, resolved_at)
       select network, asset, payer, nonce, $3, $1, 'rejected', pay_to, amount, 0, 0, '', 'accepted', clock(), clock()
       from found where nonce is not null
       on conflict (network, asset, payer, nonce) do update set checkout_id = $3, store_id = $1
         where (a.checkout_id is null and a.refund_id is null) or a.checkout_id = $3
       returning a.nonce
     )
     update credits k set checkout_id = $3, store_id = $1, accepted_at = clock(),
       disposition = case when k.checkout_id is null then 'overpaid' else k.disposition end
     from found f
     where k.network = f.network and k.block_hash = f.block_hash and k.log_index = f.log_index
       and (f.nonce is null or exists (select 1 from claimed))
     returning k.payment_id`,
    [storeId, paymentId, checkoutId],
  )
  return rows.length > 0
}

export async function dismissPayment(tx: Transaction, storeId: StoreId, paymentId: string): Promise<void> {
  await tx.query(
    `update credits set dismissed_at = clock()
     where payment_id = $2 and orphaned_at is null and dismissed_at is null
       and (checkout_id is null or store_id = $1)`,
    [storeId, paymentId],
  )
}

export async function hasExact(tx: Transaction, checkoutId: string): Promise<boolean> {
  const rows = await tx.query(
    "select 1 as one from credits where checkout_id = $1 and disposition = 'exact' and orphaned_at is null",
    [checkoutId],
  )
  return rows.length > 0
}

/** Writes a store's note about a payment; null removes it. False if the note already says that. */
export async function writeNote(
  tx: Transaction,
  storeId: StoreId,
  paymentId: string,
  note: string | null,
  actor: Actor,
): Promise<boolean> {
  const rows =
    note === null
      ? await tx.query(
          'delete from payment_notes where payment_id = $2 and store_id = $1 returning payment_id',
          [storeId, paymentId],
        )
      : await tx.query(
          `insert into payment_notes as n (payment_id, store_id, note, actor, noted_at)
           values ($2, $1, $3, $4, clock())
           on conflict (payment_id, store_id)
             do update set note = excluded.note, actor = excluded.actor, noted_at = excluded.noted_at
             where n.note <> excluded.note
           returning payment_id`,
          [storeId, paymentId, note, JSON.stringify(actor)],
        )
  return rows.length > 0
}
