import type { Context } from '../context.ts'
import { listProcessing } from './status-rows.ts'
import { updateStatus } from './update-status.ts'

const checkoutsPerRun = 500

/** Re-evaluates every PROCESSING checkout, to catch anything that was missed. */
export async function reviewCheckouts(ctx: Context, now: Date): Promise<void> {
  let after = ''
  for (;;) {
    const ids = await listProcessing(ctx.db, after, checkoutsPerRun)
    const last = ids.at(-1)
    if (last === undefined) return
    await ctx.db.transaction((tx) => updateStatus(ctx, tx, ids, now))
    after = last
  }
}
