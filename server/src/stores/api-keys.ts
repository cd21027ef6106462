import { hash } from 'node:crypto'
import type { Actor, CreateApiKey } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { randomText, type StoreId } from '../ids.ts'
import { invalid, Problem } from '../problems.ts'
import { addressesMax, parseAddress } from './addresses.ts'
import { checkText } from './check-text.ts'
import { countKeys, expireKey, insertKey, readKey, revokeKey as revokeRow } from './key-rows.ts'
import { lockStore } from './rows.ts'
import { type Grant, isWithin, scopesOf } from './scopes.ts'
import { type Key, keyToWire, type Store } from './store.ts'

/**
 * A key is `sk_live_` or `sk_test_`, its id (cell and 16 random characters), `_` and a secret of 260 random bits. It is
 * looked up by its id. Only the secret's SHA-256 is stored, which is enough for a secret that cannot be guessed.
 *
 * What a key makes, rotates or revokes is never wider than itself (see scopes.ts): a stolen one gains nothing by it.
 */
const idForm = '[0-9a-z]{2}[0-9a-hjkmnp-tv-z]{16}'
const idPattern = new RegExp(`^${idForm}$`)
const pattern = new RegExp(`^sk_(live|test)_(${idForm})_([0-9a-hjkmnp-tv-z]{52})$`)
const idLength = 16
/** 52 characters of 5 bits each: 260 random bits. */
const secretLength = 52
/** One per service, environment and rotation is far below it. It bounds what a stolen key can leave behind. */
const usableKeysMax = 100
const labelBytesMax = 100

export type NewKey = { readonly key: Key /** Shown once; it cannot be recovered. */; readonly text: string }

/** Who acts on keys: an operator or a member may do all; a key only what it may do itself. */
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
  // By way of hexadecimal digits, because Node makes a new buffer for a digest more slowly than for a text.
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
    if (!store) throw new Problem('not_found', `No store has the id ${storeId}.`)
    return await makeKey(ctx, tx, store, maker.actor, wanted, now)
  })
}

/**
 * Creates a key that may do the same. The old one stays valid for the overlap, so that a store can switch without a
 * gap. `storeId` is null for an operator, who may rotate any store's keys.
 */
export async function rotateKey(
  ctx: Context,
  storeId: StoreId | null,
  maker: KeyMaker,
  keyId: string,
  overlapSeconds: number,
  now: Date,
): Promise<NewKey> {
  return await ctx.db.transaction(async (tx) => {
    const { key, store } = await lockKeyStore(tx, storeId, keyId)
    refuseWider(maker, key)
    const old = await expireKey(tx, keyId, overlapSeconds)
    if (!old) throw new Problem('not_found', `The key ${keyId} is revoked or has expired.`)
    return await makeKey(ctx, tx, store, maker.actor, key, now)
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
    const revoked = await revokeRow(tx, keyId)
    if (!revoked) return key
    const data = { key: keyToWire(revoked) }
    await appendEvent(tx, newEvent(ctx, store.id, maker.actor, 'key.revoked', data, now))
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
  store: Store,
  actor: Actor,
  { label, scopes, addresses }: Pick<Key, 'label' | 'scopes' | 'addresses'>,
  now: Date,
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
  await appendEvent(tx, newEvent(ctx, store.id, actor, 'key.created', { key: keyToWire(key) }, now))
  return { key, text: `sk_${store.mode}_${key.id}_${secret}` }
}

/** Another store's key is answered like one that does not exist. */
async function lockKeyStore(
  tx: Transaction,
  storeId: StoreId | null,
  keyId: string,
): Promise<{ key: Key; store: Store }> {
  const found = isKeyId(keyId) ? await readKey(tx, keyId) : null
  const key = found && (storeId === null || found.storeId === storeId) ? found : null
  const store = key && (await lockStore(tx, key.storeId))
  if (!store)
    throw new Problem('not_found', 'No such key. A key’s id is the part between its second and third "_".')
  return { key, store }
}
