import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { lockCounters } from '../events/assign-sequence.ts'
import { isId, type StoreId } from '../ids.ts'
import { networksOf } from '../payments/credits/rows.ts'
import { type Bookable, book } from './book.ts'

/** Bounds how long one run holds the counters of stores. */
const itemsPerRun = 200

/**
 * Books what no event tells of: payments that complete no checkout, once they are final or gone. A trigger on `credits`
 * queues them. A payment without a checkout is booked by every store that owns its wallet. Items of stores whose counter
 * another process holds wait for the next run. Returns whether there was anything to book.
 */
export async function bookDue(ctx: Context): Promise<boolean> {
  return await ctx.db.transaction(async (tx) => {
    const due = await tx.query<{ id: string; item: string }>(
      'select id, item from movements_due order by id limit $1 for update skip locked',
      [itemsPerRun],
    )
    if (due.length === 0) return false
    const concerned = await readStores(tx, [...new Set(due.map(({ item }) => item))])
    const storesOf = Map.groupBy(concerned, ({ item }) => item)
    const storeIds = [...new Set(concerned.map(({ storeId }) => storeId))]
    const locked = new Set((await lockCounters(tx, storeIds)).map(({ storeId }) => storeId))
    const ready = due.filter(({ item }) =>
      (storesOf.get(item) ?? []).every(({ storeId }) => locked.has(storeId)),
    )
    await book(
      ctx,
      tx,
      ready.flatMap(({ item }) => (storesOf.get(item) ?? []).map(({ storeId }) => toBookable(item, storeId))),
    )
    await tx.query('delete from movements_due where id = any($1)', [ready.map(({ id }) => id)])
    return ready.length > 0
  })
}

function toBookable(item: string, storeId: StoreId): Bookable {
  return isId('rf', item)
    ? { kind: 'refund', storeId, refundId: item }
    : { kind: 'payment', storeId, paymentId: item }
}

/** The stores to which these payments or refunds belong, or in whose books they are. */
async function readStores(
  tx: Transaction,
  items: readonly string[],
): Promise<{ readonly item: string; readonly storeId: StoreId }[]> {
  return await tx.query<{ item: string; storeId: StoreId }>(
    `select i.item, o.store_id as "storeId" from unnest($1::text[]) as i (item)
     cross join lateral (
       select k.store_id from credits k where k.payment_id = i.item and k.orphaned_at is null and k.checkout_id is not null
       union
       select w.store_id from credits k cross join lateral payment_owners(k.pay_to, k.included_at,
         case when k.network = any($2) then 'live' else 'test' end) w
       where k.payment_id = i.item and k.orphaned_at is null and k.checkout_id is null
       union
       select m.store_id from movements m where m.payment_id = i.item
       union
       select r.store_id from refunds r where r.id = i.item
     ) o
     where o.store_id is not null`,
    [items, networksOf('live')],
  )
}
