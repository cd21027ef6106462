import type { Database } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'

/** A store's owner who has no passkey, for the demo store of `dev`. Everybody else gets in by an invitation. */
export async function insertOwner(
  db: Database,
  storeId: StoreId,
  { id, name }: { readonly id: MemberId; readonly name: string },
  now: Date,
): Promise<void> {
  await db.query(
    `with person as (insert into members (id, name, created_at) values ($1, $2, $4))
     insert into memberships (store_id, member_id, role, created_at) values ($3, $1, 'owner', $4)`,
    [id, name, storeId, now],
  )
}
