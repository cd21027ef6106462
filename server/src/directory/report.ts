import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { noteElsewhere } from './adopt.ts'
import { ask, type Uses } from './directory.ts'
import * as rows from './rows.ts'

export type Load = { readonly stores: number; readonly paymentsPerHour: number }

/**
 * Once a minute `work` tells the directory this cell's load and URLs, with a new stamp. If the directory has another than
 * this database drew last, one of the two was restored, or a copy of this database runs: directory.ts says what follows.
 * A report whose answer was lost is repeated with the same stamp, by any process, so it is not taken for that.
 */
export async function reportToDirectory(
  ctx: Context,
  uses: Uses,
  readLoad: () => Promise<Load>,
): Promise<void> {
  const [state] = await ctx.db.query<rows.State>(
    `update directory_state set next_stamp = coalesce(next_stamp, stamp + ${rows.step})
     where generation is not null returning ${rows.stateColumns}`,
  )
  if (!state) return
  const self = rows.toSelf(ctx, state)
  try {
    const load = await readLoad()
    const reported = await ask(ctx, () => writeReport(ctx, self, load))
    if (reported?.stamp === state.nextStamp)
      await rows.writeStamped(ctx.db, reported.stamp, reported.takesStores)
    const now = await rows.readState(ctx.db)
    // If it has moved, another process of this cell has reported or adopted since, and nothing is wrong.
    if (reported && now.stamp === state.stamp && now.nextStamp === state.nextStamp)
      if (reported.isOlder) await raiseGeneration(ctx)
      else await contest(ctx, uses, reported.stamp)
    const obstacle = await ask(ctx, (directory) => rows.findObstacle(directory, rows.toSelf(ctx, now)))
    if (obstacle) ctx.log.error(`${obstacle.says}. ${obstacle.fix}`)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'unavailable') throw error
    ctx.log.warn(
      { err: error.cause ?? error },
      'the directory does not answer; everything works except adding wallets and settlers',
    )
  }
}

type Reported = {
  /** The one that was reported, or the one that the directory has instead. */
  readonly stamp: string
  readonly isOlder: boolean
  readonly takesStores: boolean
}

/** Undefined if the directory does not know the cell, or another database is it. */
async function writeReport(
  { config, directory }: Context,
  { tag, identity, stamp, nextStamp }: rows.Self,
  { stores, paymentsPerHour }: Load,
): Promise<Reported | undefined> {
  const found = await directory?.query<Reported>(
    `update cells c set stamp = case when c.stamp in ($3, $4) then $4 else c.stamp end, seen_at = clock(),
       stores = $5, payments_per_hour = $6, api_url = $7, console_url = coalesce(nullif($8, ''), c.console_url)
     where c.tag = $1 and c.identity = $2
     returning c.stamp, c.stamp < $3 as "isOlder", c.takes_stores as "takesStores"`,
    [tag, identity, stamp, nextStamp, stores, paymentsPerHour, config.baseUrl, config.consoleUrl],
  )
  return found?.[0]
}

/** Once: a directory that waits for this cell to adopt it was told before. */
async function raiseGeneration(ctx: Context): Promise<void> {
  await ask(ctx, (directory) =>
    directory.query(
      'update generation g set number = g.number + 1 from cells c where c.tag = $1 and c.generation = g.number',
      [ctx.config.cell],
    ),
  )
}

/** Stops all grants to this cell, and notes what was released before this database was restored, and is used elsewhere. */
async function contest(ctx: Context, uses: Uses, stamp: string): Promise<void> {
  await ask(ctx, (directory) =>
    directory.query('update cells set is_contested = true where tag = $1 and stamp = $2', [
      ctx.config.cell,
      stamp,
    ]),
  )
  await noteElsewhere(ctx, uses)
}
