import { timingSafeEqual } from 'node:crypto'
import type { Context } from '../context.ts'
import { Problem } from '../problems.ts'
import { remember } from '../remember.ts'
import { hashSecret, parseKey } from './api-keys.ts'
import { type KeyHolder, readKeyHolder } from './rows.ts'

/**
 * Who is calling. A key's holder is remembered for a second, so that a busy store costs one look-up a second, not one a
 * request. What must not be a second old says so itself: a create names the store's revision, and the database refuses
 * it if the store has changed since (see checkouts/create.ts); other changes look the caller up again (http/app.ts). So a
 * revoked key stops changing anything at once and stops reading within a second.
 */
const rememberedMs = 1_000
/** Bounds memory: beyond it the oldest entry goes. */
const entriesMax = 10_000

export type Caller = { readonly keyId: string; readonly holder: KeyHolder }

export type Authenticator = {
  /** The caller, or a Problem. `beforeLookup` runs if the key is not one that was seen to be good. */
  authenticate(header: string | undefined, beforeLookup: () => void): Promise<Caller>
  /** The same caller by what the database says now. */
  refresh(caller: Caller): Promise<Caller>
}

export function openAuthenticator(ctx: Context): Authenticator {
  const holders = remember((keyId: string) => readKeyHolder(ctx.db, keyId), {
    forMs: rememberedMs,
    entriesMax,
    now: ctx.now,
  })
  /** Keys that were seen to be good. */
  const known = new Set<string>()

  return {
    async authenticate(header, beforeLookup) {
      const key = header === undefined ? null : parseKey(header)
      if (!key || !known.has(key.id)) beforeLookup()
      const holder = key && (await holders.get(key.id))
      // An unknown id costs the same comparison as a wrong secret.
      const expected = holder?.secretHash ?? Buffer.alloc(32)
      const isRight = timingSafeEqual(hashSecret(key?.secret ?? ''), expected)
      if (!key || !holder || !isRight || holder.store.mode !== key.mode) {
        // Whoever guesses at a key in use was not counted yet.
        if (key && known.has(key.id)) beforeLookup()
        if (key && !holder) known.delete(key.id)
        throw invalidKey('Send a valid store key in the X-API-Key header.')
      }
      if (known.size >= entriesMax) known.clear()
      known.add(key.id)
      return { keyId: key.id, holder }
    },
    async refresh({ keyId }) {
      holders.forget(keyId)
      const holder = await holders.get(keyId)
      if (!holder) throw invalidKey('This key was revoked or has expired.')
      return { keyId, holder }
    },
  }
}

function invalidKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, { headers: { 'www-authenticate': 'ApiKey' } })
}
