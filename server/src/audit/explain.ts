import type { Actor } from '@farthing/sdk'
import type { Database } from '../database/db.ts'

/** Writes down what a store knows about its open finding. False if there is no such finding, or this amount was explained before. */
export async function explainFinding(
  db: Database,
  storeId: string,
  findingId: string,
  { note, actor }: { readonly note: string; readonly actor: Actor },
): Promise<boolean> {
  const rows = await db.query(
    `insert into audit_explanations (finding_id, store_id, amount, note, actor, explained_at)
     select f.id, f.store_id, f.amount, $3, $4, clock() from audit_findings f
     where f.id::text = $2 and f.store_id = $1 and f.resolved_at is null
     on conflict (finding_id, amount) do nothing returning 1 as one`,
    [storeId, findingId, note, JSON.stringify(actor)],
  )
  return rows.length > 0
}
