import type { Context } from '../context.ts'
import { noteElsewhere } from './adopt.ts'
import { ask, orAway, type Uses } from './directory.ts'
import * as rows from './rows.ts'

export type Load = { readonly stores: number; readonly paymentsPerHour: number }

/**
 * Once a minute `work` tells the directory this cell's load and URLs, with a new stamp. If the directory has another stamp
 * than the last one of this database, one of the two was restored, or a copy of this database runs: directory.ts says what
 * follows. A report whose answer was lost is repeated with the same stamp, by any process, so it is not mistaken for a
 * restore.
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
  await orAway(ctx, report(ctx, uses, rows.toSelf(ctx, state), await readLoad()))
}

async function report(ctx: Context, uses: Uses, self: rows.Self, load: Load): Promise<void> {
  const { tag, identity, stamp, nextStamp } = self
  const { baseUrl, consoleUrl } = ctx.config
  // No row if the directory does not know the cell, or knows another database as this cell.
  const [known] = await ask(ctx, (directory) =>
    directory.query<{ stamp: string; isOlder: boolean; takesStores: boolean }>(
      `update cells c set stamp = case when c.stamp in ($3, $4) then $4 else c.stamp end, seen_at = clock(),
         stores = $5, payments_per_hour = $6, api_url = $7, console_url = coalesce(nullif($8, ''), c.console_url)
       where c.tag = $1 and c.identity = $2
       returning c.stamp, c.stamp < $3 as "isOlder", c.takes_stores as "takesStores"`,
      [tag, identity, stamp, nextStamp, load.stores, load.paymentsPerHour, baseUrl, consoleUrl],
    ),
  )
  if (known?.stamp === nextStamp) await rows.writeStamped(ctx.db, known.stamp, known.takesStores)
  const now = await rows.readState(ctx.db)
  // If the state has changed, another process of this cell has reported or adopted since, and nothing is wrong.
  if (known && now.stamp === stamp && now.nextStamp === nextStamp) {
    // The generation is raised once: if the directory already waits for this cell to adopt it, this changes nothing.
    const raise =
      'update generation g set number = g.number + 1 from cells c where c.tag = $1 and c.stamp = $2 and c.generation = g.number'
    const contest = 'update cells set is_contested = true where tag = $1 and stamp = $2'
    await ask(ctx, (directory) => directory.query(known.isOlder ? raise : contest, [tag, known.stamp]))
    // Another cell may use what this one released after its backup was made.
    if (!known.isOlder) await noteElsewhere(ctx, uses)
  }
  const obstacle = await rows.findObstacle(ctx)
  if (obstacle) ctx.log.error(`${obstacle.says}. ${obstacle.fix}`)
}
