import type { Stand } from './stand.ts'
import type { Tally } from './tally.ts'

/** The tables whose rows are leased to one process at a time. */
export const allLeased = ['settlers', 'followers'] as const
export type Leased = (typeof allLeased)[number]

/**
 * Expires leases early. Otherwise nothing would happen for the ten seconds until a killed process's lease expires; and a
 * live process loses its lease in the middle of its work, which must do no harm.
 */
export async function endLeases({ observer }: Stand, leases: readonly Leased[], tally: Tally): Promise<void> {
  // A locked row belongs to a process in the middle of a transaction, so it keeps its lease.
  for (const table of leases)
    await observer.query(
      `update ${table} set leased_until = now() where ctid = any (array(
         select ctid from ${table} where leased_until > now() and lease_holder <> 'frozen' for update skip locked))`,
    )
  tally.count('leases ended')
}

/** Stops all settling until the lanes are freed, as if a frozen process held every lease. */
export async function holdLanes({ observer }: Stand): Promise<void> {
  await observer.query(`update settlers set lease_holder = 'frozen', leased_until = now() + interval '10 s'`)
}

export async function freeLanes({ observer }: Stand): Promise<void> {
  await observer.query(`update settlers set leased_until = now() where lease_holder = 'frozen'`)
}
