import { hash } from 'node:crypto'
import type { Actor, CreateApiKey } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { randomText, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { checkText } from './check-text.ts'
import { lockStore } from './rows.ts'
import { addressesMax, type Grant, isWithin, parseAddress, scopesOf } from './scopes.ts'
import { type Key, keyToWire, type Store } from './store.ts'

/**
 * A key is `sk_live_` or `sk_test_`, its id (cell and 16 random characters), `_` and a secret of 260 random bits. It is
 * looked up by its id. Only the secret's SHA-256 is stored, which is enough for a secret that cannot be guessed.
 *
 * A key cannot make, rotate or revoke a key that is wider than itself (see scopes.ts), so a stolen key gains nothing
 * this way.
 */
const idForm = '[0-9a-z]{2}[0-9a-hjkmnp-tv-z]{16}'
const idPattern = new RegExp(`^${idForm}$`)
const pattern = new RegExp(`^sk_(live|test)_(${idForm})_([0-9a-hjkmnp-tv-z]{52})$`)
const idLength = 16
/** 52 characters of 5 bits each: 260 random bits. */
const secretLength = 52
/** Far more than one per service, environment and rotation. It bounds how many keys a stolen key can leave behind. */
const usableKeysMax = 100
const labelBytesMax = 100

export type NewKey = { readonly key: Key /** Shown once; it cannot be recovered. */; readonly text: string }

/** Who acts on keys. An operator or a member may do everything; a key is limited to its own grant. */
export type KeyMaker = { readonly actor: Actor; readonly limit: Grant | null }

export function parseKey(
  text: string,
): { readonly id: string; readonly mode: string; readonly secret: string } | null {
  const match = pattern.exec(text)
  return match ? { mode: match[1] as string, id: match[2] as string, secret: match[3] as string } : null
}

/** Whether a text has the form of a key's id. */
export function isKeyId(text: string): boolean {
  return idPattern.test(text)
}

export function hashSecret(secret: string): Buffer {
  // Via hexadecimal digits, because Node creates a buffer for a digest more slowly than a string.
  return Buffer.from(hash('sha256', secret, 'hex'), 'hex')
}

export async function createKey(
  ctx: Context,
  storeId: StoreId,
  maker: KeyMaker,
  input: CreateApiKey,
  now: Date,
): Promise<NewKey> {
  const wanted = parseInput(input, maker)
  return await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    return await makeKey(ctx, tx, { store, actor: maker.actor, now }, wanted)
  })
}

/**
 * Creates a key with the same grant. The old one stays valid for the overlap, so that a store can switch without a gap.
 * `storeId` is null for an operator, who may rotate any store's keys.
 */
export async function rotateKey(
  ctx: Context,
  storeId: StoreId | null,
  maker: KeyMaker,
  { keyId, overlapSeconds }: { readonly keyId: string; readonly overlapSeconds: number },
  now: Date,
): Promise<NewKey> {
  return await ctx.db.transaction(async (tx) => {
    const { key, store } = await lockKeyStore(tx, storeId, keyId)
    refuseWider(maker, key)
    // Never later than it already expires.
    const [old] = await tx.query<Key>(
      `update api_keys set expires_at = least(expires_at, clock() + make_interval(secs => $2))
       where id = $1 and revoked_at is null and (expires_at is null or expires_at > clock()) returning ${keyColumns}`,
      [keyId, overlapSeconds],
    )
    if (!old) throw new Problem('not_found', `The key ${keyId} is revoked or has expired.`)
    return await makeKey(ctx, tx, { store, actor: maker.actor, now }, key)
  })
}

export async function revokeKey(
  ctx: Context,
  storeId: StoreId | null,
  maker: KeyMaker,
  keyId: string,
  now: Date,
): Promise<Key> {
  return await ctx.db.transaction(async (tx) => {
    const { key, store } = await lockKeyStore(tx, storeId, keyId)
    refuseWider(maker, key)
    const [revoked] = await tx.query<Key>(
      `update api_keys set revoked_at = clock() where id = $1 and revoked_at is null returning ${keyColumns}`,
      [keyId],
    )
    if (!revoked) return key
    const data = { key: keyToWire(revoked) }
    await appendEvent(tx, newEvent(ctx, store.id, maker.actor, { type: 'key.revoked', data }, now))
    return revoked
  })
}

