import type { FinalityRule, StoreStanding, WalletChanges } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId, WalletId } from '../ids.ts'
import type { Family, Mode } from '../networks.ts'
import { Problem } from '../problems.ts'
import type { Store, Wallet } from './store.ts'

type Reader = Database | Transaction

export type StoreRow = {
  id: StoreId
  mode: Mode
  name: string
  logo_url: string | null
  accent_color: string | null
  support_email: string | null
  support_url: string | null
  finality_policy: FinalityRule[]
  takes: WalletChanges
  manager_refund_limit: string
  time_zone: string
  report_currency: string
  standing: StoreStanding
  suspended_reason: string | null
  is_limited: boolean
  revision: number
  created_at: Date
}

export type WalletRow = {
  id: WalletId
  store_id: StoreId
  family: Family
  address: string
  custodial_type: Wallet['custodialType']
  is_current: boolean
  is_confirmed: boolean
  is_waiting: boolean
  unowned: boolean
  elsewhere: boolean
  ready_on: string[]
  created_at: Date
  retired_at: Date | null
  proven_at: Date | null
  shared_elsewhere: boolean
  challenge: string | null
  challenge_expires_at: Date | null
}

/** SQL: the networks on which wallet `w` has the token account that it is paid to, if it needs one. */
export const readyOn = `array(select distinct t.network from token_accounts t
  where t.owner = w.address and t.ready_at is not null)`

/** SQL: whether store `s` may create checkouts, and if not, why. */
export const standingOf = `case when s.suspended_at is not null then 'suspended'
  when s.admission = 'unproven' and s.proven_at is not null then 'approved' else s.admission end`

/**
 * SQL: the columns of store `s`, with its standing, and what a change of its wallets needs: its owners' choice, or the
 * default.
 */
export const storeColumns = `s.*, coalesce(s.wallet_changes, case when s.mode = 'live' and exists (
  select 1 from memberships m where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end) as takes,
  ${standingOf} as standing, s.signed_up and s.proven_at is null as is_limited`

export async function listStores(db: Database): Promise<Store[]> {
  const rows = await db.query<StoreRow>(`select ${storeColumns} from stores s order by s.id`)
  return rows.map(toStore)
}

export async function readStore(db: Reader, storeId: StoreId): Promise<Store | null> {
  const [row] = await db.query<StoreRow>(`select ${storeColumns} from stores s where s.id = $1`, [storeId])
  return row ? toStore(row) : null
}

/** The store's logo, if it is an image and not a link to one. */
export async function readLogo(db: Database, storeId: StoreId): Promise<string | null> {
  const [row] = await db.query<{ logo_url: string }>(
    "select logo_url from stores where id = $1 and logo_url like 'data:%'",
    [storeId],
  )
  return row?.logo_url ?? null
}

/** Locks the store for a change that new checkouts must see, and increments its revision. */
export async function lockStore(tx: Transaction, storeId: StoreId): Promise<Store> {
  const [row] = await tx.query<StoreRow>(
    `update stores s set revision = revision + 1 where s.id = $1 returning ${storeColumns}`,
    [storeId],
  )
  if (!row) throw new Problem('not_found', `No store has the id ${storeId}.`)
  return toStore(row)
}

/** SQL: whether change `c` waits for an owner. */
export const isWaiting = 'c.made is null and c.ended_at is null and c.expires_at > clock()'

const hasWaiting = `exists (select 1 from wallet_changes c where c.wallet_id = w.id and ${isWaiting})`

export const walletColumns = `w.*, coalesce(w.registration = (
  select max(o.registration) from wallets o
  where o.store_id = w.store_id and o.family = w.family and o.retired_at is null and o.registration > 0
), false) as is_current, w.registration > 0 as is_confirmed, ${hasWaiting} as is_waiting, ${readyOn} as ready_on`

export async function findActiveWallet(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
  address: string,
): Promise<Wallet | null> {
  const [row] = await tx.query<WalletRow>(
    `select ${walletColumns} from wallets w
     where w.store_id = $1 and w.family = $2 and w.address = $3 and w.retired_at is null`,
    [storeId, family, address],
  )
  return row ? toWallet(row) : null
}

export async function writeUnowned(tx: Transaction, walletId: WalletId, isUnowned: boolean): Promise<void> {
  await tx.query('update wallets set unowned = $2 where id = $1', [walletId, isUnowned])
}

