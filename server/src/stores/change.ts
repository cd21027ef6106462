import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { newId, type StoreId, type WalletId } from '../ids.ts'
import { announceWallet } from '../members/announce.ts'
import type { Family } from '../networks.ts'
import { Problem } from '../problems.ts'
import * as changes from './change-rows.ts'
import * as rows from './rows.ts'
import { type Store, walletToWire } from './store.ts'

/**
 * Changes of the wallet that a store's new checkouts are paid to, per family: a wallet is put to use, or the current one
 * is retired. Whoever holds a stolen key wants exactly this, so it is slow to steal:
 *
 *   asked by a key, `walletChanges` is "member" -> waiting -> made by an owner's touch (confirm.ts)
 *                                                    |-> ended: refused, withdrawn, replaced, or 7 days old
 *   asked by an operator, or "key" --------------> made
 *   made -> undone by an owner's touch, within 24 hours, with all that was made after it (undo.ts)
 *
 * A wallet that was never current has the registration 0, so no checkout finds it. At most one change per family waits:
 * what the store asked for last. Every step happens under the store's lock, raises its revision and is told to its owners.
 */

/** Owners may be away for a few days. What nobody confirmed for a week was forgotten, and must not lie in wait. */
const waitsDays = 7
/** Per store and day. More is a program gone wrong or a thief, and an owner has to be able to read and undo them all. */
const changesPerDay = 100

/** What a change would do. */
export type Wish = Pick<changes.WalletChange, 'kind' | 'family'> & { readonly walletId: WalletId }

/** Makes the change, or lets it wait for an owner. Replaces what waited. Returns whether it was made. */
export async function askForChange(
  ctx: Context,
  tx: Transaction,
  store: Store,
  actor: Actor,
  wish: Wish,
  now: Date,
): Promise<boolean> {
  await refuseTooMany(tx, store, actor)
  await endWaiting(ctx, tx, store, wish.family, actor, wish.walletId, now)
  const waits = needsOwner(store, actor)
  const change = { ...wish, id: newId('wch', ctx.config.cell, now), storeId: store.id, actor }
  await changes.insertChange(tx, { ...change, waitsDays: waits ? waitsDays : null })
  if (!waits) await makeChange(tx, change, null, now)
  return !waits
}

/** Puts a change into effect: the one place, with undoing, where the current wallet changes. */
export async function makeChange(
  tx: Transaction,
  change: Pick<changes.WalletChange, 'id' | 'storeId' | 'family' | 'kind'> & { readonly walletId: WalletId },
  confirmedBy: Actor | null,
  now: Date,
): Promise<void> {
  const { storeId, family, kind, walletId } = change
  const previous = await changes.findCurrent(tx, storeId, family)
  if (kind === 'use') await rows.renewWallet(tx, walletId)
  else await rows.retireWallet(tx, walletId, now)
  const next = await changes.findCurrent(tx, storeId, family)
  await changes.markMade(tx, change, confirmedBy, previous?.id ?? null, next?.id ?? null)
}

/** Ends the family's waiting change, if there is one, and says so unless it is about `keptId`. */
export async function endWaiting(
  ctx: Context,
  tx: Transaction,
  store: Store,
  family: Family,
  actor: Actor,
  keptId: WalletId | null,
  now: Date,
): Promise<void> {
  const endedId = await changes.endWaiting(tx, store.id, family, keptId)
  if (endedId && endedId !== keptId) await tell(ctx, tx, store, actor, 'wallet.refused', endedId, now)
}

/** Tells the store's owners what became of a wallet, and returns it. */
export async function tell(
  ctx: Context,
  tx: Transaction,
  store: Store,
  actor: Actor,
  type: Parameters<typeof announceWallet>[4],
  walletId: WalletId,
  now: Date,
): Promise<ReturnType<typeof walletToWire>> {
  const wallet = await rows.readWallet(tx, store.id, walletId)
  if (!wallet) throw new Problem('not_found', 'No such wallet.')
  const wire = walletToWire(ctx, store.mode, wallet)
  await announceWallet(ctx, tx, store.id, actor, type, wire, now)
  return wire
}

export function needsOwner({ walletChanges }: Store, { type }: Actor): boolean {
  return walletChanges === 'member' && type === 'key'
}

/** The store's lock serialises its changes. */
export async function lockStore(tx: Transaction, storeId: StoreId): Promise<Store> {
  const store = await rows.lockStore(tx, storeId)
  if (!store) throw new Problem('not_found', 'No such store.')
  return store
}

export async function refuseTooMany(tx: Transaction, store: Store, { type }: Actor): Promise<void> {
  if (type !== 'key' || (await changes.countRecent(tx, store.id)) < changesPerDay) return
  throw new Problem(
    'rate_limited',
    `The store’s wallets were changed ${changesPerDay} times within 24 hours. An owner can undo these changes in the console.`,
    { retryAfterSeconds: 3_600 },
  )
}
