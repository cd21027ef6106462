import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { isId, type MemberId, newId, type PasskeyId } from '../ids.ts'
import { openChallenge, type Subject, takeChallenge } from './challenge.ts'
import { insertPasskey } from './passkey-rows.ts'
import { Refusal } from './refusal.ts'
import { type Browser, openSession } from './session.ts'
import { countSignUp, insertMember, isBlockFull } from './sign-up-rows.ts'
import { hashToken } from './token.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/** The block that stands for all of them. */
const everywhere = ''

/** What a stranger entered. The passkey is made for exactly this. */
export type Application = Subject & { readonly name: string }

/** What to ask the authenticator for. Nothing is stored but the challenge. */
export async function openSignUp(
  ctx: Context,
  browserToken: string,
  block: string,
  application: Application,
  now: Date,
): Promise<{ readonly memberId: MemberId; readonly options: CreationOptions }> {
  // Also asked when it counts, below. Here it spares people a passkey that would be for nothing.
  const { signUpsPerBlock, signUpsPerDay } = ctx.config
  if (
    (await isBlockFull(ctx.db, block, signUpsPerBlock)) ||
    (await isBlockFull(ctx.db, everywhere, signUpsPerDay))
  )
    throw new Refusal('sign_ups_max')
  const memberId = newId('mem', ctx.config.cell, now)
  const challenge = await openChallenge(ctx, 'sign_up', hashToken(browserToken), { ...application, memberId })
  const { name } = application
  return { memberId, options: creationOptions(ctx, challenge, { id: memberId, name, email: null }, []) }
}

/**
 * Makes the member with their passkey, lets `open` make what belongs to them, and signs them in: all in one transaction,
 * so there is either all of it or nothing. Returns the session's token.
 */
export async function signUp(
  ctx: Context,
  browser: Browser,
  block: string,
  memberId: string,
  application: Application,
  answer: unknown,
  passkeyName: string,
  now: Date,
  open: (tx: Transaction, member: { readonly id: MemberId; readonly name: string }) => Promise<void>,
): Promise<string> {
  if (!isId('mem', memberId)) throw new Refusal('challenge')
  const { passkey, challenge } = await readNewPasskey(ctx, answer, passkeyName, now)
  const { signUpsPerBlock, signUpsPerDay } = ctx.config
  return await ctx.db.transaction(async (tx) => {
    await takeChallenge(tx, challenge, 'sign_up', hashToken(browser.token), { ...application, memberId })
    if (!(await countSignUp(tx, block, signUpsPerBlock))) throw new Refusal('sign_ups_max')
    if (!(await countSignUp(tx, everywhere, signUpsPerDay))) throw new Refusal('sign_ups_max')
    const member = { id: memberId, name: application.name }
    await insertMember(tx, member, now)
    if (!(await insertPasskey(tx, memberId, passkey, now))) throw new Refusal('passkey')
    await open(tx, member)
    return await openSession(ctx, tx, memberId, passkey.id as PasskeyId, browser, now)
  })
}
