import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'

/** What a store has really done, each seen from what is stored. */
export type StepsDone = {
  /** The address that new checkouts pay to, of the first family that has one. */
  readonly wallet: string | null
  readonly payment: boolean
  readonly key: boolean
  readonly webhook: boolean
}

/** Of each endpoint this many of the newest deliveries are looked at. */
const deliveriesMax = 50

export async function readStepsDone(db: Database, storeId: StoreId): Promise<StepsDone> {
  const [row] = await db.query<StepsDone>(
    `select (select w.address from wallets w where w.store_id = $1 and w.retired_at is null and w.registration > 0
        order by w.family, w.registration desc limit 1) as wallet,
       exists (select 1 from all_checkouts c where c.store_id = $1 and c.status = 'COMPLETED') as payment,
       exists (select 1 from api_keys k where k.store_id = $1 and k.last_used_at is not null) as key,
       exists (select 1 from webhook_endpoints e cross join lateral (
         select d.state from deliveries d where d.endpoint_id = e.id order by d.event_id desc limit ${deliveriesMax}
       ) d where e.store_id = $1 and d.state = 'delivered') as webhook`,
    [storeId],
  )
  return row ?? { wallet: null, payment: false, key: false, webhook: false }
}
