import assert from 'node:assert/strict'
import type { Actor, RegisterWallet, UpdateWallet, Wallet as WireWallet } from '@farthing/sdk'
import { findTokenAccounts, parseWalletAddress, toStoredAnywhere } from '../chains/families.ts'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import { claimHere, elsewhere, type Hold, keepHold } from '../directory/claim.ts'
import { type Basis, walletClaim } from '../directory/directory.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, newId, type StoreId, type WalletId } from '../ids.ts'
import type { Family, Mode } from '../networks.ts'
import { invalid, Problem } from '../problems.ts'
import { askForChange, endWaiting, lockStore, needsOwner, refuseTooMany, tell } from './change.ts'
import { findWaiting } from './change-rows.ts'
import * as rows from './rows.ts'
import { type Store, type Wallet, walletToWire } from './store.ts'

/**
 * Registers a wallet, or makes a registered one current again. New checkouts are paid to it on networks of its family: at
 * once, or when an owner has confirmed it. Where cells share a directory, a wallet that is new to this cell has to be
 * proven first (prove.ts), unless an operator registers it.
 */
export async function registerWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  family: Family,
  input: RegisterWallet,
  now: Date,
): Promise<WireWallet> {
  const parsed = parseWalletAddress(family, input.walletAddress)
  if ('refusal' in parsed)
    throw invalid({ pointer: '/walletAddress', code: 'address', detail: parsed.refusal })
  const { address } = parsed
  const accounts = await findTokenAccounts(ctx, family, address)
  const store = ctx.directory ? await rows.readStore(ctx.db, storeId) : null
  const basis = actor.type === 'operator' ? 'operator' : null
  const hold = store ? await holdWallet(ctx, store.mode, family, address, basis) : null
  const found = { family, address, custodialType: input.custodialType, accounts, hold }
  const wallet = await ctx.db.transaction(async (tx) => {
    const registered = await registerWalletIn(ctx, tx, storeId, actor, found, now)
    crashPoint(ctx, 'hold-before-commit')
    return registered
  })
  crashPoint(ctx, 'hold-after-commit')
  return wallet
}

/** This cell's claim to a wallet; "free" if it has none and needs a reason to get one. */
export async function holdWallet(
  ctx: Context,
  mode: Mode,
  family: Family,
  address: string,
  basis: Basis | null,
): Promise<Hold | 'free'> {
  const hold = await claimHere(ctx, walletClaim(mode, family, toStoredAnywhere(address)), basis)
  if (hold === 'elsewhere') throw elsewhere(address)
  return hold
}

/** A wallet that was looked up, with the token accounts that it has. */
export type FoundWallet = Pick<Wallet, 'family' | 'address' | 'custodialType'> & {
  readonly accounts: Awaited<ReturnType<typeof findTokenAccounts>>
  readonly hold: Hold | 'free'
}

/** The same in the caller's transaction. */
export async function registerWalletIn(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  actor: Actor,
  { family, address, custodialType, accounts, hold }: FoundWallet,
  now: Date,
): Promise<WireWallet> {
  const store = await lockStore(tx, storeId)
  if (accounts.length > 0) await rows.noteTokenAccounts(tx, address, accounts)
  const existing = await findFitting(ctx, tx, store, actor, family, address, custodialType, now)
  if (existing?.isCurrent) {
    // What the store asks for last counts: this wallet, and no longer the one that waits.
    await endWaiting(ctx, tx, store, family, actor, null, now)
    return await readWire(ctx, tx, store, existing.id)
  }
  if (existing?.isUnclaimed && hold === 'free') return walletToWire(ctx, store.mode, existing)
  if (hold === 'free') await refuseTooMany(tx, store, actor)
  else await keepHold(tx, hold)
  if (existing && needsOwner(store, actor)) {
    const waiting = await findWaiting(tx, storeId, family)
    if (waiting?.wallet.id === existing.id) return walletToWire(ctx, store.mode, existing)
  }
  const walletId = existing?.id ?? newId('wal', ctx.config.cell, now)
  if (!existing) {
    await rows.insertWallet(tx, {
      ...{ id: walletId, storeId, family, address, custodialType, createdAt: now },
      isUnclaimed: hold === 'free',
      ...(await rows.readEarlier(tx, storeId, family, address)),
    })
  }
  if (existing && existing.isUnclaimed !== (hold === 'free'))
    await rows.writeUnclaimed(tx, existing.id, hold === 'free')
  if (hold !== 'free') await askForChange(ctx, tx, store, actor, { kind: 'use', family, walletId }, now)
  return await tell(ctx, tx, store, actor, 'wallet.registered', walletId, now)
}

/** The store's wallet with this address. One that was never current and has another custodial type makes way. */
async function findFitting(
  ctx: Context,
  tx: Transaction,
  store: Store,
  actor: Actor,
  family: Family,
  address: string,
  custodialType: RegisterWallet['custodialType'],
  now: Date,
): Promise<Wallet | null> {
  const existing = await rows.findActiveWallet(tx, store.id, family, address)
  if (!existing || existing.custodialType === custodialType) return existing
  if (existing.isConfirmed) {
    throw new Problem(
      'wallet_conflict',
      `${address} is registered as ${existing.custodialType} (${existing.id}). Retire that wallet first.`,
    )
  }
  await endWaiting(ctx, tx, store, family, actor, null, now)
  if (existing.isUnclaimed) await rows.retireWallet(tx, existing.id, now)
  return null
}

/** Changes what the store says about a wallet. */
export async function updateWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  walletId: string,
  { sharedElsewhere }: UpdateWallet,
  now: Date,
): Promise<WireWallet> {
  if (!isId('wal', walletId)) throw new Problem('not_found', 'No such wallet.')
  return await ctx.db.transaction(async (tx) => {
    const store = await lockStore(tx, storeId)
    const wallet = await rows.readWallet(tx, storeId, walletId)
    if (!wallet) throw new Problem('not_found', 'No such wallet.')
    const wire = walletToWire(ctx, store.mode, { ...wallet, isSharedElsewhere: sharedElsewhere })
    if (wallet.isSharedElsewhere !== sharedElsewhere) {
      await rows.writeSharedElsewhere(tx, wallet.id, sharedElsewhere)
      await appendEvent(tx, newEvent(ctx, storeId, actor, 'wallet.updated', { wallet: wire }, now))
    }
    return wire
  })
}

/**
 * Takes a wallet out of use for new checkouts, or asks for it if it is current and an owner has to confirm. Existing
 * checkouts still name it and are still paid to it.
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
    const store = await lockStore(tx, storeId)
    const wallet = await rows.readWallet(tx, storeId, walletId)
    if (!wallet) throw new Problem('not_found', 'No such wallet.')
    const { id, family } = wallet
    if (wallet.retiredAt !== null) return walletToWire(ctx, store.mode, wallet)
    if (!wallet.isCurrent) {
      if (wallet.isWaiting) await endWaiting(ctx, tx, store, family, actor, id, now)
      await rows.retireWallet(tx, id, now)
      return await tell(ctx, tx, store, actor, 'wallet.retired', id, now)
    }
    if (wallet.isWaiting && needsOwner(store, actor)) return walletToWire(ctx, store.mode, wallet)
    const isMade = await askForChange(ctx, tx, store, actor, { kind: 'retire', family, walletId: id }, now)
    return await tell(ctx, tx, store, actor, isMade ? 'wallet.retired' : 'wallet.updated', id, now)
  })
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
