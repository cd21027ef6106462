import type { Wallet as WireWallet } from '@farthing/sdk'
import type { Context } from '../context.ts'
import { crashPoint } from '../crash.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession } from '../members/announce.ts'
import type { Subject } from '../members/challenge.ts'
import { type Action, type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { type Author, announceChange, findCurrent } from './change.ts'
import { listActive, lockStore, readWallet } from './rows.ts'
import type { Wallet } from './store.ts'
import { lookUpWallet, registerWalletIn, retireWalletIn, type WantedWallet } from './wallets.ts'

/**
 * What an owner does with the store's wallets in the console, each by a touch. The touch names the addresses that the
 * screen showed, those that are paid now too. If another owner changed the wallet meanwhile, nothing is done: nobody
 * overwrites what they have not seen.
 */

/** Puts a wallet to use: a new one, or one that the store had before. `paidNow` is the address in use, empty without. */
export async function useWallet(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { paidNow, ...wanted }: WantedWallet & { readonly paidNow: string },
  now: Date,
): Promise<WireWallet> {
  const found = await lookUpWallet(ctx, storeId, wanted, null)
  const { family, address, custodialType } = found
  const wallet = await ctx.db.transaction(async (tx) => {
    const values = { family, address, custodialType, paidNow }
    const by = await authorOf(ctx, tx, storeId, touch, { action: 'wallet.use', values, now })
    if (((await findCurrent(tx, storeId, family))?.address ?? '') !== paidNow)
      throw new Refusal('wallet_changed')
    const registered = await registerWalletIn(ctx, tx, { storeId, actor: by.actor, now }, found)
    crashPoint(ctx, 'hold-before-commit')
    return registered
  })
  crashPoint(ctx, 'hold-after-commit')
  return wallet
}

/** Takes the wallet in use out of it. `paidNext` is the address that is paid from then on, empty without. */
export async function stopWallet(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { walletId, paidNext }: { readonly walletId: string; readonly paidNext: string },
  now: Date,
): Promise<WireWallet> {
  return await ctx.db.transaction(async (tx) => {
    const wallet = await readOwn(tx, storeId, walletId)
    const values = { walletId, address: wallet.address, paidNext }
    const by = await authorOf(ctx, tx, storeId, touch, { action: 'wallet.stop', values, now })
    const [current, next] = await listActive(tx, storeId, wallet.family)
    if (current?.id !== walletId || (next?.address ?? '') !== paidNext) throw new Refusal('wallet_changed')
    return await retireWalletIn(ctx, tx, by, current)
  })
}

/** Records that somebody else, such as an exchange, holds the keys of a wallet, which can therefore not be proven. */
export async function declareCustodial(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  walletId: string,
  now: Date,
): Promise<WireWallet> {
  return await ctx.db.transaction(async (tx) => {
    const { id, address } = await readOwn(tx, storeId, walletId)
    const values = { walletId, address }
    const by = await authorOf(ctx, tx, storeId, touch, { action: 'wallet.custody', values, now })
    const written = await tx.query(
      `update wallets set custodial_type = 'CUSTODIAL'
       where id = $1 and proven_at is null and retired_at is null returning id`,
      [id],
    )
    if (written.length === 0) throw new Refusal('wallet_changed')
    return await announceChange(ctx, tx, by, 'wallet.updated', id)
  })
}

async function readOwn(tx: Transaction, storeId: StoreId, walletId: string): Promise<Wallet> {
  const wallet = await readWallet(tx, storeId, walletId)
  if (!wallet) throw new Refusal('not_found')
  return wallet
}

/** Checks role and touch, and locks the store, so that what is read from here on stays as it is. */
async function authorOf(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  touch: Touch,
  asked: { readonly action: Action; readonly values: Subject; readonly now: Date },
): Promise<Author> {
  const { action, values, now } = asked
  await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
  const store = await lockStore(tx, storeId)
  await useTouch(ctx, tx, touch, { action, values: { ...values, storeId } }, now)
  return { store, actor: actorOfSession(touch.session), now }
}
