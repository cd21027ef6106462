import type { Context } from '../context.ts'
import { announceEverywhere } from './announce.ts'
import { openChallenge, takeChallenge } from './challenge.ts'
import { type Touch, useTouch } from './confirm.ts'
import type { Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { insertPasskey, listPasskeys, lockMember } from './rows.ts'
import { deleteSessionsOf } from './session.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/** A phone, a laptop, a security key and a spare of each. */
const passkeysMax = 10

/** The options with which an authenticator makes another passkey for the member. */
export async function openPasskey(ctx: Context, { member, tokenHash }: Session): Promise<CreationOptions> {
  const challenge = await openChallenge(ctx, 'add_passkey', tokenHash, {})
  return creationOptions(ctx, challenge, member, await listPasskeys(ctx.db, member.id))
}

/** Adding a passkey needs a touch of one that the member already has. */
export async function addPasskey(
  ctx: Context,
  touch: Touch,
  answer: unknown,
  name: string,
  now: Date,
): Promise<void> {
  const { session } = touch
  const { passkey, challenge } = await readNewPasskey(ctx, answer, name, now)
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, session.member.id)
    await useTouch(ctx, tx, touch, { action: 'passkey.add', values: {} }, now)
    await takeChallenge(tx, challenge, 'add_passkey', session.tokenHash, {})
    if ((await listPasskeys(tx, session.member.id)).length >= passkeysMax) throw new Refusal('passkeys_max')
    if (!(await insertPasskey(tx, session.member.id, passkey, now))) throw new Refusal('passkey')
    await announceEverywhere(ctx, tx, session.member, 'member.passkey_added', now)
  })
}

/** Also ends the sessions that the passkey opened, except the current one. */
export async function removePasskey(ctx: Context, touch: Touch, passkeyId: string, now: Date): Promise<void> {
  const { session } = touch
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, session.member.id)
    await useTouch(ctx, tx, touch, { action: 'passkey.remove', values: { passkeyId } }, now)
    const passkeys = await listPasskeys(tx, session.member.id)
    if (!passkeys.some(({ id }) => id === passkeyId)) throw new Refusal('not_found')
    if (passkeys.length === 1) throw new Refusal('last_passkey')
    // In this order, a sign-in with the passkey either waits for us and fails, or is seen and ended.
    await tx.query('delete from passkeys where id = $1 and member_id = $2', [passkeyId, session.member.id])
    await deleteSessionsOf(tx, session.member.id, passkeyId, session.id)
    await announceEverywhere(ctx, tx, session.member, 'member.passkey_removed', now)
  })
}
