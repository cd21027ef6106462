import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { actorOfSession, announce } from './announce.ts'
import { type Touch, useTouch } from './confirm.ts'
import { lockFor } from './invite.ts'
import type { StoreMember } from './member.ts'
import { Refusal } from './refusal.ts'
import * as rows from './rows.ts'
import { deleteSessions } from './session.ts'

/** An owner removes a member, or leaves. A store that has an owner keeps one. */
export async function removeMember(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  memberId: string,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const members = await lockFor(tx, storeId, touch.session.member.id, 'members:write')
    const member = members.find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    await useTouch(ctx, tx, touch, { action: 'member.remove', values: { storeId, memberId } }, now)
    refuseLastOwner(members, member)
    await remove(ctx, tx, { storeId, actor: actorOfSession(touch.session), member, now })
  })
}

/**
 * An operator may remove any member, even the last owner: an owner who has lost every passkey has no other way back.
 */
export async function removeAsOperator(
  ctx: Context,
  storeId: StoreId,
  operator: Actor,
  memberId: string,
  now: Date,
): Promise<StoreMember> {
  return await ctx.db.transaction(async (tx) => {
    if ((await rows.lockMembers(tx, storeId)) === null) throw new Refusal('not_found')
    const member = (await rows.listStoreMembers(tx, storeId)).find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    await remove(ctx, tx, { storeId, actor: operator, member, now })
    return member
  })
}

/** The caller holds the lock on the store's members. */
export function refuseLastOwner(members: readonly StoreMember[], member: StoreMember): void {
  const owners = members.filter(({ role }) => role === 'owner')
  if (owners.length === 1 && owners[0] === member) throw new Refusal('last_owner')
}

/** A member without a store who is not an operator has nothing to sign in to. */
export async function signOutForGood(tx: Transaction, memberId: MemberId): Promise<void> {
  await rows.deleteOtherPasskeys(tx, memberId, null)
  await rows.deleteIdentities(tx, memberId)
  await rows.deleteRecoveryCodes(tx, memberId)
  await deleteSessions(tx, memberId)
}

async function remove(
  ctx: Context,
  tx: Transaction,
  removed: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly member: StoreMember
    readonly now: Date
  },
): Promise<void> {
  const { storeId, member } = removed
  const isOperator = await rows.lockMember(tx, member.id)
  await tx.query('delete from memberships where store_id = $1 and member_id = $2', [storeId, member.id])
  // Neither links that they made nor links made for them may let them in again.
  await rows.withdrawBy(tx, member.id, storeId)
  await rows.withdrawFor(tx, member.id)
  const others = await rows.listMemberships(tx, member.id)
  if (others.length === 0 && !isOperator) await signOutForGood(tx, member.id)
  await announce(ctx, tx, { ...removed, type: 'member.removed' })
}
