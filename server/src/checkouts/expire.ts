import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import { type CheckoutRow, moveCheckouts, toCheckout } from './rows.ts'

/** Keeps a transaction short when a backlog has built up. */
const checkoutsPerRun = 500

/** A chain that no worker follows any more must not keep its checkouts open forever. */
const followerPatienceHours = 24

/**
 * Expires OPEN checkouts whose time has passed. Returns how many. Any number of processes may run it at once: each
 * skips the checkouts that another one has locked. A checkout with an amount reserved for plain transfers expires only
 * after its chain was read up to the expiry. If the chain is no longer followed, that takes at most
 * `followerPatienceHours`.
 */
export async function expireCheckouts(ctx: Context, now: Date): Promise<number> {
  const expired = await ctx.db.transaction(async (tx) => {
    const due = await tx.query<CheckoutRow>(
      `select * from checkouts c where c.status = 'OPEN' and c.expires_at <= clock()
         and not exists (select 1 from reserved_amounts r left join followers f on f.network = r.network
           where r.checkout_id = c.id and coalesce(f.head_time, 'epoch') < c.expires_at
             and c.expires_at > clock() - make_interval(hours => $2))
       order by c.expires_at limit $1 for update of c skip locked`,
      [checkoutsPerRun, followerPatienceHours],
    )
    if (due.length === 0) return 0
    const moved = await moveCheckouts(ctx, tx, due.map(toCheckout), { status: 'EXPIRED' }, now)
    crashPoint(ctx, 'expire-before-commit')
    return moved.length
  })
  if (expired > 0) crashPoint(ctx, 'expire-after-commit')
  ctx.metrics.checkoutsExpired.inc(expired)
  return expired
}
