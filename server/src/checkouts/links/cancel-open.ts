import type { Actor } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { LinkId } from '../../ids.ts'
import { type CheckoutRow, moveCheckouts, toCheckout } from '../rows.ts'

/**
 * Cancels the open checkouts of links that the transaction has locked. Skips checkouts that another transaction has
 * locked: they are being paid, or have just ended. So the holder of a link's lock never waits for a checkout's lock.
 */
export async function cancelOpenOf(
  ctx: Context,
  tx: Transaction,
  linkIds: readonly LinkId[],
  actor: Actor | null,
  now: Date,
): Promise<number> {
  const open = await tx.query<CheckoutRow>(
    `select * from checkouts c where c.link_id = any($1) and c.status = 'OPEN' and c.expires_at > clock()
     order by c.id for update skip locked`,
    [linkIds],
  )
  if (open.length === 0) return 0
  const to = { status: 'CANCELED' as const, ...(actor && { actor }) }
  return (await moveCheckouts(ctx, tx, open.map(toCheckout), to, now)).length
}

/** Keeps a transaction short. */
const linksPerRun = 100

/** Cancels the open checkouts of paid links, because a checkout may have been locked when its link was paid. */
export async function cancelPaid(ctx: Context, now: Date): Promise<void> {
  for (;;) {
    const canceled = await ctx.db.transaction(async (tx) => {
      const links = await tx.query<{ id: LinkId }>(
        `select l.id from links l where l.id in (select c.link_id from checkouts c
             where c.link_id is not null and c.status = 'OPEN' and c.expires_at > clock())
           and l.paid_at is not null order by l.id limit $1 for no key update of l skip locked`,
        [linksPerRun],
      )
      const ids = links.map(({ id }) => id)
      return ids.length === 0 ? 0 : await cancelOpenOf(ctx, tx, ids, null, now)
    })
    if (canceled === 0) return
  }
}