/** Makes a wallet the newest registration of its family, and so the current one, even if it was retired. */
export async function renewWallet(tx: Transaction, walletId: WalletId): Promise<void> {
  await tx.query('update wallets set registration = default, retired_at = null where id = $1', [walletId])
}

export async function readWallet(db: Reader, storeId: StoreId, walletId: string): Promise<Wallet | null> {
  const [row] = await db.query<WalletRow>(
    `select ${walletColumns} from wallets w where w.store_id = $1 and w.id = $2`,
    [storeId, walletId],
  )
  return row ? toWallet(row) : null
}

export async function listWallets(
  db: Database,
  storeId: StoreId,
  page: { before: string | null; limit: number },
): Promise<Wallet[]> {
  const rows = await db.query<WalletRow>(
    `select ${walletColumns} from wallets w
     where w.store_id = $1 and w.retired_at is null and (w.registration > 0 or w.unowned or ${hasWaiting})
       and ($2::text is null or w.id < $2)
     order by w.id desc limit $3`,
    [storeId, page.before, page.limit],
  )
  return rows.map(toWallet)
}

/** The wallet of each family that new checkouts are paid to. */
export async function listCurrent(db: Database, storeId: StoreId): Promise<Wallet[]> {
  const rows = await db.query<WalletRow>(
    `select * from (select ${walletColumns} from wallets w where w.store_id = $1 and w.retired_at is null) w
     where w.is_current order by w.family`,
    [storeId],
  )
  return rows.map(toWallet)
}

export async function retireWallet(tx: Transaction, walletId: WalletId, now: Date): Promise<void> {
  await tx.query('update wallets set retired_at = $2 where id = $1 and retired_at is null', [walletId, now])
}

export function toStore(row: StoreRow): Store {
  return {
    id: row.id,
    mode: row.mode,
    name: row.name,
    logoUrl: row.logo_url,
    accentColor: row.accent_color,
    supportEmail: row.support_email,
    supportUrl: row.support_url,
    finalityPolicy: row.finality_policy,
    timeZone: row.time_zone,
    reportCurrency: row.report_currency,
    walletChanges: row.takes,
    managerRefundLimit: row.manager_refund_limit,
    standing: row.standing,
    suspendedReason: row.suspended_reason,
    isLimited: row.is_limited,
    revision: row.revision,
    createdAt: row.created_at,
  }
}

export function toWallet(row: WalletRow): Wallet {
  return {
    id: row.id,
    storeId: row.store_id,
    family: row.family,
    address: row.address,
    custodialType: row.custodial_type,
    isCurrent: row.is_current,
    isConfirmed: row.is_confirmed,
    isWaiting: row.is_waiting,
    isUnowned: row.unowned,
    isElsewhere: row.elsewhere,
    readyOn: row.ready_on,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
    provenAt: row.proven_at,
    isSharedElsewhere: row.shared_elsewhere,
  }
}

/** Serialises the rest of the transaction for the store. Returns the store's revision. */
export async function holdStore(tx: Transaction, storeId: StoreId): Promise<number | null> {
  const [row] = await tx.query<{ revision: number }>(
    'select revision from stores where id = $1 for no key update',
    [storeId],
  )
  return row?.revision ?? null
}

/** The steps that a store has really done, each derived from stored data. */
export type StepsDone = {
  /** The address that new checkouts pay to, in the first family that has one. */
  readonly wallet: string | null
  readonly payment: boolean
  readonly key: boolean
  readonly webhook: boolean
}

/** How many of each endpoint's newest deliveries are read. */
const deliveriesMax = 50

export async function readStepsDone(db: Database, storeId: StoreId): Promise<StepsDone> {
  const [row] = await db.query<StepsDone>(
    `select (select w.address from wallets w where w.store_id = $1 and w.retired_at is null and w.registration > 0
        order by w.family, w.registration desc limit 1) as wallet,
       exists (select 1 from checkouts c where c.store_id = $1 and c.status = 'COMPLETED') as payment,
       exists (select 1 from api_keys k where k.store_id = $1 and k.last_used_at is not null) as key,
       exists (select 1 from webhook_endpoints e cross join lateral (
         select d.state from deliveries d where d.endpoint_id = e.id order by d.event_id desc limit ${deliveriesMax}
       ) d where e.store_id = $1 and d.state = 'delivered') as webhook`,
    [storeId],
  )
  return row ?? { wallet: null, payment: false, key: false, webhook: false }
}
