import type { Database } from '../../database/db.ts'

/** The settlers that are not retired, or have something that is not mined or not settled. */
export async function listUsedSettlers(
  db: Database,
): Promise<{ readonly network: string; readonly address: string }[]> {
  return await db.query<{ network: string; address: string }>(
    `select s.network, s.address from settlers s
     where s.state <> 'retired' or s.next_nonce > s.mined_nonce
       or exists (select 1 from transactions t
         where t.network = s.network and t.settler = s.address and t.nonce >= s.mined_nonce and t.mined_at is null)
       or exists (select 1 from authorizations a
         where a.network = s.network and a.settler = s.address and a.state in ('claimed', 'sent') and not a.is_credited)
     order by s.network, s.address`,
  )
}

/** A settler as the directory names it. */
type Named = { readonly scope: string; readonly address: string }

/** Writes whether another cell owns these settlers. */
export async function writeSettlersElsewhere(
  db: Database,
  settlers: readonly Named[],
  isElsewhere: boolean,
): Promise<void> {
  await db.query(
    `update settlers s set elsewhere = $2 from json_to_recordset($1) as i (scope text, address text)
     where s.network = i.scope and s.address = i.address and s.elsewhere <> $2`,
    [JSON.stringify(settlers), isElsewhere],
  )
}
