import type { Actor, RegisterWallet, UpdateWallet, Wallet as WireWallet } from '@farthing/sdk'
import { findTokenAccounts, parseWalletAddress } from '../chains/families.ts'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { appendEvent, newEvent } from '../events/append.ts'
import { isId, newId, type StoreId } from '../ids.ts'
import type { Family } from '../networks.ts'
import { invalid, Problem } from '../problems.ts'
import * as rows from './rows.ts'
import { type Store, type Wallet, walletToWire } from './store.ts'

/**
 * Registers a wallet, or makes a registered one current again. New checkouts are paid to it on networks of its family.
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
  const accounts = await findTokenAccounts(ctx, family, parsed.address)
  return await ctx.db.transaction(async (tx) => {
    const store = await lock(tx, storeId)
    if (accounts.length > 0) await rows.noteTokenAccounts(tx, parsed.address, accounts)
    const existing = await rows.findActiveWallet(tx, storeId, family, parsed.address)
    if (existing && existing.custodialType !== input.custodialType) {
      throw new Problem(
        'wallet_conflict',
        `${parsed.address} is registered as ${existing.custodialType} (${existing.id}). Retire that wallet first.`,
      )
    }
    const wallet: Wallet = existing ?? {
      id: newId('wal', ctx.config.cell, now),
      storeId,
      family,
      address: parsed.address,
      custodialType: input.custodialType,
      isCurrent: true,
      readyOn: accounts.filter(({ isReady }) => isReady).map(({ network }) => network),
      createdAt: now,
      retiredAt: null,
      ...(await rows.readEarlier(tx, storeId, family, parsed.address)),
    }
    if (!existing) await rows.insertWallet(tx, wallet)
    else if (!existing.isCurrent) await rows.renewWallet(tx, wallet.id)
    const wire = walletToWire(ctx, store.mode, { ...wallet, isCurrent: true })
    if (!existing?.isCurrent)
      await appendEvent(tx, newEvent(ctx, storeId, actor, 'wallet.registered', { wallet: wire }, now))
    return wire
  })
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
    const store = await lock(tx, storeId)
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

/** Takes a wallet out of use for new checkouts. Existing checkouts still name it and are still paid to it. */
export async function retireWallet(
  ctx: Context,
  storeId: StoreId,
  actor: Actor,
  walletId: string,
  now: Date,
): Promise<WireWallet> {
  if (!isId('wal', walletId)) throw new Problem('not_found', 'No such wallet.')
  return await ctx.db.transaction(async (tx) => {
    const store = await lock(tx, storeId)
    const wallet = await rows.readWallet(tx, storeId, walletId)
    if (!wallet) throw new Problem('not_found', 'No such wallet.')
    const wire = walletToWire(ctx, store.mode, { ...wallet, retiredAt: now })
    if (wallet.retiredAt === null) {
      await rows.retireWallet(tx, wallet.id, now)
      await appendEvent(tx, newEvent(ctx, storeId, actor, 'wallet.retired', { wallet: wire }, now))
    }
    return wire
  })
}

/** The store's lock serialises its registrations. */
async function lock(tx: Transaction, storeId: StoreId): Promise<Store> {
  const store = await rows.lockStore(tx, storeId)
  if (!store) throw new Problem('not_found', 'No such store.')
  return store
}
