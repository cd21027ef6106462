import type { Context } from '../context.ts'
import type { PasskeyId } from '../ids.ts'
import { actorOf, announce } from './announce.ts'
import { openChallenge, takeChallenge } from './challenge.ts'
import { type Touch, useTouch } from './confirm.ts'
import type { Invitation } from './member.ts'
import { deleteOtherPasskeys } from './passkey-rows.ts'
import { Refusal } from './refusal.ts'
import {
  acceptInvitation,
  enrolPasskey,
  listMemberships,
  lockMember,
  readInvitation,
  withdrawBy,
  withdrawFor,
} from './rows.ts'
import { type Browser, openSession } from './session.ts'
import { deleteSessions } from './session-rows.ts'
import { hashToken, isToken } from './token.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/** What an invitation says, and what to ask the authenticator for. Looking at it uses nothing up. */
export async function openEnrolment(
  ctx: Context,
  browserToken: string,
  invitationToken: unknown,
): Promise<{
  readonly invitation: Invitation & { readonly storeName: string }
  readonly options: CreationOptions
}> {
  if (!isToken(invitationToken)) throw new Refusal('invitation')
  const invitation = await readInvitation(ctx.db, hashToken(invitationToken))
  if (!invitation) throw new Refusal('invitation')
  const challenge = await openChallenge(ctx, 'enrol', hashToken(browserToken), toSubject(invitationToken))
  const { memberId: id, name, email } = invitation
  return { invitation, options: creationOptions(ctx, challenge, { id, name, email }, []) }
}

/** Stores the passkey, which uses the invitation up, and signs in. Returns the session's token. */
export async function enrol(
  ctx: Context,
  browser: Browser,
  invitationToken: unknown,
  answer: unknown,
  passkeyName: string,
  now: Date,
): Promise<string> {
  if (!isToken(invitationToken)) throw new Refusal('invitation')
  const { passkey, challenge } = await readNewPasskey(ctx, answer, passkeyName, now)
  return await ctx.db.transaction(async (tx) => {
    await takeChallenge(tx, challenge, 'enrol', hashToken(browser.token), toSubject(invitationToken))
    const used = await enrolPasskey(tx, hashToken(invitationToken), passkey, now)
    if (!used) throw new Refusal('invitation')
    const member = { id: used.memberId, name: used.name, role: used.role }
    if (used.isRecovery) {
      // Whoever had the lost passkey, or opened a session or an invitation with it, has nothing left.
      // The lock comes first, so that no passkey is added meanwhile.
      await lockMember(tx, member.id)
      await deleteOtherPasskeys(tx, member.id, passkey.id)
      await deleteSessions(tx, member.id)
      await withdrawFor(tx, member.id)
      await withdrawBy(tx, member.id, null)
      for (const { storeId, role } of await listMemberships(tx, member.id))
        await announce(ctx, tx, storeId, actorOf(member), 'member.recovered', { ...member, role }, now)
    } else {
      await announce(ctx, tx, used.storeId, actorOf(member), 'member.joined', member, now)
    }
    return await openSession(ctx, tx, member.id, passkey.id as PasskeyId, browser, now)
  })
}

/** A member of another store uses an invitation with the passkey that they have. */
export async function joinStore(
  ctx: Context,
  touch: Touch,
  invitationToken: unknown,
  now: Date,
): Promise<void> {
  if (!isToken(invitationToken)) throw new Refusal('invitation')
  const { session } = touch
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, session.member.id)
    await useTouch(ctx, tx, touch, 'invitation.accept', { invitation: invitationToken }, now)
    const joined = await acceptInvitation(tx, hashToken(invitationToken), session.member.id, now)
    if (!joined) throw new Refusal('invitation')
    if (!joined.isNew) throw new Refusal('is_member')
    // An owner who could replace their passkeys until now must not get into this store by it.
    await withdrawFor(tx, session.member.id)
    const member = { ...session.member, role: joined.role }
    await announce(ctx, tx, joined.storeId, actorOf(member), 'member.joined', member, now)
  })
}

/** By its hash, so that the token itself is nowhere but in the link. */
function toSubject(invitationToken: string) {
  return { invitation: hashToken(invitationToken).toString('hex') }
}
