import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { moveCheckouts } from './move.ts'
import { lockExpired } from './rows.ts'

/** Keeps a transaction short when a backlog has built up. */
const checkoutsPerRun = 500

/** A chain that no worker follows any more must not keep its checkouts open forever. */
const followerPatienceHours = 24

/** Expires OPEN checkouts whose time has passed. Returns how many. Any number of processes may run it at once. */
export async function expireCheckouts(ctx: Context, now: Date): Promise<number> {
  const expired = await ctx.db.transaction(async (tx) => {
    const due = await lockExpired(tx, checkoutsPerRun, followerPatienceHours)
    if (due.length === 0) return 0
    const moved = await moveCheckouts(ctx, tx, due, { status: 'EXPIRED' }, now)
    crashPoint(ctx, 'expire-before-commit')
    return moved.length
  })
  if (expired > 0) crashPoint(ctx, 'expire-after-commit')
  ctx.metrics.checkoutsExpired.inc(expired)
  return expired
}
