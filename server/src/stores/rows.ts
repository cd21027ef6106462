import type { Database, Transaction } from '../database/db.ts'
import type { StoreId, WalletId } from '../ids.ts'
import type { Family } from '../networks.ts'
import { Problem } from '../problems.ts'
import type { Store, Wallet } from './store.ts'

type Reader = Database | Transaction

/** SQL: the networks on which wallet `w` has the token account that it is paid to, if it needs one. */
export const readyOn = `array(select distinct t.network from token_accounts t
  where t.owner = w.address and t.ready_at is not null)`

/** SQL: the newest wallet of each family of store `s`, which is the one in use unless it waits for its holder. */
const newestWallets = `select distinct on (w.family) w.custodial_type from wallets w
  where w.store_id = s.id and w.retired_at is null and (w.registration > 0 or w.unowned)
  order by w.family, w.registration desc, w.id desc`

/**
 * SQL: whether store `s` may create checkouts, and if not, why. One that was to prove its wallet waits for an operator if
 * all its wallets are custodial: nobody could prove those.
 */
export const standingOf = `case when s.suspended_at is not null then 'suspended'
  when s.admission <> 'unproven' then s.admission when s.proven_at is not null then 'approved'
  when (select bool_and(w.custodial_type = 'CUSTODIAL') from (${newestWallets}) w) then 'waiting'
  else 'unproven' end`

/** SQL: a Store from `s`. Unless its owners have chosen, a live store with an owner needs one to change its wallets. */
export const storeColumns = `s.id, s.mode, s.name, s.logo_url as "logoUrl", s.accent_color as "accentColor",
  s.support_email as "supportEmail", s.support_url as "supportUrl", s.legal_name as "legalName",
  s.legal_address as "legalAddress", s.tax_id as "taxId", s.finality_policy as "finalityPolicy",
  coalesce(s.wallet_changes, case when s.mode = 'live' and exists (select 1 from memberships m
    where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end) as "walletChanges",
  s.manager_refund_limit as "managerRefundLimit", s.time_zone as "timeZone", s.report_currency as "reportCurrency",
  ${standingOf} as standing, s.suspended_reason as "suspendedReason",
  s.signed_up and s.proven_at is null as "isLimited", s.revision, s.created_at as "createdAt"`

export async function listStores(db: Database): Promise<Store[]> {
  return await db.query<Store>(`select ${storeColumns} from stores s order by s.id`)
}

export async function readStore(db: Reader, storeId: StoreId): Promise<Store | null> {
  const [row] = await db.query<Store>(`select ${storeColumns} from stores s where s.id = $1`, [storeId])
  return row ?? null
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
  const [row] = await tx.query<Store>(
    `update stores s set revision = revision + 1 where s.id = $1 returning ${storeColumns}`,
    [storeId],
  )
  if (!row) throw new Problem('not_found', `No store has the id ${storeId}.`)
  return row
}

/** SQL: whether change `c` waits for an owner. */
export const isWaiting = 'c.made is null and c.ended_at is null and c.expires_at > clock()'

const hasWaiting = `exists (select 1 from wallet_changes c where c.wallet_id = w.id and ${isWaiting})`

/** SQL: a Wallet from `w`. */
export const walletColumns = `w.id, w.store_id as "storeId", w.family, w.address, w.custodial_type as "custodialType",
  coalesce(w.registration = (select max(o.registration) from wallets o where o.store_id = w.store_id
    and o.family = w.family and o.retired_at is null and o.registration > 0), false) as "isCurrent",
  w.registration > 0 as "isConfirmed", ${hasWaiting} as "isWaiting", w.unowned as "isUnowned",
  w.elsewhere as "isElsewhere", ${readyOn} as "readyOn", w.created_at as "createdAt", w.retired_at as "retiredAt",
  w.proven_at as "provenAt", w.shared_elsewhere as "isSharedElsewhere"`

