import { rebuildRollups } from '../checkouts/rollups/count.ts'
import { isLogWhole } from '../checkouts/rollups/rows.ts'
import type { Context } from '../context.ts'
import { listStores } from '../stores/rows.ts'
import { parseStore } from './operator.ts'
import { UsageError } from './usage.ts'

/** `rollups rebuild`. Returns the text to print. */
export async function rollupsCommand(
  ctx: Context,
  [verb]: readonly string[],
  options: Readonly<Record<string, string | boolean | undefined>>,
): Promise<string> {
  if (verb !== 'rebuild') throw new UsageError('Usage: rollups rebuild [--store STORE] [--force].')
  const all = (await listStores(ctx.db)).map(({ id }) => id)
  const wanted = typeof options.store === 'string' ? [parseStore(options.store)] : all
  const unknown = wanted.find((id) => !all.includes(id))
  if (unknown) throw new UsageError(`There is no store ${unknown}. Run: store list`)
  for (const storeId of wanted)
    if (options.force !== true && !(await isLogWhole(ctx.db, storeId)))
      throw new UsageError(
        `The log of ${storeId} is not whole: events older than RETENTION_DAYS were deleted, and their figures would be lost. To count the rest anyway: --force.`,
      )
  let events = 0n
  for (const storeId of wanted) events += await rebuildRollups(ctx, storeId)
  return `Counted ${wanted.length} ${wanted.length === 1 ? 'store' : 'stores'} again, from ${events} events.`
}
