import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { Refusal } from './refusal.ts'
import { hashToken, newToken } from './token.ts'

/**
 * A challenge is valid once, for five minutes, for one browser, purpose and subject. Using it deletes its row, in the
 * transaction of the action that it allows.
 */
export const challengeSeconds = 300
/** Expired challenges that opening one deletes, so that the table does not grow with attempts. */
const clearedAtOnce = 20

type Purpose = 'sign_in' | 'sign_up' | 'enrol' | 'add_passkey' | 'confirm' | 'oidc' | 'recover'

/** The subject of a challenge, as text. The order of the values does not matter. */
export type Subject = Readonly<Record<string, string>>

export async function openChallenge(
  ctx: Context,
  purpose: Purpose,
  browserHash: Buffer,
  subject: Subject,
): Promise<string> {
  const challenge = newToken()
  await ctx.db.query(
    `with over as (
       delete from challenges where hash in (
         select hash from challenges where expires_at < clock() order by expires_at limit $6 for update skip locked)
     )
     insert into challenges (hash, purpose, browser_hash, subject_hash, expires_at)
     values ($1, $2, $3, $4, clock() + make_interval(secs => $5))`,
    [hashToken(challenge), purpose, browserHash, hashSubject(subject), challengeSeconds, clearedAtOnce],
  )
  return challenge
}

export async function takeChallenge(
  tx: Transaction,
  challenge: string,
  purpose: Purpose,
  browserHash: Buffer,
  subject: Subject,
): Promise<void> {
  if (!(await tryChallenge(tx, challenge, purpose, browserHash, subject))) throw new Refusal('challenge')
}

/** Whether the challenge was open for exactly this. If so, it is used up. */
export async function tryChallenge(
  tx: Transaction,
  challenge: string,
  purpose: Purpose,
  browserHash: Buffer,
  subject: Subject,
): Promise<boolean> {
  const rows = await tx.query(
    `delete from challenges where hash = $1 and purpose = $2 and browser_hash = $3 and subject_hash = $4
       and expires_at > clock() returning hash`,
    [hashToken(challenge), purpose, browserHash, hashSubject(subject)],
  )
  return rows.length > 0
}

function hashSubject(subject: Subject): Buffer {
  const entries = Object.entries(subject).sort(([a], [b]) => (a < b ? -1 : 1))
  return Buffer.from(hash('sha256', JSON.stringify(entries), 'hex'), 'hex')
}
