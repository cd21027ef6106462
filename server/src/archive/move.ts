import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { firstIdAt } from '../ids.ts'
import { findEnded, listSettlers, moveEnded, moveTransactions, openMonth, type Settler } from './rows.ts'

/** One transaction of a fraction of a second. */
const checkoutsPerBatch = 500
/** At a run per second, 2,000 checkouts: twice what a busy deployment ends, and little beside its payments. */
const batchesPerRun = 4
/** A transaction has up to a few hundred payments. */
const transactionsPerBatch = 200
/** Of each settler per run, so that stopping waits seconds for it, not minutes. */
const transactionBatches = 50
/** What cannot be moved yet is looked at again after this. */
const passEverySeconds = 600

/**
 * Where a pass is: through the checkouts, from the oldest to those that are too young, and then through what each settler
 * sent. Whatever may not move yet is passed, so that it holds up nothing that follows.
 */
export type Pass = {
  after: string
  /** The nonce to look on from, by settler; null once all has been looked at. */
  readonly nonces: Map<string, string | null>
  notBefore: Date
}

export const firstPass = (): Pass => ({ after: '', nonces: new Map(), notBefore: new Date(0) })

/**
 * Moves checkouts that ended longer ago than ARCHIVE_AFTER_DAYS to the archive, a few batches per run. Any number of
 * processes may run it at once, and be killed anywhere: each batch is one statement, and skips what another one holds.
 */
export async function archiveEnded(ctx: Context, pass: Pass, now: Date): Promise<void> {
  const days = ctx.config.archiveAfterDays
  if (days === 0 || now < pass.notBefore) return
  const before = firstIdAt('ch', ctx.config.cell, new Date(now.getTime() - days * 86_400_000))
  for (let batch = 0; batch < batchesPerRun; batch++) {
    const from = await findEnded(ctx.db, pass.after, before)
    if (from === null) {
      // Once the payments are there, what was sent for them follows.
      for (const settler of await listSettlers(ctx.db)) await moveSent(ctx, pass, settler, days)
      if ([...pass.nonces.values()].some((nonce) => nonce !== null)) return
      pass.after = ''
      pass.nonces.clear()
      pass.notBefore = new Date(now.getTime() + passEverySeconds * 1_000)
      return
    }
    if (await openMonth(ctx.db, from)) ctx.log.info({ checkoutId: from }, 'opened a month of the archive')
    const { moved, lastId } = await ctx.db.transaction(async (tx) => {
      const batch = await moveEnded(tx, { from, before, days, limit: checkoutsPerBatch })
      if (batch.moved > 0) crashPoint(ctx, 'archive-before-commit')
      return batch
    })
    if (moved > 0) {
      ctx.log.info({ checkouts: moved }, 'moved checkouts to the archive')
      crashPoint(ctx, 'archive-after-commit')
    }
    pass.after = lastId ?? from
  }
}

async function moveSent(ctx: Context, pass: Pass, settler: Settler, days: number): Promise<void> {
  const key = `${settler.network} ${settler.address}`
  let from = pass.nonces.has(key) ? (pass.nonces.get(key) ?? null) : '0'
  for (let batch = 0; from !== null && batch < transactionBatches; batch++)
    from = await moveTransactions(ctx.db, settler, { from, days, limit: transactionsPerBatch })
  pass.nonces.set(key, from)
}
