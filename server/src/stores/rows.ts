import type { FinalityRule, StoreStanding, WalletChanges } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId, WalletId } from '../ids.ts'
import type { Family, Mode } from '../networks.ts'
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

type WalletRow = {
  id: WalletId
  store_id: StoreId
  family: Family
  address: string
  custodial_type: Wallet['custodialType']
  is_current: boolean
  is_confirmed: boolean
  is_waiting: boolean
  unclaimed: boolean
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
 * SQL: the columns of store `s`, with its standing and what it takes to change its wallets: what its owners chose, or
 * else the default.
 */
export const storeColumns = `s.*, coalesce(s.wallet_changes, case when s.mode = 'live' and exists (
  select 1 from memberships m where m.store_id = s.id and m.role = 'owner') then 'member' else 'key' end) as takes,
  ${standingOf} as standing, s.signed_up and s.proven_at is null as is_limited`

export async function insertStore(tx: Transaction, store: Store): Promise<void> {
  await tx.query(
    `insert into stores (id, mode, name, finality_policy, created_at, support_email, support_url, admission, signed_up)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      store.id,
      store.mode,
      store.name,
      JSON.stringify(store.finalityPolicy),
      store.createdAt,
      store.supportEmail,
      store.supportUrl,
      store.standing,
      store.isLimited,
    ],
  )
}

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
export async function lockStore(tx: Transaction, storeId: StoreId): Promise<Store | null> {
  const [row] = await tx.query<StoreRow>(
    `update stores s set revision = revision + 1 where s.id = $1 returning ${storeColumns}`,
    [storeId],
  )
  return row ? toStore(row) : null
}

export async function updateStore(tx: Transaction, store: Store): Promise<void> {
  await tx.query(
    `update stores set name = $2, logo_url = $3, accent_color = $4, finality_policy = $5, support_email = $6,
       support_url = $7, time_zone = $8, report_currency = $9 where id = $1`,
    [
      store.id,
      store.name,
      store.logoUrl,
      store.accentColor,
      JSON.stringify(store.finalityPolicy),
      store.supportEmail,
      store.supportUrl,
      store.timeZone,
      store.reportCurrency,
    ],
  )
}

/** SQL: whether change `c` waits for an owner. */
export const isWaiting = 'c.made is null and c.ended_at is null and c.expires_at > clock()'

const hasWaiting = `exists (select 1 from wallet_changes c where c.wallet_id = w.id and ${isWaiting})`

/** What is known about a wallet that is about to be registered. */
type NewWallet = Omit<
  Wallet,
  'isCurrent' | 'isConfirmed' | 'isWaiting' | 'isElsewhere' | 'readyOn' | 'retiredAt'
>

const walletColumns = `w.*, coalesce(w.registration = (
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

/** A wallet that has never been current; `renewWallet` makes it so. */
export async function insertWallet(tx: Transaction, wallet: NewWallet): Promise<void> {
  await tx.query(
    `insert into wallets (id, store_id, family, address, custodial_type, created_at, proven_at, shared_elsewhere,
       unclaimed, registration)
     overriding system value values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`,
    [
      wallet.id,
      wallet.storeId,
      wallet.family,
      wallet.address,
      wallet.custodialType,
      wallet.createdAt,
      wallet.provenAt,
      wallet.isSharedElsewhere,
      wallet.isUnclaimed,
    ],
  )
}

/** What still holds from the store's earlier registrations of an address. */
export async function readEarlier(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
  address: string,
): Promise<Pick<Wallet, 'provenAt' | 'isSharedElsewhere'>> {
  const [row] = await tx.query<{ proven_at: Date | null; shared_elsewhere: boolean }>(
    `select max(proven_at) as proven_at, coalesce(bool_or(shared_elsewhere), false) as shared_elsewhere from wallets
     where store_id = $1 and family = $2 and address = $3`,
    [storeId, family, address],
  )
  return { provenAt: row?.proven_at ?? null, isSharedElsewhere: row?.shared_elsewhere ?? false }
}

export async function writeWalletChanges(
  tx: Transaction,
  storeId: StoreId,
  walletChanges: WalletChanges,
): Promise<void> {
  await tx.query('update stores set wallet_changes = $2 where id = $1', [storeId, walletChanges])
}

export async function writeRefundLimit(tx: Transaction, storeId: StoreId, limit: string): Promise<void> {
  await tx.query('update stores set manager_refund_limit = $2 where id = $1', [storeId, limit])
}

export type Challenge = { readonly text: string; readonly expiresAt: Date }

export async function writeChallenge(
  db: Database,
  storeId: StoreId,
  walletId: WalletId,
  { text, expiresAt }: Challenge,
): Promise<Wallet | null> {
  const [row] = await db.query<WalletRow>(
    `update wallets w set challenge = $3, challenge_expires_at = $4 where w.store_id = $1 and w.id = $2
     returning ${walletColumns}`,
    [storeId, walletId, text, expiresAt],
  )
  return row ? toWallet(row) : null
}

export async function readChallenge(
  db: Database,
  storeId: StoreId,
  walletId: WalletId,
): Promise<{ wallet: Wallet; challenge: Challenge | null } | null> {
  const [row] = await db.query<WalletRow>(
    `select ${walletColumns} from wallets w where w.store_id = $1 and w.id = $2`,
    [storeId, walletId],
  )
  if (!row) return null
  const { challenge: text, challenge_expires_at: expiresAt } = row
  return { wallet: toWallet(row), challenge: text && expiresAt ? { text, expiresAt } : null }
}

/** Records a proof and ends its challenge, unless that has been answered or replaced in the meantime. */
export async function writeProof(
  tx: Transaction,
  walletId: WalletId,
  challenge: string,
  now: Date,
): Promise<Wallet | null> {
  const [row] = await tx.query<WalletRow>(
    `update wallets w set proven_at = coalesce(w.proven_at, $3), challenge = null, challenge_expires_at = null
     where w.id = $1 and w.challenge = $2 returning ${walletColumns}`,
    [walletId, challenge, now],
  )
  return row ? toWallet(row) : null
}

export async function writeSharedElsewhere(
  tx: Transaction,
  walletId: WalletId,
  isShared: boolean,
): Promise<void> {
  await tx.query('update wallets set shared_elsewhere = $2 where id = $1', [walletId, isShared])
}

export async function writeUnclaimed(
  tx: Transaction,
  walletId: WalletId,
  isUnclaimed: boolean,
): Promise<void> {
  await tx.query('update wallets set unclaimed = $2 where id = $1', [walletId, isUnclaimed])
}

/** Records which token accounts a wallet was found to have. */
export async function noteTokenAccounts(
  tx: Transaction,
  owner: string,
  found: readonly { readonly network: string; readonly asset: string; readonly isReady: boolean }[],
): Promise<void> {
  await tx.query(
    `insert into token_accounts as t (network, asset, owner, ready_at, checked_at)
     select i.network, i.asset, $1, case when i."isReady" then clock() end, clock()
     from json_to_recordset($2) as i (network text, asset text, "isReady" boolean)
     on conflict (network, asset, owner) do update set checked_at = clock(),
       ready_at = case when excluded.ready_at is not null then coalesce(t.ready_at, clock()) end`,
    [owner, JSON.stringify(found)],
  )
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
     where w.store_id = $1 and w.retired_at is null and (w.registration > 0 or w.unclaimed or ${hasWaiting})
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

function toWallet(row: WalletRow): Wallet {
  return {
    id: row.id,
    storeId: row.store_id,
    family: row.family,
    address: row.address,
    custodialType: row.custodial_type,
    isCurrent: row.is_current,
    isConfirmed: row.is_confirmed,
    isWaiting: row.is_waiting,
    isUnclaimed: row.unclaimed,
    isElsewhere: row.elsewhere,
    readyOn: row.ready_on,
    createdAt: row.created_at,
    retiredAt: row.retired_at,
    provenAt: row.proven_at,
    isSharedElsewhere: row.shared_elsewhere,
  }
}
