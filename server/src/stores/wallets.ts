import assert from 'node:assert/strict'
import type { Actor, RegisterWallet, UpdateWallet, Wallet as WireWallet } from '@farthing/sdk'
import { findTokenAccounts, parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type Basis, walletOwnership } from '../directory/directory.ts'
import { elsewhere, type Hold, keepHold, own } from '../directory/own.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, newId, type StoreId, type WalletId } from '../ids.ts'
import type { Family, Mode } from '../networks.ts'
import { invalid, Problem } from '../problems.ts'
import {
  type Author,
  announceChange,
  askForChange,
  endWaiting,
  findWaiting,
  needsOwner,
  refuseTooMany,
} from './change.ts'
import * as rows from './rows.ts'
import { type Store, type Wallet, walletToWire } from './store.ts'

/**
 * Registers a wallet, or makes a registered one current again. New checkouts on networks of its family are paid to it:
 * at once, or when an owner has confirmed it. Where cells share a directory, a wallet that is new to this cell has to
 * be proven first (prove.ts), unless an operator registers it.
 */
export async function registerWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  wanted: WantedWallet,
  now: Date,
): Promise<WireWallet> {
  const found = await lookUpWallet(ctx, storeId, wanted, actor.type === 'operator' ? 'operator' : null)
  const wallet = await ctx.db.transaction(async (tx) => {
    const registered = await registerWalletIn(ctx, tx, { storeId, actor, now }, found)
    crashPoint(ctx, 'hold-before-commit')
    return registered
  })
  crashPoint(ctx, 'hold-after-commit')
  return wallet
}

export type WantedWallet = RegisterWallet & { readonly family: Family }

/** What the chain and the directory know about a wallet, read before anything is locked. */
export async function lookUpWallet(
  ctx: Context,
  storeId: StoreId,
  { family, walletAddress, custodialType }: WantedWallet,
  basis: Basis | null,
): Promise<FoundWallet> {
  const parsed = parseWalletAddress(family, walletAddress)
  if ('refusal' in parsed)
    throw invalid({ pointer: '/walletAddress', code: 'address', detail: parsed.refusal })
  const { address } = parsed
  const accounts = await findTokenAccounts(ctx, family, address)
  const store = ctx.directory ? await rows.readStore(ctx.db, storeId) : null
  const hold = store ? await holdWallet(ctx, store.mode, family, address, basis) : null
  return { family, address, custodialType, accounts, hold }
}

/** This cell's hold on a wallet; "free" if no cell owns it: owning it then takes a proof or an operator. */
export async function holdWallet(
  ctx: Context,
  mode: Mode,
  family: Family,
  address: string,
  basis: Basis | null,
): Promise<Hold | 'free'> {
  const hold = await own(ctx, walletOwnership(mode, family, toStoredAnywhere(address)), basis)
  if (hold === 'elsewhere') throw elsewhere(address)
  return hold
}

/** A wallet that was looked up, with its token accounts. */
export type FoundWallet = Pick<Wallet, 'family' | 'address' | 'custodialType'> & {
  readonly accounts: Awaited<ReturnType<typeof findTokenAccounts>>
  readonly hold: Hold | 'free'
}

/** `registerWallet` in the caller's transaction, for a wallet that was looked up before. */
export async function registerWalletIn(
  ctx: Context,
  tx: Transaction,
  { storeId, actor, now }: Omit<Author, 'store'> & { readonly storeId: StoreId },
  found: FoundWallet,
): Promise<WireWallet> {
  const { family, address, custodialType, accounts, hold } = found
  const store = await rows.lockStore(tx, storeId)
  const by = { store, actor, now }
  if (accounts.length > 0) await noteTokenAccounts(tx, address, accounts)
  const existing = await findFitting(ctx, tx, by, found)
  if (existing?.isCurrent) {
    // The store's latest request counts. It asks for the wallet that is already current, so the change that is waiting
    // is dropped.
    await endWaiting(ctx, tx, by, family, null)
    return await readWire(ctx, tx, store, existing.id)
  }
  if (existing?.isUnowned && hold === 'free') return walletToWire(ctx, store.mode, existing)
  if (hold === 'free') await refuseTooMany(tx, store, actor)
  else await keepHold(tx, hold)
  if (existing && needsOwner(store, actor)) {
    const waiting = await findWaiting(tx, storeId, family)
    if (waiting?.wallet.id === existing.id) return walletToWire(ctx, store.mode, existing)
  }
  const walletId = existing?.id ?? newId('wal', ctx.config.cell, now)
  if (!existing) {
    await insertWallet(tx, {
      ...{ id: walletId, storeId, family, address, custodialType, createdAt: now },
      isUnowned: hold === 'free',
      ...(await readEarlier(tx, storeId, family, address)),
    })
  }
  if (existing && existing.isUnowned !== (hold === 'free'))
    await rows.writeUnowned(tx, existing.id, hold === 'free')
  if (hold !== 'free') await askForChange(ctx, tx, by, { kind: 'use', family, walletId })
  return await announceChange(ctx, tx, by, 'wallet.registered', walletId)
}

/** The store's wallet with this address. A wallet of another custodial type makes way if it was never current. */
async function findFitting(
  ctx: Context,
  tx: Transaction,
  by: Author,
  { family, address, custodialType }: FoundWallet,
): Promise<Wallet | null> {
  const existing = await rows.findActiveWallet(tx, by.store.id, family, address)
  if (!existing || existing.custodialType === custodialType) return existing
  if (existing.isConfirmed) {
    throw new Problem(
      'wallet_conflict',
      `${address} is registered as ${existing.custodialType} (${existing.id}). Retire that wallet first.`,
    )
  }
  await endWaiting(ctx, tx, by, family, null)
  if (existing.isUnowned) await rows.retireWallet(tx, existing.id, by.now)
  return null
}

