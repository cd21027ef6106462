import type { Refund } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { openWaiters } from '../database/waiters.ts'
import type { StoreId } from '../ids.ts'
import { readRefund } from './read.ts'

/** Long enough for a block or two of most networks, shorter than any client's patience. */
const patienceMs = 5_000
const pollMs = 250
/** Every settled payment wakes us too. */
const spacingMs = 50

/** Waits a few seconds for a refund's outcome, then reads the refund. */
export function openRefundWaits(ctx: Context): (storeId: StoreId, id: string) => Promise<Refund> {
  const waiters = openWaiters<string, true>(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: pollMs,
    spacingMs,
    now: ctx.now,
    async find(ids) {
      const rows = await ctx.db.query<{ id: string }>(
        `select id from refunds where id = any($1) and status in ('COMPLETED', 'DECLARED', 'FAILED', 'CANCELED')`,
        [ids],
      )
      const ended = new Set(rows.map(({ id }) => id))
      return ids.map((id) => ended.has(id) || null)
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read the outcomes of refunds; trying again within 250 ms'),
  })
  return async (storeId, id) => {
    await waiters.wait(id, patienceMs)
    return await readRefund(ctx, storeId, id)
  }
}
