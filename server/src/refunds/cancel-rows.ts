import type { Transaction } from '../database/db.ts'
import type { RefundId } from '../ids.ts'

/** From now on no signature is taken for it. */
export async function askCancel(tx: Transaction, id: RefundId): Promise<void> {
  await tx.query(
    `update refunds set cancel_asked_at = clock(), is_watched = true where id = $1 and status = 'REQUESTED'`,
    [id],
  )
}

/** Ends a refund of which nothing that was handed out can move money, and lowers its payment's total. */
export async function endUnprepared(tx: Transaction, id: RefundId): Promise<void> {
  await tx.query(
    `with ended as (
       update refunds r set status = 'CANCELED', version = r.version + 1, cancel_asked_at = clock(), ended_at = clock(),
         failure = null, is_watched = false
       where r.id = $1 and r.status = 'REQUESTED' returning r.network, r.asset, r.identity, r.amount
     )
     update refund_totals t set reserved = t.reserved - e.amount from ended e
     where t.network = e.network and t.asset = e.asset and t.identity = e.identity`,
    [id],
  )
}
