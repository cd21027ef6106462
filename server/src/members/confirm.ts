import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { openChallenge, type Subject, takeChallenge } from './challenge.ts'
import type { Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { findPasskey, listPasskeys } from './rows.ts'
import { holdSession } from './session.ts'
import { notePasskeyUse } from './sign-in.ts'
import { type Assertion, type RequestOptions, readAssertion, requestOptions } from './webauthn.ts'

/**
 * Step-up: actions that a stolen cookie must not be able to do need a touch of the passkey. A touch is for one action
 * with exactly the values that were asked for, in one session, within five minutes. The action's transaction uses it up:
 *
 *   1. the browser asks: `openConfirmation(ctx, session, action, values)`
 *   2. the passkey signs, and the browser sends its answer along with the action: `readTouch(ctx, session, answer)`
 *   3. the action's verb, in its own transaction: `await useTouch(ctx, tx, touch, { action, values }, now)`
 *
 * The verb itself names the action and the values that it is about to use, so a touch for anything else finds no
 * challenge.
 */
export type Action = (typeof actions)[number]

export const actions = [
  'passkey.add',
  'passkey.remove',
  'codes.make',
  'email.change',
  'member.invite',
  'member.recover',
  'member.remove',
  'member.role',
  'invitation.accept',
  'identity.add',
  'identity.remove',
  'wallet.use',
  'wallet.stop',
  'wallet.custody',
  'wallet.confirm',
  'wallet.undo',
  'wallet.setting',
  'wallet.known',
  'alerts.choose',
  'store.create',
  'store.invite',
  'store.approve',
  'store.suspend',
  'store.resume',
  'key.create',
  'key.revoke',
  'webhook.create',
  'webhook.update',
  'webhook.switch',
  'webhook.delete',
  'webhook.roll',
  'refund.create',
  'refund.declare',
  'refund.confirm',
  'refund.limit',
] as const

/** A passkey's answer in a session. The action that it was given for is not known yet. */
export type Touch = { readonly session: Session; readonly assertion: Assertion }

export async function openConfirmation(
  ctx: Context,
  session: Session,
  action: Action,
  values: Subject,
): Promise<RequestOptions> {
  const passkeys = await listPasskeys(ctx.db, session.member.id)
  if (passkeys.length === 0) throw new Refusal('no_passkey')
  const able = passkeys.filter(({ isWaiting }) => !isWaiting)
  if (able.length === 0) throw new Refusal('passkey_waits')
  const challenge = await openChallenge(ctx, 'confirm', session.tokenHash, toSubject(action, values))
  return requestOptions(ctx, challenge, able)
}

/** Accepts any passkey of the session's member, and no other. */
export async function readTouch(ctx: Context, session: Session, answer: unknown): Promise<Touch> {
  if (answer === undefined || answer === null) throw new Refusal('confirmation')
  const assertion = await readAssertion(ctx, answer, async (id) => {
    const passkey = await findPasskey(ctx.db, id)
    return passkey?.memberId === session.member.id ? passkey : null
  })
  return { session, assertion }
}

export async function useTouch(
  ctx: Context,
  tx: Transaction,
  { session, assertion }: Touch,
  { action, values }: { readonly action: Action; readonly values: Subject },
  now: Date,
): Promise<void> {
  if (!(await holdSession(tx, session.id))) throw new Refusal('signed_out')
  // As it was when the touch was read: a passkey that does not wait never begins to.
  if (assertion.passkey.isWaiting) throw new Refusal('passkey_waits')
  await takeChallenge(tx, assertion.challenge, 'confirm', session.tokenHash, toSubject(action, values))
  await notePasskeyUse(ctx, tx, assertion, now)
}

function toSubject(action: Action, values: Subject): Subject {
  return { ...values, action }
}
