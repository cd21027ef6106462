import type { Transaction } from '../database/db.ts'
import { eraseFromLinkEvents } from '../events/rows.ts'

/** Deletes what a store wrote about a buyer in the links that one payment ends, and in the events about them. */
export async function eraseBuyers(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  const rows = await tx.query<{ event_ids: string[] }>(
    `update links l set metadata = null, invoice = (l.invoice::jsonb - 'buyerName' - 'buyerAddress')::json
     where l.kind = 'once' and l.id in (select c.link_id from checkouts c where c.id = any($1) and c.link_id is not null)
     returning l.event_ids`,
    [checkoutIds],
  )
  const eventIds = rows.flatMap(({ event_ids }) => event_ids)
  if (eventIds.length > 0) await eraseFromLinkEvents(tx, eventIds)
}
