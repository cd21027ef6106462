import type { StoreStanding } from '@farthing/sdk'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import type { Mode } from '../networks.ts'
import { standingOf } from './rows.ts'

/** A store as whoever runs the deployment sees it: its name and its health, and nothing of its payments. */
export type StoreOverview = {
  readonly id: StoreId
  readonly name: string
  readonly mode: Mode
  readonly standing: StoreStanding
  readonly suspendedReason: string | null
  readonly isSignedUp: boolean
  readonly provenAt: Date | null
  readonly createdAt: Date
  readonly hasOwner: boolean
  readonly hasWallet: boolean
  /** Webhook endpoints whose deliveries fail, or that were disabled because of it. */
  readonly failingEndpoints: number
}

const columns = `s.id, s.name, s.mode, ${standingOf} as standing, s.suspended_reason as "suspendedReason",
  s.signed_up as "isSignedUp", s.proven_at as "provenAt", s.created_at as "createdAt",
  exists (select 1 from memberships m where m.store_id = s.id and m.role = 'owner') as "hasOwner",
  exists (select 1 from wallets w where w.store_id = s.id and w.retired_at is null and w.registration > 0) as "hasWallet",
  (select count(*)::integer from webhook_endpoints e where e.store_id = s.id and e.deleted_at is null
    and (e.failing_since is not null or e.disabled_reason = 'failing')) as "failingEndpoints"`

/** Newest first. `search` is a store's id, or part of its name. */
export async function listOverviews(
  db: Database,
  wanted: {
    readonly search: string
    readonly standing: StoreStanding | null
    readonly before: string | null
    readonly limit: number
  },
): Promise<StoreOverview[]> {
  const { search, standing, before, limit } = wanted
  return await db.query<StoreOverview>(
    `select ${columns} from stores s
     where ($1 = '' or s.id = $1 or strpos(lower(s.name), lower($1)) > 0)
       and ($2::text is null or ${standingOf} = $2) and ($3::text is null or s.id < $3)
     order by s.id desc limit $4`,
    [search, standing, before, limit],
  )
}

/** How many stores wait for an operator. */
export async function countWaiting(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::integer as count from stores s where admission = 'waiting' and suspended_at is null`,
  )
  return row?.count ?? 0
}

export async function readOverview(db: Database, storeId: string): Promise<StoreOverview | null> {
  const [row] = await db.query<StoreOverview>(`select ${columns} from stores s where s.id = $1`, [storeId])
  return row ?? null
}
