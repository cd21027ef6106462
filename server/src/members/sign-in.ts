import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { openChallenge, takeChallenge } from './challenge.ts'
import { Refusal } from './refusal.ts'
import { findPasskey, lockMember } from './rows.ts'
import { type Browser, noteSignIn, openSession } from './session.ts'
import { hashToken } from './token.ts'
import { type Assertion, type RequestOptions, readAssertion, requestOptions } from './webauthn.ts'

/** The options for an authenticator. No name is needed: the passkey identifies its member. */
export async function openSignIn(ctx: Context, browserToken: string): Promise<RequestOptions> {
  return requestOptions(ctx, await openChallenge(ctx, 'sign_in', hashToken(browserToken), {}), [])
}

/** Signs in and returns the session's token. */
export async function signIn(ctx: Context, browser: Browser, answer: unknown, now: Date): Promise<string> {
  const assertion = await readAssertion(ctx, answer, (id) => findPasskey(ctx.db, id))
  return await ctx.db.transaction(async (tx) => {
    await takeChallenge(tx, assertion.challenge, 'sign_in', hashToken(browser.token), {})
    const { id, memberId } = assertion.passkey
    // Before the passkey's row, in the same order as by code that removes passkeys.
    await lockMember(tx, memberId)
    await notePasskeyUse(ctx, tx, assertion, now)
    await noteSignIn(ctx, tx, memberId, browser, now)
    return await openSession(ctx, tx, { memberId, passkeyId: id, browser, now })
  })
}

/**
 * Records a use of a passkey. Refuses one that was removed meanwhile, or whose counter went back: an authenticator that
 * counts never repeats a number, so two that do are copies. The row's lock serialises uses.
 */
export async function notePasskeyUse(
  ctx: Context,
  tx: Transaction,
  { passkey, counter }: Assertion,
  now: Date,
): Promise<void> {
  const noted = await tx.query(
    `update passkeys set counter = $2, last_used_at = $3
     where id = $1 and (counter < $2 or (counter = 0 and $2 = 0)) returning id`,
    [passkey.id, counter, now],
  )
  if (noted.length > 0) return
  if (passkey.counter > 0 && counter <= passkey.counter)
    ctx.log.warn(
      { memberId: passkey.memberId, passkeyId: passkey.id, counter, stored: passkey.counter },
      'a passkey counted backwards and was refused: it may have been copied; ask the member to remove it',
    )
  throw new Refusal('passkey')
}