/** Changes the store's statements about a wallet. */
export async function updateWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  { walletId, sharedElsewhere }: UpdateWallet & { readonly walletId: string },
  now: Date,
): Promise<WireWallet> {
  if (!isId('wal', walletId)) throw new Problem('not_found', 'No such wallet.')
  return await ctx.db.transaction(async (tx) => {
    const store = await rows.lockStore(tx, storeId)
    const wallet = await rows.readWallet(tx, storeId, walletId)
    if (!wallet) throw new Problem('not_found', 'No such wallet.')
    const wire = walletToWire(ctx, store.mode, { ...wallet, isSharedElsewhere: sharedElsewhere })
    if (wallet.isSharedElsewhere !== sharedElsewhere) {
      await tx.query('update wallets set shared_elsewhere = $2 where id = $1', [wallet.id, sharedElsewhere])
      await appendEvent(
        tx,
        newEvent(ctx, storeId, actor, { type: 'wallet.updated', data: { wallet: wire } }, now),
      )
    }
    return wire
  })
}

/**
 * Takes a wallet out of use for new checkouts. If it is current and an owner has to confirm, only requests that.
 * Existing checkouts still name it and are still paid to it.
 */
export async function retireWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  walletId: string,
  now: Date,
): Promise<WireWallet> {
  if (!isId('wal', walletId)) throw new Problem('not_found', 'No such wallet.')
  return await ctx.db.transaction(async (tx) => {
    const store = await rows.lockStore(tx, storeId)
    const wallet = await rows.readWallet(tx, storeId, walletId)
    if (!wallet) throw new Problem('not_found', 'No such wallet.')
    return await retireWalletIn(ctx, tx, { store, actor, now }, wallet)
  })
}

/** The same in the caller's transaction, which has locked the store. */
export async function retireWalletIn(
  ctx: Context,
  tx: Transaction,
  by: Author,
  wallet: Wallet,
): Promise<WireWallet> {
  const { store, actor, now } = by
  const { id, family } = wallet
  if (wallet.retiredAt !== null) return walletToWire(ctx, store.mode, wallet)
  if (!wallet.isCurrent) {
    if (wallet.isWaiting) await endWaiting(ctx, tx, by, family, id)
    await rows.retireWallet(tx, id, now)
    return await announceChange(ctx, tx, by, 'wallet.retired', id)
  }
  if (wallet.isWaiting && needsOwner(store, actor)) return walletToWire(ctx, store.mode, wallet)
  const isMade = await askForChange(ctx, tx, by, { kind: 'retire', family, walletId: id })
  return await announceChange(ctx, tx, by, isMade ? 'wallet.retired' : 'wallet.updated', id)
}

async function readWire(
  ctx: Context,
  tx: Transaction,
  store: Store,
  walletId: WalletId,
): Promise<WireWallet> {
  const wallet = await rows.readWallet(tx, store.id, walletId)
  assert(wallet, 'the store is locked, so its wallets are still there')
  return walletToWire(ctx, store.mode, wallet)
}

/** The facts about a wallet that is about to be registered. */
type NewWallet = Omit<
  Wallet,
  'isCurrent' | 'isConfirmed' | 'isWaiting' | 'isElsewhere' | 'readyOn' | 'retiredAt'
>

/** Inserts a wallet that has never been current. `renewWallet` makes it current. */
async function insertWallet(tx: Transaction, wallet: NewWallet): Promise<void> {
  await tx.query(
    `insert into wallets (id, store_id, family, address, custodial_type, created_at, proven_at, shared_elsewhere,
       unowned, registration)
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
      wallet.isUnowned,
    ],
  )
}

/** The facts that still hold from the store's earlier registrations of an address. */
async function readEarlier(
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

/** Records which token accounts a wallet was found to have. */
async function noteTokenAccounts(
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

/** A wallet as the directory names it. */
type Named = { readonly scope: string; readonly address: string }

/** SQL: the rows of the wallets in $1, and their stores, locked as by every other change of a wallet. */
const lockWallets = (condition: string) => `found as (
    select w.id, w.store_id from json_to_recordset($1) as i (scope text, address text)
    join wallets w on w.pay_to = i.address and ${condition}
    join stores s on s.id = w.store_id and s.mode || ' ' || w.family = i.scope
  ), locked as materialized (
    select s.id from stores s where s.id in (select store_id from found) order by s.id for no key update
  )`

/**
 * Writes whether another cell owns these wallets, whichever stores have them. Their stores get a new revision, so that
 * checkouts drafted before are not created.
 */
export async function writeElsewhere(
  db: Database,
  wallets: readonly Named[],
  isElsewhere: boolean,
): Promise<void> {
  await db.query(
    `with ${lockWallets('w.elsewhere <> $2')}, written as (
       update wallets w set elsewhere = $2 from found f join locked l on l.id = f.store_id where w.id = f.id
     )
     update stores s set revision = revision + 1 where s.id in (select id from locked)`,
    [JSON.stringify(wallets), isElsewhere],
  )
}

/** Records that this cell releases these wallets, for stores that have retired them, unless it is already recorded. */
export async function writeReleased(db: Database, wallets: readonly Named[]): Promise<void> {
  await db.query(
    `with ${lockWallets('w.retired_at is not null')}
     update wallets w set released_at = clock() from found f join locked l on l.id = f.store_id
     where w.id = f.id and w.retired_at is not null and (w.released_at is null or w.released_at < w.retired_at)`,
    [JSON.stringify(wallets)],
  )
}
