import type { Database, Transaction } from '../database/db.ts'

/** SQL for updating open payment pages. */

/** Marks checkouts whose pages have something new to show. */
export async function notePagesChanged(tx: Transaction, checkoutIds: readonly string[]): Promise<void> {
  if (checkoutIds.length === 0) return
  await tx.query('update checkouts set page_version = page_version + 1 where id = any($1)', [checkoutIds])
}

/**
 * Finds which of these checkouts have something new for their pages, with the stamps to compare next time. A stamp
 * changes whenever the page would: it holds the versions, whether the time has passed, whether a payment was sent, and,
 * once the checkout is over, what became of refunds. While it can be paid, pages learn of those when they are looked at.
 */
export async function findChangedPages(
  db: Database,
  watched: readonly { readonly checkoutId: string; readonly stamp: string }[],
): Promise<{ checkoutId: string; stamp: string }[]> {
  return await db.query<{ checkoutId: string; stamp: string }>(
    `select id as "checkoutId", stamp from (
       select c.id, i.stamp as before, concat_ws('.', c.version, c.page_version, case c.status
         when 'OPEN' then (c.expires_at <= clock())::text
         when 'PROCESSING' then exists (select 1 from authorizations a where a.checkout_id = c.id and a.state = 'sent'
           offset 0)::text
         else (select sum(f.version)::text from refunds f where f.checkout_id = c.id)
         end) as stamp
       from unnest($1::text[], $2::text[]) as i (id, stamp)
       cross join lateral (select * from checkouts c where c.id = i.id offset 0) c
     ) now where stamp <> before`,
    [watched.map(({ checkoutId }) => checkoutId), watched.map(({ stamp }) => stamp)],
  )
}
