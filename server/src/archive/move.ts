import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { firstIdAt } from '../ids.ts'
import {
  findEnded,
  listSettlers,
  moveEnded,
  moveTransactions,
  openMonth,
  type SentPlace,
  type Settler,
} from './rows.ts'

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
 * One pass in so many, about one a day, looks again at the transactions that could not move: a payment that waits for a
 * decision holds up its whole batch, so over the years there may be many. The others look only at those that have become
 * old enough since.
 */
const passesPerLook = 144

/**
 * Where a pass is: through the checkouts, from the oldest to those that are too young, and then through what each settler
 * sent. Whatever may not move yet is passed, so that it holds up nothing that follows.
 */
export type Pass = {
  after: string
  /** How far it is through what each settler sent. */
  readonly sent: Map<string, SentPlace>
  /** How many passes ago the first of what they sent was looked at. */
  sinceLook: number
  notBefore: Date
}

export const firstPass = (): Pass => ({ after: '', sent: new Map(), sinceLook: 0, notBefore: new Date(0) })

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
      if ([...pass.sent.values()].some(({ isDone }) => !isDone)) return
      pass.after = ''
      pass.sinceLook = (pass.sinceLook + 1) % passesPerLook
      for (const [key, { from }] of pass.sent)
        pass.sent.set(key, { from: pass.sinceLook === 0 ? '0' : from, isDone: false })
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
  let place = pass.sent.get(key) ?? { from: '0', isDone: false }
  for (let batch = 0; !place.isDone && batch < transactionBatches; batch++)
    place = await moveTransactions(ctx.db, settler, { from: place.from, days, limit: transactionsPerBatch })
  pass.sent.set(key, place)
}
