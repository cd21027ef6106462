import type { Context } from '../context.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { actorOf, actorOfSession } from '../members/announce.ts'
import { type Touch, useTouch } from '../members/confirm.ts'
import { lockFor } from '../members/invite.ts'
import { Refusal } from '../members/refusal.ts'
import { announceChange, endWaiting, makeChange, readChange } from './change.ts'
import { lockStore } from './rows.ts'

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
