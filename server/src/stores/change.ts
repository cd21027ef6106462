import type { Actor, Wallet as WireWallet } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type MemberId, newId, type StoreId, type WalletChangeId, type WalletId } from '../ids.ts'
import { actorOf, actorOfSession, announceWallet, type WalletEvent } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import type { Family } from '../networks.ts'
import { Problem } from '../problems.ts'
import { isWaiting, lockStore, readWallet, renewWallet, retireWallet } from './rows.ts'
import { type Store, walletToWire } from './store.ts'

/**
 * Changes of the wallet that a store's new checkouts are paid to, per family: a wallet is put to use, or the current one
 * is retired. A thief with a stolen key wants exactly this, so it takes time, and an owner can undo it:
 *
 *   asked by a key, `walletChanges` is "member" -> waiting -> made by an owner's touch
 *                                                    |-> ended: refused, withdrawn, replaced, or 7 days old
 *   asked by an operator, or "key" --------------> made
 *   made -> undone by an owner's touch, within 24 hours, with all that was made after it (undo.ts)
 *
 * A wallet that was never current has the registration 0, so no checkout finds it. At most one change per family waits:
 * the store's last request. Every step happens under the store's lock, raises its revision and is announced to its owners.
 */
export type WalletChange = {
  readonly id: WalletChangeId
  readonly storeId: StoreId
  readonly family: Family
  /** To make the wallet current, or to retire it while it is. */
  readonly kind: 'use' | 'retire'
  readonly wallet: Named & { readonly isProven: boolean }
  readonly actor: Actor
  readonly askedAt: Date
  /** The time until which an owner can confirm it; null if it needs no confirmation. */
  readonly expiresAt: Date | null
  readonly isWaiting: boolean
  /** The place among the store's changes that took effect, and when it did. */
  readonly made: number | null
  readonly madeAt: Date | null
  readonly confirmedBy: Actor | null
  /** The current wallet before it took effect, and after. */
  readonly previous: Named | null
  readonly next: Named | null
  readonly isUndoable: boolean
  readonly undoneAt: Date | null
  readonly undoneBy: Actor | null
}

type Named = { readonly id: WalletId; readonly address: string }

/** The effect of a change. */
type Wish = Pick<WalletChange, 'kind' | 'family'> & { readonly walletId: WalletId }

/** Who changes a store's wallets, and when. The transaction holds the store's lock. */
export type Author = { readonly store: Store; readonly actor: Actor; readonly now: Date }

/**
 * Owners may be away for a few days. A change that was not confirmed for a week was forgotten, and must not take effect
 * later.
 */
const waitsDays = 7
/** Per store and day. More is a broken program or a thief, and an owner has to be able to read and undo them all. */
const changesPerDay = 100
/** How long any owner can undo a change: a night and a flight, so that an owner is awake in between. */
export const undoHours = 24
/**
 * Changes that wait, or were made or undone within a day, were requested within this: a change waits for at most seven
 * days.
 */
const sinceDays = 9

const isYoung = `c.asked_at > clock() - interval '${sinceDays} days'`
const isRecent = `c.made_at > clock() - interval '${undoHours} hours'`

/** SQL: whether this cell has released the wallet that undoing would bring back: another cell may own it. */
const isReleased = `exists (select 1 from wallets x where x.id = c.previous_id and x.released_at >= x.retired_at)`
const named = (alias: string, more = '') =>
  `(select json_build_object('id', x.id, 'address', x.address${more}) from wallets x where x.id = c.${alias})`

/** SQL: a WalletChange. */
const columns = `c.id, c.store_id as "storeId", c.family, c.kind, c.actor, c.asked_at as "askedAt",
  c.expires_at as "expiresAt", c.made, c.made_at as "madeAt", c.confirmed_by as "confirmedBy",
  c.undone_at as "undoneAt", c.undone_by as "undoneBy", coalesce(${isWaiting}, false) as "isWaiting",
  coalesce(c.undone_at is null and ${isRecent} and not ${isReleased}, false) as "isUndoable",
  ${named('wallet_id', ", 'isProven', x.proven_at is not null")} as wallet,
  ${named('previous_id')} as previous, ${named('next_id')} as next`

