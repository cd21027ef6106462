import type { Actor } from '@farthing/sdk'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { type MemberId, newId, type StoreId } from '../ids.ts'
import { writeMail } from '../mails/write.ts'
import { actorOfSession, announce } from './announce.ts'
import { type Touch, useTouch } from './confirm.ts'
import { hasOwnEmail } from './email.ts'
import type { Invitation, Role, StoreMember } from './member.ts'
import { Refusal } from './refusal.ts'
import { type Right, requireRight } from './rights.ts'
import * as rows from './rows.ts'
import { hashToken, newToken } from './token.ts'

/** Long enough to reach a person in another time zone, short enough if it is left in a chat. */
const invitationHours = 24
/**
 * Members and open invitations together: enough for a large company's team, and a bound for a thief with an owner's
 * laptop.
 */
const membersMax = 200

export type Invitee = { readonly name: string; readonly email: string | null; readonly role: Role }

/** The link is shown once: only its hash is stored. */
export type NewInvitation = {
  readonly invitation: Invitation
  readonly link: string
  /** Whether it was also mailed. The store's share for the day may be used up. */
  readonly isMailed: boolean
}

/**
 * An operator may invite a store's first owner or its first member, and no more. Operators cannot let people into a
 * store that has an owner unless its log shows that the owner was removed first.
 */
export async function inviteAsOperator(
  ctx: Context,
  storeId: StoreId,
  operator: Actor,
  invitee: Invitee,
  now: Date,
): Promise<NewInvitation> {
  return await ctx.db.transaction((tx) => inviteAsOperatorIn(ctx, tx, { storeId, operator, invitee, now }))
}

/** The same in the caller's transaction. */
export async function inviteAsOperatorIn(
  ctx: Context,
  tx: Transaction,
  wanted: {
    readonly storeId: StoreId
    readonly operator: Actor
    readonly invitee: Invitee
    readonly now: Date
  },
): Promise<NewInvitation> {
  const { storeId, operator, invitee, now } = wanted
  if ((await rows.lockMembers(tx, storeId)) === null) throw new Refusal('not_found')
  const members = await rows.listStoreMembers(tx, storeId)
  if (members.some(({ role }) => role === 'owner')) throw new Refusal('has_owner')
  if (invitee.role !== 'owner' && members.length > 0) throw new Refusal('has_members')
  // A later invitation by an operator replaces the earlier ones.
  await tx.query('delete from invitations where store_id = $1 and invited_by is null and used_at is null', [
    storeId,
  ])
  return await write(ctx, tx, operator, {
    ...draft(ctx, storeId, null, now),
    ...invitee,
    memberId: newId('mem', ctx.config.cell, now),
    isRecovery: false,
  })
}

export async function inviteMember(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  invitee: Invitee,
  now: Date,
): Promise<NewInvitation> {
  const { session } = touch
  return await ctx.db.transaction(async (tx) => {
    const members = await lockFor(tx, storeId, session.member.id, 'members:write')
    const { name, role, email } = invitee
    await useTouch(
      ctx,
      tx,
      touch,
      { action: 'member.invite', values: { storeId, name, role, email: email ?? '' } },
      now,
    )
    const open = await rows.listInvitations(tx, storeId)
    if (members.length + open.length >= membersMax) throw new Refusal('members_max')
    return await write(ctx, tx, actorOfSession(session), {
      ...draft(ctx, storeId, session.member.id, now),
      ...invitee,
      memberId: newId('mem', ctx.config.cell, now),
      isRecovery: false,
    })
  })
}

/**
 * A link with which a member who lost their passkeys makes a new one. Anyone with the link becomes that member, so an
 * owner may make one only for a member who is not an operator and whose stores they all own.
 */
export async function inviteToRecover(
  ctx: Context,
  storeId: StoreId,
  touch: Touch,
  memberId: string,
  now: Date,
): Promise<NewInvitation> {
  const { session } = touch
  return await ctx.db.transaction(async (tx) => {
    const members = await lockFor(tx, storeId, session.member.id, 'members:write')
    const member = members.find(({ id }) => id === memberId)
    if (!member) throw new Refusal('not_found')
    await useTouch(ctx, tx, touch, { action: 'member.recover', values: { storeId, memberId } }, now)
    // Locks both members, so that neither joins or leaves a store before we commit.
    const isOperator = new Map<MemberId, boolean>()
    for (const id of [member.id, session.member.id].sort()) isOperator.set(id, await rows.lockMember(tx, id))
    if (isOperator.get(member.id)) throw new Refusal('operator')
    const own = await rows.listMemberships(tx, session.member.id)
    const isOwned = (id: StoreId) => own.some((each) => each.storeId === id && each.role === 'owner')
    const theirs = await rows.listMemberships(tx, member.id)
    if (!theirs.every((each) => isOwned(each.storeId))) throw new Refusal('other_stores')
    await rows.withdrawFor(tx, member.id)
    const { id, name, role } = member
    const email = (await hasOwnEmail(tx, id)) ? null : member.email
    return await write(ctx, tx, actorOfSession(session), {
      ...draft(ctx, storeId, session.member.id, now),
      ...{ memberId: id, name, email, role },
      isRecovery: true,
    })
  })
}

