import type { WalletChanges } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { actorOf, actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { endWaiting, lockStore, makeChange, tell } from './change.ts'
import { readChange } from './change-rows.ts'
import { setWalletChanges } from './wallet-setting.ts'

/** An owner confirms a change that waits. The touch names the store, the change and the wallet's address. */
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
    await useTouch(
      ctx,
      tx,
      touch,
      'wallet.confirm',
      { storeId, changeId, kind, address: wallet.address },
      now,
    )
    if (!change.isWaiting) throw new Refusal('change_over')
    const owner = actorOfSession(touch.session)
    await makeChange(tx, { ...change, walletId: wallet.id }, owner, now)
    await tell(ctx, tx, store, owner, kind === 'use' ? 'wallet.confirmed' : 'wallet.retired', wallet.id, now)
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
    await endWaiting(ctx, tx, store, change.family, actorOf(member), null, now)
  })
}

/** An owner chooses what it takes to change wallets. */
export async function confirmSetting(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  walletChanges: WalletChanges,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, touch.session.member.id, 'wallets:write')
    await useTouch(ctx, tx, touch, 'wallet.setting', { storeId, walletChanges }, now)
    await setWalletChanges(ctx, tx, storeId, actorOfSession(touch.session), walletChanges, now)
  })
}