/** Makes the change, or lets it wait for an owner. Replaces the waiting one. Returns whether it was made. */
export async function askForChange(
  ctx: Context,
  tx: Transaction,
  by: Author,
  wish: Wish,
  waits = needsOwner(by.store, by.actor),
): Promise<boolean> {
  const { store, actor, now } = by
  await refuseTooMany(tx, store, actor)
  await endWaiting(ctx, tx, by, wish.family, wish.walletId)
  const change = { ...wish, id: newId('wch', ctx.config.cell, now), storeId: store.id, actor }
  await insertChange(tx, { ...change, waitsDays: waits ? waitsDays : null })
  if (!waits) await makeChange(tx, change, null, now)
  return !waits
}

/** Puts a change into effect. Only this and undoing change the current wallet. */
async function makeChange(
  tx: Transaction,
  change: Pick<WalletChange, 'id' | 'storeId' | 'family' | 'kind'> & { readonly walletId: WalletId },
  confirmedBy: Actor | null,
  now: Date,
): Promise<void> {
  const { id, storeId, family, kind, walletId } = change
  const previous = await findCurrent(tx, storeId, family)
  if (kind === 'use') await renewWallet(tx, walletId)
  else await retireWallet(tx, walletId, now)
  const next = await findCurrent(tx, storeId, family)
  // Under the store's lock, so the numbers are in the order in which changes took effect.
  await tx.query(
    `update wallet_changes set made_at = clock(), confirmed_by = $3, previous_id = $4, next_id = $5,
       made = 1 + (select coalesce(max(o.made), 0) from wallet_changes o where o.store_id = $2)
     where id = $1`,
    [id, storeId, confirmedBy && JSON.stringify(confirmedBy), previous?.id ?? null, next?.id ?? null],
  )
}

/**
 * Ends the family's waiting change, or one that waited too long, without effect, and announces it unless it is about
 * `keptId` or was too old. A wallet that was never current retires with it, unless it is `keptId`.
 */
export async function endWaiting(
  ctx: Context,
  tx: Transaction,
  by: Author,
  family: Family,
  keptId: WalletId | null,
): Promise<void> {
  const [ended] = await tx.query<{ walletId: WalletId; wasWaiting: boolean }>(
    `with ended as (
       update wallet_changes set ended_at = clock()
       where store_id = $1 and family = $2 and made is null and ended_at is null
       returning wallet_id, expires_at > clock() as was_waiting
     ), retired as (
       update wallets w set retired_at = clock() from ended e
       where w.id = e.wallet_id and w.registration = 0 and w.retired_at is null and w.id is distinct from $3
     )
     select wallet_id as "walletId", was_waiting as "wasWaiting" from ended`,
    [by.store.id, family, keptId],
  )
  if (ended?.wasWaiting && ended.walletId !== keptId)
    await announceChange(ctx, tx, by, 'wallet.refused', ended.walletId)
}

/** Announces what happened to a wallet, and returns the wallet. */
export async function announceChange(
  ctx: Context,
  tx: Transaction,
  { store, actor, now }: Author,
  type: WalletEvent,
  walletId: WalletId,
): Promise<WireWallet> {
  const found = await readWallet(tx, store.id, walletId)
  if (!found) throw new Problem('not_found', 'No such wallet.')
  const wallet = walletToWire(ctx, store.mode, found)
  await announceWallet(ctx, tx, { storeId: store.id, actor, type, wallet, now })
  return wallet
}

export function needsOwner({ walletChanges }: Store, { type }: Actor): boolean {
  return walletChanges === 'member' && type === 'key'
}

/** Counts changes requested within a day and not undone, and wallets that cannot be asked for because this cell does not own them. */
export async function refuseTooMany(tx: Transaction, store: Store, { type }: Actor): Promise<void> {
  if (type !== 'key') return
  const [row] = await tx.query<{ count: number }>(
    `select (select count(*) from wallet_changes
         where store_id = $1 and asked_at > clock() - interval '24 hours' and undone_at is null)::integer
       + (select count(*) from wallets
         where store_id = $1 and unowned and created_at > clock() - interval '24 hours')::integer as count`,
    [store.id],
  )
  if ((row?.count ?? 0) < changesPerDay) return
  throw new Problem(
    'rate_limited',
    `The store’s wallets were changed ${changesPerDay} times within 24 hours. An owner can undo these changes in the console.`,
    { retryAfterSeconds: 3_600 },
  )
}

