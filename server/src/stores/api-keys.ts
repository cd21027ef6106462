import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { randomText, type StoreId } from '../ids.ts'
import { Problem } from '../problems.ts'
import { expireKey, insertKey, lockStore, readKey, revokeKey as revokeRow } from './rows.ts'
import { type Key, keyToWire, type Store } from './store.ts'

/**
 * A key is `sk_live_` or `sk_test_`, its id (cell and 16 random characters), `_` and a secret of 260 random bits. It is
 * looked up by its id. Only the secret's SHA-256 is stored, which is enough for a secret that cannot be guessed.
 */
const pattern = /^sk_(live|test)_([0-9a-z]{2}[0-9a-hjkmnp-tv-z]{16})_([0-9a-hjkmnp-tv-z]{52})$/
const idLength = 16
/** 52 characters of 5 bits each: 260 random bits. */
const secretLength = 52

export type NewKey = { readonly key: Key /** Shown once; it cannot be recovered. */; readonly text: string }

export function parseKey(
  text: string,
): { readonly id: string; readonly mode: string; readonly secret: string } | null {
  const match = pattern.exec(text)
  return match ? { mode: match[1] as string, id: match[2] as string, secret: match[3] as string } : null
}

export function hashSecret(secret: string): Buffer {
  // By way of hexadecimal digits, because Node makes a new buffer for a digest more slowly than for a text.
  return Buffer.from(hash('sha256', secret, 'hex'), 'hex')
}

export async function createKey(ctx: Context, storeId: StoreId, now: Date): Promise<NewKey> {
  return await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    if (!store) throw new Problem('not_found', `No store has the id ${storeId}.`)
    return await makeKey(ctx, tx, store, now)
  })
}

/** Creates a new key. The old one stays valid for the overlap, so that a store can switch without a gap. */
export async function rotateKey(
  ctx: Context,
  keyId: string,
  overlapSeconds: number,
  now: Date,
): Promise<NewKey> {
  return await ctx.db.transaction(async (tx) => {
    const { store } = await lockKeyStore(tx, keyId)
    if (!(await expireKey(tx, keyId, overlapSeconds)))
      throw new Problem('not_found', `The key ${keyId} is revoked.`)
    return await makeKey(ctx, tx, store, now)
  })
}

export async function revokeKey(ctx: Context, keyId: string, now: Date): Promise<Key> {
  return await ctx.db.transaction(async (tx) => {
    const { key, store } = await lockKeyStore(tx, keyId)
    const revoked = await revokeRow(tx, keyId)
    if (!revoked) return key
    await appendEvent(tx, newEvent(ctx, store.id, 'key.revoked', { key: keyToWire(revoked) }, now))
    return revoked
  })
}

async function makeKey(ctx: Context, tx: Transaction, store: Store, now: Date): Promise<NewKey> {
  const key: Key = {
    id: ctx.config.cell + randomText(idLength),
    storeId: store.id,
    createdAt: now,
    expiresAt: null,
    revokedAt: null,
  }
  const secret = randomText(secretLength)
  await insertKey(tx, key, hashSecret(secret))
  await appendEvent(tx, newEvent(ctx, store.id, 'key.created', { key: keyToWire(key) }, now))
  return { key, text: `sk_${store.mode}_${key.id}_${secret}` }
}

async function lockKeyStore(tx: Transaction, keyId: string): Promise<{ key: Key; store: Store }> {
  const key = await readKey(tx, keyId)
  const store = key && (await lockStore(tx, key.storeId))
  if (!store)
    throw new Problem(
      'not_found',
      `No key has the id ${keyId}. A key's id is the part between its second and third "_".`,
    )
  return { key, store }
}
