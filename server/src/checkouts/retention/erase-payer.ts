import { erasedLike } from '../../chains/families.ts'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import { eraseFromEvents } from '../../events/rows.ts'
import { firstIdAt } from '../../ids.ts'
import { eraseBuyers } from '../../links/erase.ts'
import {
  countLeft,
  countMoving,
  type ErasedPayment,
  erasePayments,
  type Left,
  listErasable,
} from '../../payments/erase.ts'

/** Limits each transaction to a fraction of a second. */
const checkoutsPerBatch = 200
const dayMs = 86_400_000

type Erased = Left & {
  readonly erased: number
  /** Signatures, payments and refunds of the payer that can still move money. If there are any, nothing is erased. */
  readonly moving: number
}

/**
 * Erases a payer: replaces the payer's address with a random one, and deletes what the store wrote about the buyer.
 * Amounts, times and transactions stay: they are the store's books, and the chain has them anyway. The payments cannot be
 * refunded afterwards, because refunds are counted by the payer's address. Running it again continues where it stopped.
 */
export async function erasePayer(ctx: Context, payer: string): Promise<Erased> {
  const moving = await countMoving(ctx.db, payer, null)
  let erased = 0
  while (moving === 0) {
    const ids = await listErasable(ctx.db, payer, checkoutsPerBatch)
    const done = ids.length === 0 ? 0 : await ctx.db.transaction((tx) => eraseFrom(ctx, tx, payer, ids))
    if (done === 0) break
    erased += done
  }
  return { erased, moving, ...(await countLeft(ctx.db, payer)) }
}

async function eraseFrom(
  ctx: Context,
  tx: Transaction,
  payer: string,
  ids: readonly string[],
): Promise<number> {
  const locked = await tx.query<{ id: string }>(
    'select id from checkouts where id = any($1) order by id for no key update',
    [ids],
  )
  const held = locked.map(({ id }) => id)
  // The locks keep these checkouts unchanged. If money began to move since the first count, nothing is erased.
  if ((await countMoving(tx, payer, held)) > 0) return 0
  await tx.query(
    'update checkouts set metadata = null, success_redirect_url = null, cancel_url = null where id = any($1)',
    [held],
  )
  await eraseBuyers(tx, held)
  const replacement = erasedLike(payer)
  const payments = await erasePayments(tx, held, payer, replacement)
  await eraseFromEvents(tx, held, payer, replacement, listAnnounced(ctx, payments))
  return held.length
}

/**
 * A payment that a store accepted for a checkout may have been announced before, in an event without a checkout. The id
 * of that event lies between these times, with a day added on each side because clocks may differ.
 */
function listAnnounced(ctx: Context, payments: readonly ErasedPayment[]) {
  const idAt = (time: Date, days: number) =>
    firstIdAt('evt', ctx.config.cell, new Date(time.getTime() + days * dayMs))
  return payments.flatMap(({ id, seenAt, acceptedAt }) =>
    acceptedAt === null ? [] : { id, from: idAt(seenAt, -1), until: idAt(acceptedAt, 1) },
  )
}
