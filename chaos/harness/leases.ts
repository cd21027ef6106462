import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'

/** Of what one process at a time is in charge. */
export const allLeased = ['settlers', 'followers'] as const
export type Leased = (typeof allLeased)[number]

/**
 * Ends leases, as if their time were over. Whoever was killed would be waited for otherwise, which is ten seconds in
 * which nothing happens; and whoever is alive loses its lease in the middle of its work, which must do no harm.
 */
export async function endLeases({ eyes }: Stand, leases: readonly Leased[], tally: Tally): Promise<void> {
  // What is locked belongs to somebody in the middle of a transaction: it keeps its lease.
  for (const table of leases)
    await eyes.query(
      `update ${table} set leased_until = now() where ctid = any (array(
         select ctid from ${table} where leased_until > now() and lease_holder <> 'frozen' for update skip locked))`,
    )
  tally.count('leases ended')
}

/** Nobody settles until the lanes are freed, as if one that is frozen had them all. */
export async function holdLanes({ eyes }: Stand): Promise<void> {
  await eyes.query(`update settlers set lease_holder = 'frozen', leased_until = now() + interval '10 s'`)
}

export async function freeLanes({ eyes }: Stand): Promise<void> {
  await eyes.query(`update settlers set leased_until = now() where lease_holder = 'frozen'`)
}
