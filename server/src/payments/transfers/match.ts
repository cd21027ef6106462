import type { Transaction } from '../../database/db.ts'
import { mayMatchAt, modeOf, type SeenPlain } from '../credits/rows.ts'

/** A plain transfer that concerns us: it has a reserved amount, or at least pays one of our wallets. */
export type Match = {
  readonly seen: SeenPlain
  readonly checkoutId: string | null
  /** The checkout's store. */
  readonly storeId: string | null
}

/**
 * Assigns safe, unclaimed transfers by authorization to the checkouts that their amounts are reserved for, and claims
 * them: anyone who presents the authorization later finds it taken. Bound authorizations are left to the checkouts that
 * they name. If the wallet is also paid elsewhere, or others have proven it, the transfer may have paid for something
 * else, so it only becomes a hint. Returns the checkouts affected.
 */
export async function claimByAmount(
  tx: Transaction,
  network: string,
  boundPattern: string,
): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string }>(
    `with found as (
       select k.network, k.asset, k.payer, k.nonce, k.pay_to, k.amount, k.payment_id, r.checkout_id,
         ${mayMatchAt('c.store_id', 'k.pay_to', '$3')} and not exists (select 1 from wallets w
           where w.store_id = c.store_id and w.pay_to = k.pay_to and w.shared_elsewhere) as is_payment
       from credits k join reserved_amounts r on r.network = k.network and r.asset = k.asset and r.pay_to = k.pay_to
         and r.amount = k.amount and r.freed_at is null and r.after_block < k.block_number
       join checkouts c on c.id = r.checkout_id
       where k.network = $1 and k.orphaned_at is null and k.checkout_id is null and k.announced is null
         and k.safe_at is not null and k.dismissed_at is null and k.nonce is not null and k.nonce not like $2
     ), hinted as (
       insert into payment_hints (payment_id, checkout_id, disposition, created_at)
       select payment_id, checkout_id, 'unmatched', clock() from found where not is_payment
       on conflict do nothing
     ), locked as (
       select id, store_id from checkouts where id in (select checkout_id from found where is_payment)
       order by id for no key update
     ), claimed as (
       insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount,
         valid_after, valid_before, signature, reason, claimed_at, resolved_at)
       select f.network, f.asset, f.payer, f.nonce, l.id, l.store_id, 'rejected', f.pay_to, f.amount,
         0, 0, '', 'paid_by_amount', clock(), clock()
       from found f join locked l on l.id = f.checkout_id
       where f.is_payment
       on conflict do nothing
       returning network, asset, payer, nonce, checkout_id, store_id
     )
     update credits k set checkout_id = a.checkout_id, store_id = a.store_id, disposition = 'overpaid'
     from claimed a where k.network = a.network and k.asset = a.asset and k.payer = a.payer and k.nonce = a.nonce
       and k.orphaned_at is null
     returning k.checkout_id`,
    [network, boundPattern, modeOf(network)],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}
