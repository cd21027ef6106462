import type { Actor } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import type { Transaction } from '../../database/db.ts'
import type { LinkId } from '../../ids.ts'
import { holdLink } from '../../links/rows.ts'
import { Problem } from '../../problems.ts'
import type { Checkout } from '../checkout.ts'
import { type CheckoutRow, moveCheckouts, toCheckout } from '../rows.ts'

/**
 * Prepares a `once` link for a payment that its store accepts for one of its earlier checkouts, which the transaction holds.
 * The one that buyers share now is canceled. If it is being paid or is paid, its payment is the one that counts, and the other
 * is refused.
 */
export async function cedeLink(
  ctx: Context,
  tx: Transaction,
  { id, linkId }: Checkout,
  actor: Actor,
  now: Date,
): Promise<void> {
  if (linkId === null) return
  const others = await lockOthers(tx, linkId, id)
  for (const { status } of others) {
    if (status === 'PROCESSING')
      throw new Problem(
        'payment_in_progress',
        'Another payment for this link is being settled. Its outcome decides whether the link still needs this one.',
        { retryAfterSeconds: 5 },
      )
    if (status === 'COMPLETED') throw new Problem('already_paid', 'The link is already paid.')
  }
  // Checkouts are locked before links, so one may have been made in between. The decision is tried again.
  await holdLink(tx, linkId)
  if ((await lockOthers(tx, linkId, id)).length !== others.length)
    throw new Problem('unavailable', 'A buyer has opened the link at the same moment.', {
      retryAfterSeconds: 1,
    })
  if (others.length > 0) await moveCheckouts(ctx, tx, others, { status: 'CANCELED', actor }, now)
}

/** The other checkouts of a `once` link that can be paid, are being paid or are paid. */
async function lockOthers(tx: Transaction, linkId: LinkId, id: string): Promise<Checkout[]> {
  const rows = await tx.query<CheckoutRow>(
    `select c.* from links l join checkouts c on c.link_id = l.id
     where l.id = $1 and l.kind = 'once' and c.id <> $2 and c.status in ('OPEN', 'PROCESSING', 'COMPLETED')
     order by c.id for update of c`,
    [linkId, id],
  )
  return rows.map(toCheckout)
}
