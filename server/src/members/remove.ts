import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession, announce } from './announce.ts'
import { type Touch, useTouch } from './confirm.ts'
import { lockAsOwner } from './invite.ts'
import type { StoreMember } from './member.ts'
import { deleteOtherPasskeys } from './passkey-rows.ts'
import { Refusal } from './refusal.ts'
import * as rows from './rows.ts'
import { deleteSessions } from './session-rows.ts'

/** An owner removes a member, or leaves. A store that has an owner keeps one. */
export async function removeMember(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  memberId: string,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const members = await lockAsOwner(tx, storeId, touch.session.member.id)
    const member = members.find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    await useTouch(ctx, tx, touch, 'member.remove', { storeId, memberId }, now)
    const owners = members.filter(({ role }) => role === 'owner')
    if (owners.length === 1 && owners[0] === member) throw new Refusal('last_owner')
    await remove(ctx, tx, storeId, actorOfSession(touch.session), member, now)
  })
}

/** An operator may remove anybody, also the last owner: who has lost everything gets in no other way. */
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
    await remove(ctx, tx, storeId, operator, member, now)
    return member
  })
}

async function remove(
  ctx: Context,
  tx: Transaction,
  storeId: StoreId,
  actor: Actor,
  member: StoreMember,
  now: Date,
): Promise<void> {
  await rows.lockMember(tx, member.id)
  await rows.deleteMembership(tx, storeId, member.id)
  // Links that they made must not let them in again, nor may one that was made for them.
  await rows.withdrawBy(tx, member.id, storeId)
  await rows.withdrawFor(tx, member.id)
  const others = await rows.listMemberships(tx, member.id)
  if (others.length === 0 && !member.isOperator) {
    await deleteOtherPasskeys(tx, member.id, null)
    await deleteSessions(tx, member.id)
  }
  await announce(ctx, tx, storeId, actor, 'member.removed', member, now)
}
