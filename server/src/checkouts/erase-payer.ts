import { erasedLike } from '../archive/archive.ts'
import {
  countKept,
  type ErasedPayment,
  eraseArchived,
  type Kept,
  listErasable,
} from '../archive/erase-rows.ts'
import type { Context } from '../context.ts'
import { eraseUnmatched } from '../events/erase-rows.ts'
import { firstIdAt } from '../ids.ts'
import { erasePayments } from '../payments/erase-rows.ts'

/** One transaction of a fraction of a second. */
const checkoutsPerBatch = 200

export type Erased = Kept & { readonly erased: number }

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
      await eraseUnmatched(tx, payer, replacement, listAnnounced(ctx, found.payments))
      return checkoutIds.length
    })
    ids = await listErasable(ctx.db, payer, checkoutsPerBatch)
  }
  return { erased, ...(await countKept(ctx.db, payer)) }
}

/**
 * Money that a store accepted may have been announced before, in an event without a checkout, which stays where it is. It
 * lies between ids of these times, and a day for clocks that differ: there is little else left of that time.
 */
function listAnnounced(ctx: Context, payments: readonly ErasedPayment[]) {
  const idAt = (time: Date, days: number) =>
    firstIdAt('evt', ctx.config.cell, new Date(time.getTime() + days * 86_400_000))
  return payments.flatMap(({ id, seenAt, acceptedAt }) =>
    acceptedAt === null ? [] : { id, from: idAt(seenAt, -1), until: idAt(acceptedAt, 1) },
  )
}
