import type { Refund } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { openPoll } from '../database/poll.ts'
import type { StoreId } from '../ids.ts'
import { readRefund } from './read.ts'

/** Long enough for a block or two of most networks, shorter than any client's patience. */
const patienceMs = 5_000
/** How often we poll anyway, in case a wake-up was lost. */
const lookEveryMs = 250
/** At least this long between two looks: every settled payment wakes us too. */
const spacingMs = 50

type Waiter = { readonly id: string; readonly done: () => void }

/** Waits a few seconds for a refund's outcome, then reads it. All waiting requests of a process share one query. */
export function openRefundWaits(ctx: Context): (storeId: StoreId, id: string) => Promise<Refund> {
  const waiters = new Set<Waiter>()
  const shared = openPoll(ctx.db.wakeUps, {
    channel: 'outcomes',
    everyMs: lookEveryMs,
    spacingMs,
    now: ctx.now,
    isNeeded: () => waiters.size > 0,
    async poll() {
      const ended = new Set(
        await listWithOutcome(
          ctx.db,
          [...waiters].map(({ id }) => id),
        ),
      )
      for (const waiter of waiters) if (ended.has(waiter.id)) waiter.done()
    },
    onError: (error) =>
      ctx.log.warn({ err: error }, 'could not read what became of refunds; trying again within 250 ms'),
  })
  return async (storeId, id) => {
    await new Promise<void>((resolve) => {
      const timeout = setTimeout(() => waiter.done(), patienceMs)
      const waiter: Waiter = {
        id,
        done() {
          clearTimeout(timeout)
          waiters.delete(waiter)
          resolve()
        },
      }
      waiters.add(waiter)
      shared.begin()
      shared.ask()
    })
    return await readRefund(ctx, storeId, id)
  }
}

/** The refunds among these that have an outcome. */
async function listWithOutcome(db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from refunds where id = any($1) and status in ('COMPLETED', 'DECLARED', 'FAILED', 'CANCELED')`,
    [ids],
  )
  return rows.map(({ id }) => id)
}
