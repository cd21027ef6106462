import type { Scope } from '@farthing/sdk'
import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { readyOn, type StoreRow, storeColumns, toStore } from './rows.ts'
import type { Key, Store, Wallet } from './store.ts'

type Reader = Database | Transaction

type KeyRow = {
  id: string
  store_id: StoreId
  label: string | null
  scopes: Scope[] | null
  addresses: string[]
  last_used_at: Date | null
  created_at: Date
  expires_at: Date | null
  revoked_at: Date | null
}

/** All but the hash of its secret, which the console's role cannot read. */
const keyColumns = 'id, store_id, label, scopes, addresses, last_used_at, created_at, expires_at, revoked_at'

/** Everything a request needs to know about its store, found by the key it sent. */
export type KeyHolder = {
  readonly secretHash: Buffer
  readonly key: Pick<Key, 'id' | 'label' | 'scopes' | 'addresses' | 'lastUsedAt'>
  readonly store: Store
  /** The current wallet of each family, to which new checkouts are paid. */
  readonly wallets: readonly Pick<Wallet, 'family' | 'address' | 'isElsewhere' | 'readyOn'>[]
}

type HolderRow = StoreRow &
  Pick<KeyRow, 'label' | 'scopes' | 'addresses' | 'last_used_at'> & {
    secret_hash: Buffer
    wallets: KeyHolder['wallets'] | null
  }

/** The holder of a key that is neither revoked nor expired. */
export async function readKeyHolder(db: Database, keyId: string): Promise<KeyHolder | null> {
  const [row] = await db.query<HolderRow>(
    `select k.secret_hash, k.label, k.scopes, k.addresses, k.last_used_at, ${storeColumns}, (
       select json_agg(json_build_object('family', w.family, 'address', w.address, 'isElsewhere', w.elsewhere,
         'readyOn', ${readyOn})) from (
         select distinct on (family) family, address, elsewhere from wallets
         where store_id = s.id and retired_at is null and registration > 0 order by family, registration desc
       ) w
     ) as wallets
     from api_keys k join stores s on s.id = k.store_id
     where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock())`,
    [keyId],
  )
  return row
    ? {
        secretHash: row.secret_hash,
        key: {
          id: keyId,
          label: row.label,
          scopes: row.scopes,
          addresses: row.addresses,
          lastUsedAt: row.last_used_at,
        },
        store: toStore(row),
        wallets: row.wallets ?? [],
      }
    : null
}

export async function insertKey(tx: Transaction, key: Key, secretHash: Buffer): Promise<void> {
  await tx.query(
    `insert into api_keys (id, store_id, secret_hash, created_at, label, scopes, addresses)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [key.id, key.storeId, secretHash, key.createdAt, key.label, key.scopes, key.addresses],
  )
}

export async function readKey(db: Reader, keyId: string): Promise<Key | null> {
  const [row] = await db.query<KeyRow>(`select ${keyColumns} from api_keys where id = $1`, [keyId])
  return row ? toKey(row) : null
}

export async function listKeys(db: Database, storeId: StoreId): Promise<Key[]> {
  const rows = await db.query<KeyRow>(`select ${keyColumns} from api_keys where store_id = $1 order by id`, [
    storeId,
  ])
  return rows.map(toKey)
}

/** One page of a store's keys, newest first, after the key `cursor`. */
export async function pageKeys(
  db: Database,
  storeId: StoreId,
  page: { cursor: string | null; limit: number },
): Promise<Key[]> {
  const rows = await db.query<KeyRow>(
    `select ${keyColumns} from api_keys where store_id = $1 and ($2::text is null or (created_at, id) <
       (select o.created_at, o.id from api_keys o where o.store_id = $1 and o.id = $2))
     order by created_at desc, id desc limit $3`,
    [storeId, page.cursor, page.limit],
  )
  return rows.map(toKey)
}

/** Keys that can still be used. */
export async function countKeys(tx: Transaction, storeId: StoreId): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::integer as count from api_keys
     where store_id = $1 and revoked_at is null and (expires_at is null or expires_at > clock())`,
    [storeId],
  )
  return row?.count ?? 0
}

/**
 * Whether a key is valid, or was until this transaction itself ended it. Until the transaction is over nobody else can
 * revoke it; one that is being revoked is waited for.
 */
export async function holdKey(tx: Transaction, keyId: string): Promise<boolean> {
  const rows = await tx.query(
    `select 1 as held from api_keys where id = $1 and (xmin = pg_current_xact_id()::xid
       or (revoked_at is null and (expires_at is null or expires_at > clock()))) for share`,
    [keyId],
  )
  return rows.length > 0
}

/** Notes the hour in which a key is used, unless another process has. */
export async function noteKeyUsed(db: Database, keyId: string): Promise<void> {
  await db.query(
    `update api_keys set last_used_at = date_trunc('hour', clock())
     where id = $1 and last_used_at is distinct from date_trunc('hour', clock())`,
    [keyId],
  )
}

/** Makes a key expire, never later than it already does. */
export async function expireKey(tx: Transaction, keyId: string, seconds: number): Promise<Key | null> {
  const [row] = await tx.query<KeyRow>(
    `update api_keys set expires_at = least(expires_at, clock() + make_interval(secs => $2))
     where id = $1 and revoked_at is null and (expires_at is null or expires_at > clock()) returning ${keyColumns}`,
    [keyId, seconds],
  )
  return row ? toKey(row) : null
}

export async function revokeKey(tx: Transaction, keyId: string): Promise<Key | null> {
  const [row] = await tx.query<KeyRow>(
    `update api_keys set revoked_at = clock() where id = $1 and revoked_at is null returning ${keyColumns}`,
    [keyId],
  )
  return row ? toKey(row) : null
}

function toKey(row: KeyRow): Key {
  return {
    id: row.id,
    storeId: row.store_id,
    label: row.label,
    scopes: row.scopes,
    addresses: row.addresses,
    lastUsedAt: row.last_used_at,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
  }
}
