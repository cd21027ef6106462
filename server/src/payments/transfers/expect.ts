import type { Context } from '../../context.ts'
import type { Database } from '../../database/db.ts'

/**
 * Makes the references of these checkouts due for a lookup at once, unless they were just looked up: somebody looks at
 * the checkouts, so a transfer may come at any moment. While nobody looks, `work` asks rarely, because each reference
 * takes a separate call and most open checkouts are abandoned.
 */
export function expectTransfers({ db, log }: Context, checkoutIds: readonly string[]): void {
  if (checkoutIds.length === 0) return
  makeDue(db, checkoutIds, pace).catch((error: unknown) =>
    log.warn(
      { err: error },
      'could not record that somebody looks at a checkout; a transfer to it is found up to a minute later',
    ),
  )
}

/**
 * Every two seconds at first, then each time a tenth of the reference's age has passed, but at least every ten seconds.
 */
const pace = { ageShare: 10, secondsMin: 2, secondsMax: 10 }

async function makeDue(
  db: Database,
  checkoutIds: readonly string[],
  { ageShare, secondsMin, secondsMax }: typeof pace,
): Promise<void> {
  await db.query(
    `update reserved_amounts r set looked_at = null
     from (select checkout_id, network, asset from reserved_amounts
           where checkout_id = any($1) and reference is not null and freed_at is null
             and looked_at <= clock() - least(greatest((clock() - reserved_at) / $2::integer,
               make_interval(secs => $3)), make_interval(secs => $4))
           order by checkout_id, network, asset for update skip locked) due
     where r.checkout_id = due.checkout_id and r.network = due.network and r.asset = due.asset`,
    [checkoutIds, ageShare, secondsMin, secondsMax],
  )
}
