import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { LinkId } from '../ids.ts'
import { isPaid, type Link, type LinkFacts } from './link.ts'
import { type LinkRow, linkColumns, toLink } from './rows.ts'
import { tellOfLink } from './tell.ts'

/**
 * Computes again whether `once` links are paid, in the transaction that has changed a checkout of theirs and holds its
 * row. Returns those that are paid now. The order of locks is checkouts first, then links, each in order of id.
 */
export async function followCheckouts(
  ctx: Context,
  tx: Transaction,
  linkIds: readonly LinkId[],
  now: Date,
): Promise<Link[]> {
  const rows = await tx.query<LinkRow>(
    `select ${linkColumns} from links l where l.id = any($1) and l.kind = 'once' order by l.id for no key update`,
    [linkIds],
  )
  const paid: Link[] = []
  for (const link of rows.map(toLink)) {
    const wasPaid = link.paidAt !== null
    const isNow = isPaid(wasPaid, await readFacts(tx, link.id))
    const followed = wasPaid === isNow ? link : await writePaid(tx, link, isNow ? now : null)
    if (isNow) paid.push(followed)
    if (wasPaid !== isNow)
      await tellOfLink(ctx, tx, followed, { type: isNow ? 'link.paid' : 'link.reopened', actor: null, now })
  }
  return paid
}

/** Read after the link is locked: no other transaction can commit a payment for it and miss ours. */
async function readFacts(tx: Transaction, linkId: LinkId): Promise<LinkFacts> {
  const [facts] = await tx.query<LinkFacts>(
    `select coalesce(bool_or(c.status = 'COMPLETED'), false) as "hasCompleted",
       coalesce(bool_or(c.status = 'PROCESSING'), false) as "hasProcessing"
     from checkouts c where c.link_id = $1`,
    [linkId],
  )
  return facts ?? { hasCompleted: false, hasProcessing: false }
}

async function writePaid(tx: Transaction, link: Link, paidAt: Date | null): Promise<Link> {
  await tx.query('update links set paid_at = $2 where id = $1', [link.id, paidAt])
  return { ...link, paidAt }
}
