import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { type MemberId, newId, type PasskeyId } from '../ids.ts'
import type { Session } from './member.ts'
import { Refusal } from './refusal.ts'
import * as rows from './session-rows.ts'
import { hashToken, isToken, newToken } from './token.ts'

/** A session that nobody uses ends after this: a day's work is shorter, a stolen laptop's night is not. */
const idleHours = 12
/** However busy it is, a session ends after this. */
const lifeDays = 7
/** How exactly `seenAt` is kept: a write per request would buy nothing. */
const seenEveryMs = 5 * 60_000
/** More than anybody's devices; beyond it the oldest session ends. */
const sessionsMax = 20
const browserMax = 200

export const sessionSeconds = lifeDays * 86_400

/** The browser that a request comes from, as far as its member will want to recognise it. */
export type Browser = {
  /** The token in its cookie. */
  readonly token: string
  readonly userAgent: string
  readonly address: string
}

/** Opens a session and returns its token: always a new one, so that nobody can plant it before. */
export async function openSession(
  ctx: Context,
  tx: Transaction,
  memberId: MemberId,
  passkeyId: PasskeyId | null,
  browser: Browser,
  now: Date,
): Promise<string> {
  const token = newToken()
  await rows.insertSession(
    tx,
    {
      id: newId('ses', ctx.config.cell, now),
      tokenHash: hashToken(token),
      memberId,
      passkeyId,
      browser: browser.userAgent.slice(0, browserMax),
      address: browser.address,
      createdAt: now,
      expiresAt: new Date(now.getTime() + sessionSeconds * 1_000),
    },
    sessionsMax,
  )
  return token
}

/** With `isByItself`, reading it does not count as use: an open screen must not keep a session alive that nobody uses. */
export async function readSession(
  ctx: Context,
  token: string,
  now: Date,
  isByItself = false,
): Promise<Session | null> {
  if (!isToken(token)) return null
  const session = await rows.readSession(ctx.db, hashToken(token), idleHours)
  if (session && !isByItself && now.getTime() - session.seenAt.getTime() > seenEveryMs)
    await rows.touchSession(ctx.db, session.id)
  return session
}

export async function listSessions(ctx: Context, memberId: MemberId): Promise<rows.ListedSession[]> {
  return await rows.listSessions(ctx.db, memberId, idleHours)
}

/** Ends a session of the member: this one, or another of theirs. */
export async function endSession(ctx: Context, { member }: Session, sessionId: string): Promise<void> {
  if (!(await rows.deleteSession(ctx.db, member.id, sessionId))) throw new Refusal('not_found')
}
