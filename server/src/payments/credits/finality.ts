import type { Disposition } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Database, Transaction } from '../../database/db.ts'
import type { CheckoutId } from '../../ids.ts'
import { idOfNetwork } from '../../networks.ts'

/** SQL for the finality of credits on chains that are read block by block. */

/** A payment that has become safe on the chain, and whose checkout is COMPLETED and stays so. */
export type NewlySafe = {
  readonly checkoutId: CheckoutId
  readonly paymentId: string
  readonly transaction: string
  readonly blockNumber: string
  readonly disposition: Disposition
}

/**
 * SQL: whether the credit `k` completes a checkout. The announcement that such a credit is final is written together
 * with the fact, so it is left to that: see `readFacts` and `writeAnnouncements`.
 */
export const isFinalByAnnouncement = `k.disposition = 'exact' and k.orphaned_at is null and k.witnessed_at is not null`

/**
 * The highest block up to which there are at most `limit` credits that are not final, or the first one with any if it
 * has more.
 */
export async function findReach(
  db: Database,
  network: string,
  range: { readonly above: number; readonly upTo: number },
  limit: number,
): Promise<number> {
  const waiting = `select block_number from credits where network = $1 and orphaned_at is null and finalized_at is null
    and block_number > $2 and block_number <= $3 order by block_number`
  const [row] = await db.query<{ first: string | null; next: string | null }>(
    `select (${waiting} limit 1) as first, (${waiting} offset $4 limit 1) as next`,
    [network, range.above, range.upTo, limit],
  )
  if (!row?.first || !row.next) return range.upTo
  return Math.max(Number.parseInt(row.first, 10), Number.parseInt(row.next, 10) - 1)
}

/**
 * Records the finality that blocks have reached, of those credits whose blocks are within the range. Returns the
 * checkouts to evaluate again, and the payments that have become safe where there is nothing to evaluate: more finality
 * does not change a COMPLETED checkout.
 */
export async function advanceCredits(
  tx: Transaction,
  network: string,
  { safe, finalized }: { readonly safe: number; readonly finalized: number },
  range: { readonly above: number; readonly upTo: number },
): Promise<{ readonly checkoutIds: readonly string[]; readonly safe: readonly NewlySafe[] }> {
  const rows = await tx.query<NewlySafe & { isDone: boolean }>(
    `with advanced as (
       update credits k set safe_at = coalesce(k.safe_at, clock()),
         finalized_at = case when k.block_number <= $3 and not (${isFinalByAnnouncement}) then clock() end
       where k.network = $1 and k.orphaned_at is null and k.finalized_at is null
         and k.block_number > $4 and k.block_number <= least($5::bigint, greatest($2::bigint, $3::bigint))
         and (k.safe_at is null or (k.block_number <= $3 and not (${isFinalByAnnouncement})))
       returning k.checkout_id, k.payment_id, k.transaction_hash, k.block_number, k.disposition
     ), final as (
       select k.checkout_id, k.payment_id, k.transaction_hash, k.block_number, k.disposition from credits k
       where k.network = $1 and k.orphaned_at is null and k.finalized_at is null and k.block_number <= $3
         and ${isFinalByAnnouncement}
     )
     select a.checkout_id as "checkoutId", a.payment_id as "paymentId", a.transaction_hash as "transaction",
       a.block_number as "blockNumber", a.disposition,
       a.block_number > $3 and (select c.status from checkouts c where c.id = a.checkout_id) = 'COMPLETED' as "isDone"
     from (table advanced union table final) a where a.checkout_id is not null`,
    [network, safe, finalized, range.above, range.upTo],
  )
  return {
    checkoutIds: [...new Set(rows.filter(({ isDone }) => !isDone).map(({ checkoutId }) => checkoutId))],
    safe: rows.filter(({ isDone }) => isDone),
  }
}

export const safeSentence = 'payment safe: its block is not expected to be replaced'

/** One log line for each payment that has become safe, once that is committed. */
export function reportSafe(
  ctx: Context,
  tx: Transaction,
  network: string,
  payments: readonly NewlySafe[],
): void {
  if (payments.length === 0) return
  tx.afterCommit(() => {
    for (const { checkoutId, paymentId, transaction, blockNumber, disposition } of payments)
      ctx.log.info(
        {
          checkoutId,
          paymentId,
          network: idOfNetwork(network),
          txHash: transaction,
          block: Number.parseInt(blockNumber, 10),
          disposition,
          finality: 'safe',
          status: 'COMPLETED',
        },
        safeSentence,
      )
  })
}
