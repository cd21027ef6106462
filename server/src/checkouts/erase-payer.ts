import { erasedLike } from '../archive/archive.ts'
import { countKept, eraseArchived, listErasable } from '../archive/erase-rows.ts'
import type { Context } from '../context.ts'
import { erasePayments } from '../payments/erase-rows.ts'

/** One transaction of a fraction of a second. */
const checkoutsPerBatch = 200

export type Erased = {
  readonly erased: number
  /** Checkouts that still name the payer: because of a refund, and because they are not in the archive. */
  readonly refunded: number
  readonly recent: number
}

/**
 * Erases a payer from the archive: an address that is known to nobody takes the place of theirs, and what the store wrote
 * about the buyer goes. Amounts, times and transactions stay: they are the store's books, and the chain has them anyway.
 * The payments cannot be refunded afterwards, because a refund is known by its payer. Running it again goes on where it
 * was stopped.
 */
export async function erasePayer(ctx: Context, payer: string): Promise<Erased> {
  const replacement = erasedLike(payer)
  let erased = 0
  for (let ids = await listErasable(ctx.db, payer, checkoutsPerBatch); ids.length > 0; ) {
    erased += await ctx.db.transaction(async (tx) => {
      const { checkoutIds, ...found } = await eraseArchived(tx, ids, payer, replacement)
      await erasePayments(tx, payer, replacement, found)
      return checkoutIds.length
    })
    ids = await listErasable(ctx.db, payer, checkoutsPerBatch)
  }
  return { erased, ...(await countKept(ctx.db, payer)) }
}