async function insertChange(
  tx: Transaction,
  change: Pick<WalletChange, 'id' | 'storeId' | 'family' | 'kind' | 'actor'> & {
    readonly walletId: WalletId
    /** How long it waits for an owner; null if it needs no confirmation. */
    readonly waitsDays: number | null
  },
): Promise<void> {
  await tx.query(
    `insert into wallet_changes (id, store_id, family, kind, wallet_id, actor, asked_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, clock(), clock() + make_interval(days => $7))`,
    [
      change.id,
      change.storeId,
      change.family,
      change.kind,
      change.walletId,
      JSON.stringify(change.actor),
      change.waitsDays,
    ],
  )
}

export async function findCurrent(tx: Transaction, storeId: StoreId, family: Family): Promise<Named | null> {
  const [row] = await tx.query<Named>(
    `select id, address from wallets
     where store_id = $1 and family = $2 and retired_at is null and registration > 0
     order by registration desc limit 1`,
    [storeId, family],
  )
  return row ?? null
}

export async function readChange(
  tx: Transaction,
  storeId: StoreId,
  changeId: string,
): Promise<WalletChange | null> {
  const [change] = await tx.query<WalletChange>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and c.id = $2`,
    [storeId, changeId],
  )
  return change ?? null
}

/** The family's change that waits for an owner. */
export async function findWaiting(
  tx: Transaction,
  storeId: StoreId,
  family: Family,
): Promise<WalletChange | null> {
  const [change] = await tx.query<WalletChange>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and c.family = $2 and ${isWaiting}`,
    [storeId, family],
  )
  return change ?? null
}

/** The changes that owners see: those that wait and those of the last day, newest first. */
export async function listChanges(db: Database, storeId: StoreId): Promise<WalletChange[]> {
  return await db.query<WalletChange>(
    `select ${columns} from wallet_changes c where c.store_id = $1 and ${isYoung}
       and (${isWaiting} or ${isRecent})
     order by c.made desc nulls first, c.family`,
    [storeId],
  )
}

/** A change that a member, as an owner of its store, has not seen yet. `at` is when it last mattered. */
export type News = WalletChange & { readonly storeName: string; readonly at: Date }

/** SQL: as exactly as a browser can give it back. */
const happenedAt = `date_trunc('milliseconds', greatest(c.asked_at, c.made_at, c.undone_at))`

export async function listNews(
  db: Database,
  storeId: StoreId,
  memberId: MemberId,
  limit: number,
): Promise<News[]> {
  return await db.query<News>(
    `select ${columns}, s.name as "storeName", ${happenedAt} as at
     from memberships m join stores s on s.id = m.store_id join wallet_changes c on c.store_id = m.store_id
     where m.member_id = $1 and m.store_id = $3 and m.role = 'owner' and ${isYoung}
       and (${isWaiting} or ${isRecent} or c.undone_at > clock() - interval '${undoHours} hours')
       and ${happenedAt} > coalesce(m.wallets_seen_at, '-infinity')
     order by at desc limit $2`,
    [memberId, limit, storeId],
  )
}

/** An owner confirms a waiting change. The touch names the store, the change and the wallet's address. */
export async function confirmChange(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  changeId: string,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
    const store = await lockStore(tx, storeId)
    const change = await readChange(tx, storeId, changeId)
    if (!change) throw new Refusal('not_found')
    const { kind, wallet } = change
    const values = { storeId, changeId, kind, address: wallet.address }
    await useTouch(ctx, tx, touch, { action: 'wallet.confirm', values }, now)
    if (!change.isWaiting) throw new Refusal('change_over')
    const by = { store, actor: actorOfSession(touch.session), now }
    await makeChange(tx, { ...change, walletId: wallet.id }, by.actor, now)
    const type = kind === 'use' ? 'wallet.confirmed' : 'wallet.retired'
    await announceChange(ctx, tx, by, type, wallet.id)
  })
}

/** Refusing needs no touch: everything stays as it is. */
export async function refuseChange(
  ctx: Context,
  storeId: StoreId,
  member: { readonly id: MemberId; readonly name: string },
  changeId: string,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, member.id, 'wallets:write')
    const store = await lockStore(tx, storeId)
    const change = await readChange(tx, storeId, changeId)
    if (!change) throw new Refusal('not_found')
    if (!change.isWaiting) throw new Refusal('change_over')
    await endWaiting(ctx, tx, { store, actor: actorOf(member), now }, change.family, null)
  })
}