/**
 * Withdrawing an invitation needs no touch: it gives no access. Nobody withdraws the link with which another owner
 * replaces their own passkeys: who asks may be the thief whom it is to shut out.
 */
export async function withdrawInvitation(
  ctx: Context,
  storeId: StoreId,
  memberId: MemberId,
  invitationId: string,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    await lockFor(tx, storeId, memberId, 'members:write')
    const withdrawn = await tx.query(
      `delete from invitations where id = $1 and store_id = $2 and used_at is null
         and not (is_recovery and member_id = $3) returning id`,
      [invitationId, storeId, memberId],
    )
    if (withdrawn.length === 0) throw new Refusal('not_found')
  })
}

/** Locks the store's members for a change by one of them. To anyone else the store does not exist. */
export async function lockFor(
  tx: Transaction,
  storeId: StoreId,
  memberId: MemberId,
  right: Right,
): Promise<StoreMember[]> {
  await rows.lockMembers(tx, storeId)
  const members = await rows.listStoreMembers(tx, storeId)
  const self = members.find(({ id }) => id === memberId)
  if (!self) throw new Refusal('not_found')
  requireRight(self.role, right)
  return members
}

function draft(ctx: Context, storeId: StoreId, invitedBy: MemberId | null, now: Date) {
  return {
    id: newId('inv', ctx.config.cell, now),
    storeId,
    invitedBy,
    createdAt: now,
    expiresAt: new Date(now.getTime() + invitationHours * 3_600_000),
  }
}

async function write(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  invitation: Invitation,
): Promise<NewInvitation> {
  const token = newToken()
  await rows.insertInvitation(tx, invitation, hashToken(token))
  const { storeId, memberId: id, name, role, createdAt } = invitation
  const member = { id, name, role }
  await announce(ctx, tx, { storeId, actor, type: 'member.invited', member, now: createdAt })
  // A browser does not send the part after the #, so the token is in no server's or proxy's log.
  const link = `${ctx.config.consoleUrl}/enrol#${token}`
  return { invitation, link, isMailed: await mail(ctx, tx, actor, invitation, link) }
}

/**
 * A stranger who signed up must not be able to send mail in the operator's name: until their store is known, they pass
 * the link on themselves. The subject contains no text of theirs, which a phisher would use.
 */
async function mail(
  ctx: Context,
  tx: Transaction,
  actor: Actor,
  invitation: Invitation,
  link: string,
): Promise<boolean> {
  const { id, storeId, name, email: to, role, isRecovery, expiresAt, createdAt } = invitation
  if (to === null) return false
  const { name: storeName, ownerIds, mayMail } = await readMailing(tx, storeId)
  if (!mayMail && actor.type !== 'operator') return false
  const subject = isRecovery ? 'Your link for a new passkey' : 'Your invitation to a store'
  const purpose = isRecovery
    ? `With this link you make a new passkey for ${storeName}. All your earlier passkeys stop working then.`
    : `You are invited to ${storeName} (${role}). With this link you make a passkey and join.`
  const text = `Hello ${name},

${purpose}

${link}

It works once, until ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC. Anyone who has it can use it, so do not forward it. If you did not expect it, ask an owner of the store before you open it.
`
  const memberIds = [...new Set([...ownerIds, ...(invitation.invitedBy ? [invitation.invitedBy] : [])])]
  const cause = { kind: 'link', storeId, memberIds, about: id } as const
  return await writeMail(ctx, tx, cause, { to, subject, text }, createdAt)
}

/**
 * A store's name and owners, and whether its members may have links mailed to addresses that they enter.
 */
async function readMailing(
  tx: Transaction,
  storeId: StoreId,
): Promise<{ readonly name: string; readonly ownerIds: readonly MemberId[]; readonly mayMail: boolean }> {
  const [row] = await tx.query<{ name: string; owner_ids: MemberId[]; may_mail: boolean }>(
    `select name, array(select member_id from memberships where store_id = s.id and role = 'owner') as owner_ids,
       ${rows.mayMailStrangers} as may_mail
     from stores s where id = $1`,
    [storeId],
  )
  return { name: row?.name ?? '', ownerIds: row?.owner_ids ?? [], mayMail: row?.may_mail ?? false }
}
