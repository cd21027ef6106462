import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { isId, type MemberId, newId } from '../ids.ts'
import { openChallenge, type Subject, takeChallenge } from './challenge.ts'
import { Refusal } from './refusal.ts'
import { insertMember, insertPasskey } from './rows.ts'
import { type Browser, openSession } from './session.ts'
import { hashToken } from './token.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/** The block that stands for all blocks. */
const everywhere = ''

/** A stranger's entries. The passkey is made for exactly these. */
export type Application = Subject & { readonly name: string }

export type SignUp = {
  /** The network that the browser comes from. */
  readonly block: string
  readonly memberId: string
  readonly application: Application
  readonly answer: unknown
  readonly passkeyName: string
}

/** The options for the authenticator. Only the challenge is stored. */
export async function openSignUp(
  ctx: Context,
  browserToken: string,
  block: string,
  application: Application,
  now: Date,
): Promise<{ readonly memberId: MemberId; readonly options: CreationOptions }> {
  // Checked again below, where it counts. Here it saves people a passkey that would be useless.
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
 * Makes the member with their passkey, lets `open` make their stores, and signs them in. One transaction does all of it
 * or nothing. Returns the session's token.
 */
export async function signUp(
  ctx: Context,
  browser: Browser,
  signing: SignUp,
  now: Date,
  open: (tx: Transaction, member: { readonly id: MemberId; readonly name: string }) => Promise<void>,
): Promise<string> {
  const { block, memberId, application, answer, passkeyName } = signing
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
    return await openSession(ctx, tx, { memberId, passkeyId: passkey.id, browser, now })
  })
}

/** Rows of earlier days that one sign-up deletes, so that the table does not grow. */
const clearedAtOnce = 100

const today = "(clock() at time zone 'utc')::date"

/** Whether this block has reached its limit today. */
async function isBlockFull(db: Database, block: string, max: number): Promise<boolean> {
  const rows = await db.query(
    `select 1 as found from sign_ups where day = ${today} and block = $1 and count >= $2`,
    [block, max],
  )
  return rows.length > 0
}

/** Counts one more sign-up from this block, unless it is full. The row's lock serialises them. */
async function countSignUp(tx: Transaction, block: string, max: number): Promise<boolean> {
  const rows = await tx.query(
    `with over as (
       delete from sign_ups where ctid = any (array(
         select ctid from sign_ups where day < ${today} limit $3 for update skip locked))
     )
     insert into sign_ups as s (day, block, count) values (${today}, $1, 1)
     on conflict (day, block) do update set count = s.count + 1 where s.count < $2
     returning count`,
    [block, max, clearedAtOnce],
  )
  return rows.length > 0
}