function parseInput(input: CreateApiKey, maker: KeyMaker): Grant & { readonly label: string | null } {
  const { label = null, addresses = [] } = input
  if (label !== null) {
    const mistakes = checkText('/label', label, labelBytesMax)
    if (mistakes.length > 0) throw invalid(...mistakes)
  }
  if (input.preset !== undefined && input.scopes !== undefined)
    throw invalid({ pointer: '/scopes', code: 'either', detail: 'Send either preset or scopes.' })
  if (addresses.length > addressesMax)
    throw invalid({ pointer: '/addresses', code: 'length', detail: `At most ${addressesMax} are allowed.` })
  const blocks = addresses.map((text, i) => {
    const block = parseAddress(text)
    if (block) return block
    throw invalid({
      pointer: `/addresses/${i}`,
      code: 'address',
      detail: 'Must be an IP address or a block such as 192.0.2.0/24 or 2001:db8::/48.',
    })
  })
  const wanted = { label, scopes: scopesOf(input), addresses: blocks }
  refuseWider(maker, wanted)
  return wanted
}

function refuseWider({ limit }: KeyMaker, wanted: Grant): void {
  if (limit === null || isWithin(wanted, limit)) return
  throw new Problem(
    'key_too_wide',
    'The key in the request may do less than this key, or may be used from fewer addresses.',
  )
}

async function makeKey(
  ctx: Context,
  tx: Transaction,
  { store, actor, now }: { readonly store: Store; readonly actor: Actor; readonly now: Date },
  { label, scopes, addresses }: Pick<Key, 'label' | 'scopes' | 'addresses'>,
): Promise<NewKey> {
  if ((await countKeys(tx, store.id)) >= usableKeysMax)
    throw new Problem('key_limit', `A store can have at most ${usableKeysMax} keys. Revoke one first.`)
  const key: Key = {
    id: ctx.config.cell + randomText(idLength),
    storeId: store.id,
    label,
    scopes,
    addresses,
    lastUsedAt: null,
    createdAt: now,
    expiresAt: null,
    revokedAt: null,
  }
  const secret = randomText(secretLength)
  await insertKey(tx, key, hashSecret(secret))
  await appendEvent(
    tx,
    newEvent(ctx, store.id, actor, { type: 'key.created', data: { key: keyToWire(key) } }, now),
  )
  return { key, text: `sk_${store.mode}_${key.id}_${secret}` }
}

/** Another store's key gets the same answer as one that does not exist. */
async function lockKeyStore(
  tx: Transaction,
  storeId: StoreId | null,
  keyId: string,
): Promise<{ key: Key; store: Store }> {
  const [found] = isKeyId(keyId)
    ? await tx.query<Key>(`select ${keyColumns} from api_keys where id = $1`, [keyId])
    : []
  const key = found && (storeId === null || found.storeId === storeId) ? found : null
  if (!key)
    throw new Problem('not_found', 'No such key. A key’s id is the part between its second and third "_".')
  return { key, store: await lockStore(tx, key.storeId) }
}

/** SQL: a Key. The console's role cannot read the secret's hash. */
const keyColumns = `id, store_id as "storeId", label, scopes, addresses, last_used_at as "lastUsedAt",
  created_at as "createdAt", expires_at as "expiresAt", revoked_at as "revokedAt"`

export async function listKeys(db: Database, storeId: StoreId): Promise<Key[]> {
  return await db.query<Key>(`select ${keyColumns} from api_keys where store_id = $1 order by id`, [storeId])
}

/** One page of a store's keys, newest first, after the key `cursor`. */
export async function pageKeys(
  db: Database,
  storeId: StoreId,
  page: { cursor: string | null; limit: number },
): Promise<Key[]> {
  return await db.query<Key>(
    `select ${keyColumns} from api_keys where store_id = $1 and ($2::text is null or (created_at, id) <
       (select o.created_at, o.id from api_keys o where o.store_id = $1 and o.id = $2))
     order by created_at desc, id desc limit $3`,
    [storeId, page.cursor, page.limit],
  )
}

async function insertKey(tx: Transaction, key: Key, secretHash: Buffer): Promise<void> {
  await tx.query(
    `insert into api_keys (id, store_id, secret_hash, created_at, label, scopes, addresses)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [key.id, key.storeId, secretHash, key.createdAt, key.label, key.scopes, key.addresses],
  )
}

/** Keys that can still be used. */
async function countKeys(tx: Transaction, storeId: StoreId): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `select count(*)::integer as count from api_keys
     where store_id = $1 and revoked_at is null and (expires_at is null or expires_at > clock())`,
    [storeId],
  )
  return row?.count ?? 0
}