export async function findActiveWallet(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
  address: string,
): Promise<Wallet | null> {
  const [row] = await tx.query<Wallet>(
    `select ${walletColumns} from wallets w
     where w.store_id = $1 and w.family = $2 and w.address = $3 and w.retired_at is null`,
    [storeId, family, address],
  )
  return row ?? null
}

export async function writeUnowned(tx: Transaction, walletId: WalletId, isUnowned: boolean): Promise<void> {
  await tx.query('update wallets set unowned = $2 where id = $1', [walletId, isUnowned])
}

/** Makes a wallet the newest registration of its family, and so the current one, even if it was retired. */
export async function renewWallet(tx: Transaction, walletId: WalletId): Promise<void> {
  await tx.query('update wallets set registration = default, retired_at = null where id = $1', [walletId])
}

export async function readWallet(db: Reader, storeId: StoreId, walletId: string): Promise<Wallet | null> {
  const [row] = await db.query<Wallet>(
    `select ${walletColumns} from wallets w where w.store_id = $1 and w.id = $2`,
    [storeId, walletId],
  )
  return row ?? null
}

export async function listWallets(
  db: Database,
  storeId: StoreId,
  page: { before: string | null; limit: number },
): Promise<Wallet[]> {
  return await db.query<Wallet>(
    `select ${walletColumns} from wallets w
     where w.store_id = $1 and w.retired_at is null and (w.registration > 0 or w.unowned or ${hasWaiting})
       and ($2::text is null or w.id < $2)
     order by w.id desc limit $3`,
    [storeId, page.before, page.limit],
  )
}

/** A family's wallets that are not retired: the one in use first, then the one that would follow it. */
export async function listActive(db: Reader, storeId: StoreId, family: Family): Promise<Wallet[]> {
  return await db.query<Wallet>(
    `select ${walletColumns} from wallets w
     where w.store_id = $1 and w.family = $2 and w.retired_at is null and w.registration > 0
     order by w.registration desc limit 2`,
    [storeId, family],
  )
}

/** The newest registration of each address that was in use and is not now, newest first. */
export async function listFormer(db: Database, storeId: StoreId, limit: number): Promise<Wallet[]> {
  return await db.query<Wallet>(
    `select * from (
       select distinct on (w.family, w.address) ${walletColumns} from wallets w
       where w.store_id = $1 and w.registration > 0
       order by w.family, w.address, w.retired_at desc nulls first, w.registration desc
     ) w where not w."isCurrent" order by w.id desc limit $2`,
    [storeId, limit],
  )
}

/** The wallet of each family that new checkouts are paid to. */
export async function listCurrent(db: Database, storeId: StoreId): Promise<Wallet[]> {
  return await db.query<Wallet>(
    `select * from (select ${walletColumns} from wallets w where w.store_id = $1 and w.retired_at is null) w
     where w."isCurrent" order by w.family`,
    [storeId],
  )
}

export async function retireWallet(tx: Transaction, walletId: WalletId, now: Date): Promise<void> {
  await tx.query('update wallets set retired_at = $2 where id = $1 and retired_at is null', [walletId, now])
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
  /** Every wallet in use is proven, or said to be custodial. */
  readonly proof: boolean
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
       (select coalesce(bool_and(w.proven_at is not null or w.custodial_type = 'CUSTODIAL'), false) from (
         select distinct on (w.family) w.proven_at, w.custodial_type from wallets w
         where w.store_id = $1 and w.retired_at is null and w.registration > 0
         order by w.family, w.registration desc) w) as proof,
       exists (select 1 from checkouts c where c.store_id = $1 and c.status = 'COMPLETED') as payment,
       exists (select 1 from api_keys k where k.store_id = $1 and k.last_used_at is not null) as key,
       exists (select 1 from webhook_endpoints e cross join lateral (
         select d.state from deliveries d where d.endpoint_id = e.id order by d.event_id desc limit ${deliveriesMax}
       ) d where e.store_id = $1 and d.state = 'delivered') as webhook`,
    [storeId],
  )
  return row ?? { wallet: null, proof: false, payment: false, key: false, webhook: false }
}
