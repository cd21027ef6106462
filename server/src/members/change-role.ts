import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { actorOfSession, announce } from './announce.ts'
import { type Touch, useTouch } from './confirm.ts'
import { lockFor } from './invite.ts'
import type { Role, StoreMember } from './member.ts'
import { Refusal } from './refusal.ts'
import { refuseLastOwner } from './remove.ts'
import * as rows from './rows.ts'

type NewRole = { readonly memberId: string; readonly role: Role }

/**
 * An owner gives a member another role, or gives up their own. Requests read the role each time, so the change takes
 * effect at once.
 */
export async function changeRole(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  { memberId, role }: NewRole,
  now: Date,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const members = await lockFor(tx, storeId, touch.session.member.id, 'members:write')
    const member = members.find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    await useTouch(ctx, tx, touch, { action: 'member.role', values: { storeId, memberId, role } }, now)
    const actor = actorOfSession(touch.session)
    await change(ctx, tx, { storeId, actor, members, member, role, now })
  })
}

/** An operator may make a member an owner only if the store has none, as with invitations. */
export async function changeRoleAsOperator(
  ctx: Context,
  storeId: StoreId,
  operator: Actor,
  { memberId, role }: NewRole,
  now: Date,
): Promise<StoreMember> {
  return await ctx.db.transaction(async (tx) => {
    if ((await rows.lockMembers(tx, storeId)) === null) throw new Refusal('not_found')
    const members = await rows.listStoreMembers(tx, storeId)
    const member = members.find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    const hasOwner = members.some((each) => each.role === 'owner')
    if (role === 'owner' && member.role !== 'owner' && hasOwner) throw new Refusal('has_owner')
    await change(ctx, tx, { storeId, actor: operator, members, member, role, now })
    return member
  })
}

async function change(
  ctx: Context,
  tx: Transaction,
  wanted: {
    readonly storeId: StoreId
    readonly actor: Actor
    readonly members: readonly StoreMember[]
    readonly member: StoreMember
    readonly role: Role
    readonly now: Date
  },
): Promise<void> {
  const { storeId, actor, members, member, role, now } = wanted
  if (member.role === role) return
  refuseLastOwner(members, member)
  await rows.lockMember(tx, member.id)
  await tx.query('update memberships set role = $3 where store_id = $1 and member_id = $2', [
    storeId,
    member.id,
    role,
  ])
  // An invitation that they made as an owner could make them an owner again.
  await rows.withdrawBy(tx, member.id, storeId)
  await announce(ctx, tx, {
    ...{ storeId, actor, now },
    type: 'member.role_changed',
    member: { ...member, role },
  })
}
