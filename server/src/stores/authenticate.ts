import { timingSafeEqual } from 'node:crypto'
import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { FairQueue } from '../database/fair-queue.ts'
import { checkAtEnd } from '../database/scope.ts'
import { Problem, wrongCell } from '../problems.ts'
import { remember } from '../remember.ts'
import { hashSecret, parseKey } from './api-keys.ts'
import { readyOn, storeColumns } from './rows.ts'
import type { Key, Store, Wallet } from './store.ts'

/**
 * Who is calling. A key's holder is cached for one second, so that a busy store costs one lookup per second, not one
 * per request. A key is checked three times:
 *
 *   1. when the headers have arrived, in the cache: a caller without a valid key need not send a body;
 *   2. when the body has arrived, which may be many seconds later: in the database before a change, in the cache before a
 *      read or a create;
 *   3. in the transaction of the change, at its end, under the lock that revoking takes (`actWithKey`). A create does
 *      the same in its one statement (see checkouts/create.ts).
 *
 * So a revoked or expired key can't change anything from that moment on, and can read for at most one more second.
 */
const rememberedMs = 1_000
const hourMs = 3_600_000
/** Limits memory. Beyond it the oldest entry is dropped. */
const entriesMax = 10_000

export type Caller = {
  readonly keyId: string
  readonly holder: KeyHolder
  /** The key, as the event log names it. */
  readonly actor: Actor
}

export type Authenticator = {
  /** Returns the caller or throws a Problem. `beforeLookup` runs unless the key is known to be valid. */
  authenticate(header: string | undefined, beforeLookup: () => void): Promise<Caller>
  /** The same caller, as read at most a second ago. `authenticate` may have read it earlier. */
  recall(caller: Caller): Promise<Caller>
  /** The same caller, read from the database now. */
  refresh(caller: Caller): Promise<Caller>
}

/**
 * A context for changes by a key: each transaction waits for its store's turn, and commits only if the key is still
 * valid at the end.
 */
export function actWithKey(ctx: Context, { keyId, holder }: Caller, queue: FairQueue): Context {
  const check = async (tx: Transaction) => {
    if (!(await holdKey(tx, keyId))) throw endedKey()
  }
  return { ...ctx, db: checkAtEnd(queue.of(ctx.db, holder.store.id), check) }
}

export function openAuthenticator(ctx: Context): Authenticator {
  const holders = remember((keyId: string) => readKeyHolder(ctx.db, keyId), {
    forMs: rememberedMs,
    entriesMax,
    now: ctx.now,
  })
  /** Ids of keys that were valid when last used. */
  const known = new Set<string>()
  /** The hour in which this process last recorded each key's use, so that a key costs one write per hour. */
  const noted = new Map<string, number>()

  const noteUse = ({ id, lastUsedAt }: KeyHolder['key']) => {
    const hour = Math.floor(ctx.now().getTime() / hourMs)
    if (noted.get(id) === hour) return
    if (noted.size >= entriesMax) noted.clear()
    noted.set(id, hour)
    if (lastUsedAt && Math.floor(lastUsedAt.getTime() / hourMs) >= hour) return
    // No request waits for it, and nothing depends on it.
    noteKeyUsed(ctx.db, id).catch((err) =>
      ctx.log.warn({ keyId: id, err }, 'could not record that a key was used; trying again in an hour'),
    )
  }

  const recall = async ({ keyId }: Caller) => {
    const holder = await holders.get(keyId)
    if (!holder) throw endedKey()
    return toCaller(holder)
  }

  return {
    recall,
    async authenticate(header, beforeLookup) {
      const key = header === undefined ? null : parseKey(header)
      if (!key || !known.has(key.id)) beforeLookup()
      const cell = key?.id.slice(0, 2)
      if (cell !== undefined && cell !== ctx.config.cell)
        throw wrongCell('The API key', cell, ctx.config.cell)
      const holder = key && (await holders.get(key.id))
      // An unknown id costs the same comparison as a wrong secret.
      const expected = holder?.secretHash ?? Buffer.alloc(32)
      const isRight = timingSafeEqual(hashSecret(key?.secret ?? ''), expected)
      if (!key || !holder || !isRight || holder.store.mode !== key.mode) {
        // A wrong secret for a known key has not been counted yet.
        if (key && known.has(key.id)) beforeLookup()
        if (key && !holder) known.delete(key.id)
        throw invalidKey('Send a valid store key in the X-API-Key header.')
      }
      if (known.size >= entriesMax) known.clear()
      known.add(key.id)
      noteUse(holder.key)
      return toCaller(holder)
    },
    async refresh(caller) {
      holders.forget(caller.keyId)
      return await recall(caller)
    },
  }
}

function toCaller(holder: KeyHolder): Caller {
  const { id, label } = holder.key
  return { keyId: id, holder, actor: { type: 'key', id, name: label } }
}

function endedKey(): Problem {
  return invalidKey('This key was revoked or has expired.')
}

function invalidKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, { headers: { 'www-authenticate': 'ApiKey' } })
}

/** Everything that a request needs to know about its store, found by its key. */
type KeyHolder = {
  readonly secretHash: Buffer
  readonly key: Pick<Key, 'id' | 'label' | 'scopes' | 'addresses' | 'lastUsedAt'>
  readonly store: Store
  /** The current wallet of each family, to which new checkouts are paid. */
  readonly wallets: readonly Pick<Wallet, 'family' | 'address' | 'isElsewhere' | 'readyOn'>[]
}

type HolderRow = Store &
  Pick<Key, 'label' | 'scopes' | 'addresses' | 'lastUsedAt'> & {
    readonly secretHash: Buffer
    readonly wallets: KeyHolder['wallets'] | null
  }

/** The holder of a key that is neither revoked nor expired. */
async function readKeyHolder(db: Database, keyId: string): Promise<KeyHolder | null> {
  const [row] = await db.query<HolderRow>(
    `select k.secret_hash as "secretHash", k.label, k.scopes, k.addresses, k.last_used_at as "lastUsedAt", ${storeColumns}, (
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
  if (!row) return null
  const { secretHash, label, scopes, addresses, lastUsedAt, wallets, ...store } = row
  const key = { id: keyId, label, scopes, addresses, lastUsedAt }
  return { secretHash, key, store, wallets: wallets ?? [] }
}

/**
 * Whether a key is valid, or was until this transaction itself revoked it. Nobody else can revoke it until the
 * transaction ends. If another transaction is revoking it, this waits.
 */
async function holdKey(tx: Transaction, keyId: string): Promise<boolean> {
  const rows = await tx.query(
    `select 1 as held from api_keys where id = $1 and (xmin = pg_current_xact_id()::xid
       or (revoked_at is null and (expires_at is null or expires_at > clock()))) for share`,
    [keyId],
  )
  return rows.length > 0
}

/** Records the hour in which a key is used, unless another process has. */
async function noteKeyUsed(db: Database, keyId: string): Promise<void> {
  await db.query(
    `update api_keys set last_used_at = date_trunc('hour', clock())
     where id = $1 and last_used_at is distinct from date_trunc('hour', clock())`,
    [keyId],
  )
}
