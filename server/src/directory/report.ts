import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { describeTaken } from './adopt.ts'
import { assertUses } from './assert.ts'
import { lockEpoch, raiseEpoch, readIdentity, writeDoubled, writeReport } from './cell-rows.ts'
import { ask } from './directory.ts'
import { reclaimUses } from './reclaim.ts'
import type { Self } from './rows.ts'
import { readState, writeReported } from './state-rows.ts'
import type { Uses } from './uses.ts'

/** How many reports of this process in a row have seen a gap. */
export type Turn = { gaps: number }

export type Load = { readonly stores: number; readonly paymentsPerHour: number }

/**
 * Once a minute `work` tells the directory this cell's load and URLs, and hears the epoch. The directory counts the
 * reports, and both sides remember the count: if the directory's goes back, it was restored and may have forgotten claims,
 * so the epoch is raised; if ours does, our own database was restored. In either case this cell asserts what it uses.
 *
 * A restored database sees one gap in the count, and none from then on. A copy that runs beside its original, such as the
 * old server that was started again after a move, counts in between, so both see a gap each time: the second in a row is
 * an alarm.
 */
export async function reportToDirectory(
  ctx: Context,
  uses: Uses,
  readLoad: () => Promise<Load>,
  turn: Turn,
): Promise<void> {
  const state = await readState(ctx.db)
  const { identity } = state
  if (identity === null) return
  const self = { tag: ctx.config.cell, identity }
  const { gaps } = turn
  // Unless all goes well: a report that failed may have been counted, which makes a gap too.
  turn.gaps = 0
  try {
    const load = await readLoad()
    const { baseUrl: apiUrl, consoleUrl } = ctx.config
    const cell = { ...self, apiUrl, consoleUrl, takesStores: state.takesStores, ...load }
    const reported = await ask(ctx, (directory) => writeReport(directory, cell))
    if (!reported) return await explain(ctx, self)
    const { reports, takesStores, isAsserted } = reported
    const gap = BigInt(reports) - BigInt(state.reports)
    const epoch = gap > 0n ? reported.epoch : await raise(ctx)
    if (gap !== 1n || !isAsserted || epoch !== state.epoch) await assertUses(ctx, uses, self, epoch)
    await reclaimUses(ctx, uses, self, epoch)
    await writeReported(ctx.db, state, { reports, takesStores })
    if (gap > 1n) turn.gaps = gaps + 1
    await tellDoubled(ctx, self, turn.gaps > 1 || (gap > 1n && reported.isDoubled), reported.isDoubled)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'unavailable') throw error
    ctx.log.warn(
      { err: error.cause ?? error },
      'the directory does not answer; everything works except adding wallets and settlers',
    )
  }
}

async function explain(ctx: Context, { tag }: Self): Promise<void> {
  const known = await ask(ctx, (directory) => readIdentity(directory, tag))
  ctx.log.error(
    known === undefined
      ? 'the directory does not know this cell; if the directory was restored, run: directory restored --cells LIST; if the cell was removed, stop its serve and work'
      : describeTaken(tag),
  )
}

async function tellDoubled(ctx: Context, self: Self, isDoubled: boolean, was: boolean): Promise<void> {
  if (isDoubled !== was) await ask(ctx, (directory) => writeDoubled(directory, self, isDoubled))
  if (isDoubled)
    ctx.log.error(
      'a copy of this database runs beside it as the same cell, such as the old server after a move; both send from the same settlers: stop serve, work and PostgreSQL of the one that must not run, now; until then no wallet or settler is granted',
    )
  else if (was) ctx.log.info('only one database reports as this cell again')
}

async function raise(ctx: Context): Promise<string> {
  const epoch = await ask(ctx, (directory) =>
    directory.transaction(async (tx) => {
      await lockEpoch(tx)
      return await raiseEpoch(tx)
    }),
  )
  ctx.log.error(
    { epoch },
    'the directory is older than what this cell has seen of it, so it was restored; nothing is granted until every cell has told what it uses; if a cell is missing in directory list, run: directory restored --cells LIST',
  )
  return epoch
}
