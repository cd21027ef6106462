import type { Context } from '../../context.ts'
import { crashPoint } from '../../crash.ts'
import { firstIdAt } from '../../ids.ts'

/** Limits each transaction to a fraction of a second. */
const checkoutsPerBatch = 200
/**
 * At one run per second, this deletes 800 checkouts per second: as many as a busy deployment completes, at little load.
 */
const batchesPerRun = 4
const linksPerBatch = 200
/** Checkouts that could not be deleted yet are tried again after this time. */
const passEverySeconds = 3_600
const dayMs = 86_400_000

/** The position of a pass through the checkouts. A pass goes from the oldest to the first that is too young. */
type Pass = { after: string; notBefore: Date }

export const firstPass = (): Pass => ({ after: '', notBefore: new Date(0) })

/**
 * Deletes checkouts that ended longer ago than RETENTION_DAYS, with all that belongs to them, a few batches per run. A
 * link's checkouts go only once the link ended as long ago, and the link goes after them.
 * The database decides what may go (`list_over` in migration 0050), and deletes it: no role has the right to delete a
 * payment. `kept_credits` (0042) keeps the credits that must never count again, and the rollups keep the takings.
 *
 * Any number of processes may run this at once, and may be killed at any point, because each batch is one statement. It
 * skips checkouts that another process has locked or that may not be deleted yet, so that they don't hold up later
 * ones.
 */
export async function deleteOver(ctx: Context, pass: Pass, now: Date): Promise<void> {
  const days = ctx.config.retentionDays
  if (days === 0 || now < pass.notBefore) return
  const before = firstIdAt('ch', ctx.config.cell, new Date(now.getTime() - days * dayMs))
  for (let i = 0; i < batchesPerRun; i++) {
    const batch = await ctx.db.transaction(async (tx) => {
      const [row] = await tx.query<{ looked: number; deleted: number; lastId: string | null }>(
        'select looked, deleted, last_id as "lastId" from delete_over($1, $2, $3, $4)',
        [pass.after, before, days, checkoutsPerBatch],
      )
      if (row && row.deleted > 0) crashPoint(ctx, 'retention-before-commit')
      return row
    })
    // Another process is deleting, or a restored database is being compared with the chains.
    if (!batch) return
    if (batch.deleted > 0) {
      ctx.log.info(
        { checkouts: batch.deleted, days },
        'deleted checkouts that ended longer ago than RETENTION_DAYS',
      )
      crashPoint(ctx, 'retention-after-commit')
    }
    if (batch.looked < checkoutsPerBatch || batch.lastId === null) {
      await deleteLinks(ctx, days)
      pass.after = ''
      pass.notBefore = new Date(now.getTime() + passEverySeconds * 1_000)
      return
    }
    pass.after = batch.lastId
  }
}

/** Links that are over, and whose checkouts are gone. */
async function deleteLinks({ db, log }: Context, days: number): Promise<void> {
  for (let deleted = linksPerBatch; deleted === linksPerBatch; ) {
    const [row] = await db.query<{ deleted: number }>('select delete_links_over($1, $2) as deleted', [
      days,
      linksPerBatch,
    ])
    deleted = row?.deleted ?? 0
    if (deleted > 0)
      log.info({ links: deleted, days }, 'deleted links that ended longer ago than RETENTION_DAYS')
  }
}
