import type { Database } from '../../database/db.ts'
import type { EndpointId, StoreId } from '../../ids.ts'

/** An endpoint that does not take what it is sent. */
export type Troubled = {
  readonly id: EndpointId
  readonly url: string
  /** Null once it was switched off for it. */
  readonly failingSince: Date | null
}

/** At most as many as a store may have. */
export async function listTroubled(db: Database, storeId: StoreId): Promise<Troubled[]> {
  return await db.query<Troubled>(
    `select id, url, case when disabled_at is null then failing_since end as "failingSince" from webhook_endpoints
     where store_id = $1 and deleted_at is null
       and (disabled_reason in ('failing', 'gone') or disabled_at is null and failing_since is not null) order by id`,
    [storeId],
  )
}
