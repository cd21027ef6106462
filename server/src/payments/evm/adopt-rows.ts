import type { Transaction } from '../../database/db.ts'
import { liveCreditOf } from '../rows.ts'
import { boundPattern } from './bound-nonce.ts'
import { blockSecond } from './rows.ts'

/**
 * Money that was recorded before the claim of its authorization could be seen. A nonce bound to the checkout can have paid
 * for nothing else, and one that was claimed before it landed belongs to its claim, as it does when a block is read later.
 * Any other may have been copied from the chain by somebody who did not pay: its claim is noted as landed by another, and
 * the store gets a hint. Returns the checkouts that were given a credit.
 */
export async function adoptUnmatched(tx: Transaction, network: string): Promise<string[]> {
  const rows = await tx.query<{ checkout_id: string }>(
    `with waiting as (
       select a.checkout_id, a.store_id, a.network, a.asset, a.payer, a.nonce, 
         a.nonce like $2 or (k.first_seen_block_time + ${blockSecond} > a.claimed_at and not exists (select 1 from wallets w
           where w.store_id = a.store_id and w.pay_to = a.pay_to and w.shared_elsewhere)) as is_own,
         k.payment_id, k.block_number, k.block_hash
       from authorizations a cross join ${liveCreditOf('a')}
       where k.checkout_id is null and k.pay_to = a.pay_to and k.amount = a.amount and a.network = $1
         and a.state in ('claimed', 'sent') and not a.is_credited and a.checkout_id is not null
         and a.spent_reason is distinct from 'landed_by_another'
     ), foreign_landed as (
       update authorizations a set spent_block_number = w.block_number, spent_block_hash = w.block_hash,
         spent_reason = 'landed_by_another'
       from waiting w where not w.is_own and a.network = w.network and a.asset = w.asset and a.payer = w.payer
         and a.nonce = w.nonce
     ), hinted as (
       insert into payment_hints (payment_id, checkout_id, disposition, created_at)
       select payment_id, checkout_id, 'unmatched', clock() from waiting where not is_own
       on conflict do nothing
     ), locked as (
       select id from checkouts where id in (select checkout_id from waiting where is_own)
       order by id for no key update
     )
     update credits k set checkout_id = w.checkout_id, store_id = w.store_id, disposition = 'overpaid'
     from waiting w join locked l on l.id = w.checkout_id
     where w.is_own and k.network = w.network and k.asset = w.asset and k.payer = w.payer and k.nonce = w.nonce
       and k.orphaned_at is null
     returning k.checkout_id`,
    [network, boundPattern],
  )
  return rows.map(({ checkout_id }) => checkout_id)
}
