import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { actorOf, announce } from './announce.ts'
import { openChallenge, takeChallenge } from './challenge.ts'
import { type Touch, useTouch } from './confirm.ts'
import { withdrawEmail } from './email.ts'
import type { Invitation, NewPasskey, Role } from './member.ts'
import { Refusal } from './refusal.ts'
import {
  deleteIdentities,
  deleteOtherPasskeys,
  deleteRecoveryCodes,
  invitationColumns,
  listMemberships,
  lockMember,
  withdrawBy,
  withdrawFor,
} from './rows.ts'
import { type Browser, deleteSessions, openSession } from './session.ts'
import { hashToken, isToken } from './token.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/** The invitation, and the options for the authenticator. Reading them does not use the invitation up. */
export async function openEnrolment(
  ctx: Context,
  browserToken: string,
  invitationToken: unknown,
): Promise<{
  readonly invitation: Invitation & { readonly storeName: string }
  readonly options: CreationOptions
}> {
  if (!isToken(invitationToken)) throw new Refusal('invitation')
  const [invitation] = await ctx.db.query<Invitation & { readonly storeName: string }>(
    `select ${invitationColumns}, s.name as "storeName" from invitations i join stores s on s.id = i.store_id
     where i.token_hash = $1 and i.used_at is null and i.expires_at > clock()`,
    [hashToken(invitationToken)],
  )
  if (!invitation) throw new Refusal('invitation')
  const challenge = await openChallenge(ctx, 'enrol', hashToken(browserToken), toSubject(invitationToken))
  const { memberId: id, name, email } = invitation
  return { invitation, options: creationOptions(ctx, challenge, { id, name, email }, []) }
}

/** Stores the passkey, which uses up the invitation, and signs in. Returns the session's token. */
export async function enrol(
  ctx: Context,
  browser: Browser,
  asked: { readonly invitation: unknown; readonly answer: unknown; readonly passkeyName: string },
  now: Date,
): Promise<string> {
  const { invitation: invitationToken, answer, passkeyName } = asked
  if (!isToken(invitationToken)) throw new Refusal('invitation')
  const { passkey, challenge } = await readNewPasskey(ctx, answer, passkeyName, now)
  return await ctx.db.transaction(async (tx) => {
    await takeChallenge(tx, challenge, 'enrol', hashToken(browser.token), toSubject(invitationToken))
    const used = await enrolPasskey(tx, hashToken(invitationToken), passkey, now)
    if (!used) throw new Refusal('invitation')
    const member = { id: used.memberId, name: used.name, role: used.role }
    if (used.isRecovery) {
      // A thief who has the lost passkey, or a session or an invitation or codes made with it, has nothing left. The lock comes
      // first, so that no passkey is added meanwhile.
      await lockMember(tx, member.id)
      await deleteOtherPasskeys(tx, member.id, passkey.id)
      await deleteIdentities(tx, member.id)
      await deleteRecoveryCodes(tx, member.id)
      await deleteSessions(tx, member.id)
      await withdrawEmail(tx, member.id)
      await withdrawFor(tx, member.id)
      await withdrawBy(tx, member.id, null)
      for (const { storeId, role } of await listMemberships(tx, member.id))
        await announce(ctx, tx, {
          ...{ storeId, actor: actorOf(member), now },
          type: 'member.recovered',
          member: { ...member, role },
        })
    } else {
      const { storeId } = used
      await announce(ctx, tx, { storeId, actor: actorOf(member), type: 'member.joined', member, now })
    }
    return await openSession(ctx, tx, { memberId: member.id, passkeyId: passkey.id, browser, now })
  })
}

/** A member of another store uses an invitation with an existing passkey. */
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
    await useTouch(
      ctx,
      tx,
      touch,
      { action: 'invitation.accept', values: { invitation: invitationToken } },
      now,
    )
    const joined = await acceptInvitation(tx, hashToken(invitationToken), session.member.id, now)
    if (!joined) throw new Refusal('invitation')
    if (!joined.isNew) throw new Refusal('is_member')
    // An owner of their earlier stores could replace their passkeys until now, and must not get into this store that
    // way.
    await withdrawFor(tx, session.member.id)
    const member = { ...session.member, role: joined.role }
    const { storeId } = joined
    await announce(ctx, tx, { storeId, actor: actorOf(member), type: 'member.joined', member, now })
  })
}

/** By its hash, so that only the link has the token itself. */
function toSubject(invitationToken: string) {
  return { invitation: hashToken(invitationToken).toString('hex') }
}

/**
 * Uses an invitation: one statement marks it as used, makes the member (unless it is for an existing one) and stores
 * the passkey. Null if the invitation cannot be used or the passkey is already known; the caller must then roll back.
 */
async function enrolPasskey(
  tx: Transaction,
  tokenHash: Buffer,
  passkey: NewPasskey,
  now: Date,
): Promise<Invitation | null> {
  const [row] = await tx.query<Invitation>(
    `with used as (
       update invitations set used_at = $8
       where token_hash = $1 and used_at is null and expires_at > clock()
       returning *
     ), person as (
       insert into members (id, name, email, created_at)
       select member_id, name, email, $8 from used where not is_recovery
     ), joined as (
       insert into memberships (store_id, member_id, role, created_at)
       select store_id, member_id, role, $8 from used where not is_recovery
     ), stored as (
       insert into passkeys (id, credential_id, member_id, public_key, counter, transports, name, created_at)
       select $2, $3, member_id, $4, $5, $6, $7, $8 from used
       on conflict (credential_id) do nothing
       returning member_id
     )
     select ${invitationColumns} from used i join stored using (member_id)`,
    [
      tokenHash,
      passkey.id,
      passkey.credentialId,
      Buffer.from(passkey.publicKey),
      passkey.counter,
      passkey.transports,
      passkey.name,
      now,
    ],
  )
  return row ?? null
}

/**
 * Uses an invitation for an existing member, in one statement. Null if it cannot be used or replaces a member's
 * passkeys; `isNew` is false if the member already belongs to the store. In both cases the caller must roll back.
 */
async function acceptInvitation(
  tx: Transaction,
  tokenHash: Buffer,
  memberId: MemberId,
  now: Date,
): Promise<{ readonly storeId: StoreId; readonly role: Role; readonly isNew: boolean } | null> {
  const [row] = await tx.query<{ storeId: StoreId; role: Role; isNew: boolean }>(
    `with used as (
       update invitations set used_at = $3
       where token_hash = $1 and used_at is null and expires_at > clock() and not is_recovery
       returning store_id, role
     ), joined as (
       insert into memberships (store_id, member_id, role, created_at)
       select store_id, $2, role, $3 from used
       on conflict do nothing
       returning store_id
     )
     select u.store_id as "storeId", u.role, j.store_id is not null as "isNew"
     from used u left join joined j using (store_id)`,
    [tokenHash, memberId, now],
  )
  return row ?? null
}
