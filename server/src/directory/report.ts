import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { assertUses } from './assert.ts'
import { lockEpoch, raiseEpoch, writeReport } from './cell-rows.ts'
import { ask } from './directory.ts'
import { readState, writeReported } from './state-rows.ts'
import type { Uses } from './uses.ts'

export type Load = { readonly stores: number; readonly paymentsPerHour: number }

/**
 * Once a minute `work` tells the directory this cell's load, and hears the epoch. The directory counts the reports, and
 * both sides remember the count: if the directory's goes back, it was restored and may have forgotten claims, so the
 * epoch is raised; if ours does, our own database was restored. In either case this cell asserts what it uses.
 */
export async function reportToDirectory(
  ctx: Context,
  uses: Uses,
  readLoad: () => Promise<Load>,
): Promise<void> {
  const state = await readState(ctx.db)
  try {
    const load = await readLoad()
    const reported = await ask(ctx, (directory) => writeReport(directory, ctx.config.cell, load))
    if (!reported) {
      ctx.log.error(
        'the directory does not know this cell; if it was restored, run: directory restored --cells LIST',
      )
      return
    }
    const { reports, takesStores, isAsserted } = reported
    const gap = BigInt(reports) - BigInt(state.reports)
    const epoch = gap > 0n ? reported.epoch : await raise(ctx)
    if (gap !== 1n || !isAsserted || epoch !== state.epoch) await assertUses(ctx, uses, epoch)
    await writeReported(ctx.db, reports, takesStores)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'unavailable') throw error
    ctx.log.warn(
      { err: error.cause ?? error },
      'the directory does not answer; everything works except adding wallets and settlers',
    )
  }
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
