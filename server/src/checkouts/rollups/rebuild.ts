import type { Context } from '../../context.ts'
import type { StoreId } from '../../ids.ts'
import { countStores } from './count.ts'
import { readUncounted, resetStore } from './rows.ts'

/** With this many events in one transaction, a long log takes few of them, and each stays under a second. */
const eventsPerStep = 10_000

/**
 * Counts a store's figures again, from the first event of its log. `work` may run meanwhile: the process that holds the
 * cursor counts. Until all is counted the console says that figures are incomplete. Returns the number of events.
 */
export async function rebuildRollups(ctx: Context, storeId: StoreId): Promise<bigint> {
  const events = await ctx.db.transaction(async (tx) => {
    await resetStore(tx, storeId)
    return BigInt((await readUncounted(tx, storeId)).until)
  })
  // An event that is written meanwhile is counted too, so this ends when there is none, or when `work` has the cursor.
  for (;;) {
    const { after, until } = await readUncounted(ctx.db, storeId)
    if (after === until || !(await countStores(ctx, [storeId], eventsPerStep))) return events
  }
}
