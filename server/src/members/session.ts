import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { type MemberId, newId, type PasskeyId } from '../ids.ts'
import type { Session, SessionUse } from './member.ts'
import { kindOf, type Place, rememberPlace, tellPlace } from './place.ts'
import { Refusal } from './refusal.ts'
import { lockMember } from './rows.ts'
import * as rows from './session-rows.ts'
import { hashToken, isToken, newToken } from './token.ts'

/** A session that nobody uses ends after this: a day's work is shorter, a stolen laptop's night is not. */
const idleHours = 12
/** However busy it is, a session ends after this. */
const lifeDays = 7
/** How exactly it is kept when a session was seen, and where: a write per request would buy nothing. */
const seenEveryMs = 5 * 60_000
/** More than anybody's devices; beyond it the oldest session ends. */
const sessionsMax = 20
const browserMax = 200
/** Browsers and addresses that a session keeps, each with the time of its last use. */
const usesMax = 10
/**
 * How often the member is told that one session is used elsewhere. Whoever has its cookie can be somewhere else with every
 * request, and would fill the stores' logs and use up their mails.
 */
const movesMax = 5

export const sessionSeconds = lifeDays * 86_400

/** The browser that a request comes from, as far as its member will want to recognise it. */
export type Browser = Place & {
  /** The token in its cookie. */
  readonly token: string
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
  await rememberPlace(tx, memberId, browser)
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

export async function readSession(ctx: Context, token: string): Promise<rows.UsedSession | null> {
  return isToken(token) ? await rows.readSession(ctx.db, hashToken(token), idleHours) : null
}

/**
 * The session of a browser that asks for something, and notes where it is. With `isByItself` that does not count as use:
 * an open screen must not keep a session alive that nobody uses. Where it is used from is noted all the same, because
 * whoever has the cookie can say so too.
 */
export async function useSession(
  ctx: Context,
  browser: Browser,
  now: Date,
  isByItself: boolean,
): Promise<Session | null> {
  const session = await readSession(ctx, browser.token)
  if (!session) return null
  const isFresh = (at: Date) => now.getTime() - at.getTime() <= seenEveryMs
  const use = { browser: browser.userAgent.slice(0, browserMax), address: browser.address, at: now }
  const last = findUse(session.uses, use)
  if (!last) await ctx.db.transaction((tx) => noteMove(ctx, tx, session, browser, use, isByItself))
  else if (!isByItself && !(isFresh(last.at) && isFresh(session.seenAt)))
    await rows.noteUse(ctx.db, session.id, use, usesMax, true)
  return session
}

function findUse(uses: readonly SessionUse[], { browser, address }: SessionUse): SessionUse | undefined {
  return uses.find((each) => each.browser === browser && each.address === address)
}

/** A browser or an address that the session was not used from yet. */
async function noteMove(
  ctx: Context,
  tx: Transaction,
  session: rows.UsedSession,
  place: Place,
  use: SessionUse,
  isByItself: boolean,
): Promise<void> {
  const { id, member, browser, address } = session
  // Before the session's row, as whoever ends a member's sessions does it.
  await lockMember(tx, member.id)
  const held = await rows.holdUses(tx, id)
  // Ended, or a request of the same moment has noted it.
  if (!held || findUse(held.uses, use)) return
  await rows.noteUse(tx, id, use, usesMax, !isByItself)
  // What nobody is told of does not become known either.
  if (held.moves >= movesMax) return
  const isNew = await rememberPlace(tx, member.id, place)
  const isSameKind = kindOf(use.browser) === kindOf(browser)
  // A session of before this was kept.
  const isWhereItBegan = isSameKind && use.address === address
  if ((isSameKind && !isNew) || isWhereItBegan) return
  await rows.countMove(tx, id)
  await tellPlace(ctx, tx, member.id, 'member.session_moved', place, use.at)
}

/** Tells the member if they were never seen there. */
export async function noteSignIn(
  ctx: Context,
  tx: Transaction,
  memberId: MemberId,
  place: Place,
  now: Date,
): Promise<void> {
  if (await rememberPlace(tx, memberId, place))
    await tellPlace(ctx, tx, memberId, 'member.signed_in', place, now)
}

export async function listSessions(ctx: Context, memberId: MemberId): Promise<rows.ListedSession[]> {
  return await rows.listSessions(ctx.db, memberId, idleHours)
}

/** Ends a session of the member: this one, or another of theirs. */
export async function endSession(ctx: Context, { member }: Session, sessionId: string): Promise<void> {
  if (!(await rows.deleteSession(ctx.db, member.id, sessionId))) throw new Refusal('not_found')
}
