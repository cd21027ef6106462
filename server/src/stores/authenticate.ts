import { timingSafeEqual } from 'node:crypto'
import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { Problem, wrongCell } from '../problems.ts'
import { remember } from '../remember.ts'
import { hashSecret, parseKey } from './api-keys.ts'
import { type KeyHolder, noteKeyUsed, readKeyHolder } from './key-rows.ts'

/**
 * Who is calling. A key's holder is cached for one second, so that a busy store costs one lookup per second, not one
 * per request. Where one second is too old there is a second check: a create names the store's revision, and the
 * database refuses it if the store has changed since (see checkouts/create.ts); all other changes look the caller up
 * again (see http/app.ts). So a revoked key can change nothing from that moment on, and stops reading within a second.
 */
const rememberedMs = 1_000
const hourMs = 3_600_000
/** Bounds memory: beyond it the oldest entry is dropped. */
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
  /** The same caller, read from the database now. */
  refresh(caller: Caller): Promise<Caller>
}

export function openAuthenticator(ctx: Context): Authenticator {
  const holders = remember((keyId: string) => readKeyHolder(ctx.db, keyId), {
    forMs: rememberedMs,
    entriesMax,
    now: ctx.now,
  })
  /** Ids of keys that were valid when last used. */
  const known = new Set<string>()
  /** The hour in which each key's use was last noted by this process, so that it is one write per hour. */
  const noted = new Map<string, number>()

  const noteUse = ({ id, lastUsedAt }: KeyHolder['key']) => {
    const hour = Math.floor(ctx.now().getTime() / hourMs)
    if (noted.get(id) === hour) return
    if (noted.size >= entriesMax) noted.clear()
    noted.set(id, hour)
    if (lastUsedAt && Math.floor(lastUsedAt.getTime() / hourMs) >= hour) return
    // Nobody waits for it, and nothing depends on it.
    noteKeyUsed(ctx.db, id).catch((err) =>
      ctx.log.warn({ keyId: id, err }, 'could not note that a key was used; it is tried again in an hour'),
    )
  }

  return {
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
    async refresh({ keyId }) {
      holders.forget(keyId)
      const holder = await holders.get(keyId)
      if (!holder) throw invalidKey('This key was revoked or has expired.')
      return toCaller(holder)
    },
  }
}

function toCaller(holder: KeyHolder): Caller {
  const { id, label } = holder.key
  return { keyId: id, holder, actor: { type: 'key', id, name: label } }
}

function invalidKey(detail: string): Problem {
  return new Problem('invalid_api_key', detail, { headers: { 'www-authenticate': 'ApiKey' } })
}
