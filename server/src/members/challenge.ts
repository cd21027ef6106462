import { hash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { Refusal } from './refusal.ts'
import { type ChallengeKey, deleteChallenge, insertChallenge } from './session-rows.ts'
import { hashToken, newToken } from './token.ts'

/**
 * A challenge is good for one browser, one purpose and one subject, for five minutes, and once: using it deletes its row,
 * in the transaction of what it allows.
 */
export const challengeSeconds = 300

export type Purpose = ChallengeKey['purpose']

/** What a challenge is for, as text: the same values in any order are the same subject. */
export type Subject = Readonly<Record<string, string>>

export async function openChallenge(
  ctx: Context,
  purpose: Purpose,
  browserHash: Buffer,
  subject: Subject,
): Promise<string> {
  const challenge = newToken()
  await insertChallenge(ctx.db, toKey(challenge, purpose, browserHash, subject), challengeSeconds)
  return challenge
}

export async function takeChallenge(
  tx: Transaction,
  challenge: string,
  purpose: Purpose,
  browserHash: Buffer,
  subject: Subject,
): Promise<void> {
  if (!(await deleteChallenge(tx, toKey(challenge, purpose, browserHash, subject))))
    throw new Refusal('challenge')
}

function toKey(challenge: string, purpose: Purpose, browserHash: Buffer, subject: Subject): ChallengeKey {
  const entries = Object.entries(subject).sort(([a], [b]) => (a < b ? -1 : 1))
  const subjectHash = Buffer.from(hash('sha256', JSON.stringify(entries), 'hex'), 'hex')
  return { hash: hashToken(challenge), purpose, browserHash, subjectHash }
}
