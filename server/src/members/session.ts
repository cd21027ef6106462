import { createHash } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type MemberId, newId, type PasskeyId, type SessionId } from '../ids.ts'
import { announcePlace } from './announce.ts'
import type { Member, Session, SessionUse } from './member.ts'
import { Refusal } from './refusal.ts'
import { lockMember } from './rows.ts'
import { hashToken, isToken, newToken } from './token.ts'

type Reader = Database | Transaction

/** An unused session ends after this: longer than a day's work, shorter than a night with a stolen laptop. */
const idleHours = 12
/** Every session ends after this, however busy it is. */
const lifeDays = 7
/** How precisely the time and place of a session's last use are kept: a write per request would gain nothing. */
const seenEveryMs = 5 * 60_000
/** More than a member's devices; beyond it the oldest session ends. */
const sessionsMax = 20
/** Expired sessions that opening one deletes, so that the table does not grow. */
const clearedAtOnce = 20
const browserMax = 200
/** Browsers and addresses that a session keeps, each with the time of its last use. */
const usesMax = 10
/**
 * How often a session's use elsewhere is announced to its member. A thief with its cookie can be in a new place with
 * every request, and would fill the stores' logs and use up their mails.
 */
const movesMax = 5
/** More than a member moves between; beyond it the oldest place is forgotten. */
const placesMax = 50

export const sessionSeconds = lifeDays * 86_400

/**
 * Where a member's browser is: its name and the network that it comes from. A place where a member was never seen
 * before is announced to them and in the logs of their stores, once. Places are kept as hashes, because they only have
 * to be recognised. Two browsers of the same kind in the same network are at the same place.
 */
export type Whereabouts = {
  readonly userAgent: string
  readonly address: string
  /** The network's addresses, as far as one of them shows. */
  readonly network: string
}

/** The browser that a request comes from, as its member will want to recognise it. */
export type Browser = Whereabouts & {
  /** The token in its cookie. */
  readonly token: string
}

/** A session, the browser and address that opened it, and those that used it. */
type UsedSession = Session & {
  readonly browser: string
  readonly address: string
  readonly uses: readonly SessionUse[]
}

type SessionRow = Omit<UsedSession, 'member' | 'uses'> &
  Omit<Member, 'id'> & { readonly memberId: MemberId; readonly uses: readonly UseRow[] }

type UseRow = { browser: string; address: string; at: string }

/** SQL: the session has neither ended nor been idle for too long. */
const isOpen = `s.expires_at > clock() and s.seen_at > clock() - interval '${idleHours} hours'`

/** SQL: a passkey opened the session that was made with a recovery code and confirms nothing yet. */
const isWaiting = `exists (select 1 from passkeys k where k.id = s.passkey_id and k.waits_until > clock())`

/** Opens a session and returns its token: always a new one, so that an attacker cannot plant it beforehand. */
export async function openSession(
  ctx: Context,
  tx: Transaction,
  {
    memberId,
    passkeyId,
    browser,
    now,
  }: {
    readonly memberId: MemberId
    /** Null if no passkey opens it. */
    readonly passkeyId: PasskeyId | null
    readonly browser: Browser
    readonly now: Date
  },
): Promise<string> {
  const token = newToken()
  await rememberPlace(tx, memberId, browser)
  const use = toUseOf(browser, now)
  // Also deletes the member's oldest sessions beyond the limit, first those of waiting passkeys, which must not push out
  // the session that can refuse them; and some expired sessions of any member.
  await tx.query(
    `with over as (
       delete from sessions where id in (
         select id from sessions where expires_at < clock() order by expires_at limit $9 for update skip locked)
     ), oldest as (
       delete from sessions where id in (
         select s.id from sessions s where s.member_id = $3 order by ${isWaiting}, s.id desc offset $10)
     )
     insert into sessions (id, token_hash, member_id, passkey_id, browser, address, created_at, seen_at, expires_at, uses)
     values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $11)`,
    [
      newId('ses', ctx.config.cell, now),
      hashToken(token),
      memberId,
      passkeyId,
      use.browser,
      use.address,
      now,
      new Date(now.getTime() + sessionSeconds * 1_000),
      clearedAtOnce,
      sessionsMax - 1,
      JSON.stringify([use]),
    ],
  )
  return token
}

export async function readSession(ctx: Context, token: string): Promise<UsedSession | null> {
  if (!isToken(token)) return null
  const [row] = await ctx.db.query<SessionRow>(
    `select s.id, s.token_hash as "tokenHash", s.seen_at as "seenAt", s.browser, s.address, s.uses,
       s.member_id as "memberId", m.name, m.email, m.is_operator as "isOperator"
     from sessions s join members m on m.id = s.member_id where s.token_hash = $1 and ${isOpen}`,
    [hashToken(token)],
  )
  if (!row) return null
  const { memberId, name, email, isOperator, uses, ...session } = row
  return { ...session, uses: uses.map(toUse), member: { id: memberId, name, email, isOperator } }
}

/**
 * The session of a browser that makes a request. Records where the browser is. With `isByItself` the request does not
 * count as use: an open screen must not keep an unused session alive. Its place is still recorded, because a thief
 * could set the flag too.
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
  const use = toUseOf(browser, now)
  const last = findUse(session.uses, use)
  if (!last) await ctx.db.transaction((tx) => noteMove(ctx, tx, session, { place: browser, use, isByItself }))
  else if (!isByItself && !(isFresh(last.at) && isFresh(session.seenAt)))
    await noteUse(ctx.db, session.id, use, true)
  return session
}

function toUseOf({ userAgent, address }: Browser, now: Date): SessionUse {
  return { browser: userAgent.slice(0, browserMax), address, at: now }
}

function findUse(uses: readonly SessionUse[], { browser, address }: SessionUse): SessionUse | undefined {
  return uses.find((each) => each.browser === browser && each.address === address)
}

/** Records a browser or an address that the session was not used from before. */
async function noteMove(
  ctx: Context,
  tx: Transaction,
  session: UsedSession,
  asked: { readonly place: Whereabouts; readonly use: SessionUse; readonly isByItself: boolean },
): Promise<void> {
  const { place, use, isByItself } = asked
  const { id, member, browser, address } = session
  // Locked before the session's row, in the same order as by code that ends a member's sessions.
  await lockMember(tx, member.id)
  const held = await holdUses(tx, id)
  // The session has ended, or a simultaneous request has recorded it.
  if (!held || findUse(held.uses, use)) return
  await noteUse(tx, id, use, !isByItself)
  // A place that is not announced does not become known either.
  if (held.moves >= movesMax) return
  const isNew = await rememberPlace(tx, member.id, place)
  const isSameKind = kindOf(use.browser) === kindOf(browser)
  // For sessions opened before uses were kept.
  const isWhereItBegan = isSameKind && use.address === address
  if ((isSameKind && !isNew) || isWhereItBegan) return
  await tx.query('update sessions set moves = moves + 1 where id = $1', [id])
  await announcePlace(ctx, tx, {
    memberId: member.id,
    type: 'member.session_moved',
    address: place.address,
    now: use.at,
  })
}

/** Announces a sign-in from a place where the member was never seen. */
export async function noteSignIn(
  ctx: Context,
  tx: Transaction,
  memberId: MemberId,
  place: Whereabouts,
  now: Date,
): Promise<void> {
  const { address } = place
  if (await rememberPlace(tx, memberId, place))
    await announcePlace(ctx, tx, { memberId, type: 'member.signed_in', address, now })
}

/** Adds a place to the member's. Returns whether they were never seen there. */
async function rememberPlace(tx: Transaction, memberId: MemberId, place: Whereabouts): Promise<boolean> {
  const hash = createHash('sha256').update(JSON.stringify([memberId, kindOf(place.userAgent), place.network]))
  const rows = await tx.query(
    `update members set places = (places || $2::bytea)[greatest(1, cardinality(places) + 2 - $3):]
     where id = $1 and $2 <> all (places) returning id`,
    [memberId, hash.digest(), placesMax],
  )
  return rows.length > 0
}

/** A browser's name and system without the versions, which change every few weeks. */
function kindOf(userAgent: string): string {
  return userAgent.replaceAll(/[\d._]+/g, '')
}

/**
 * Ends one of the member's sessions: this one or another. One that a waiting passkey opened ends only sessions of waiting
 * passkeys: a thief with a code must not end the session in which the member can refuse it.
 */
export async function endSession({ db }: Context, session: Session, sessionId: string): Promise<void> {
  const ended = await db.query(
    `delete from sessions s where s.id = $1 and s.member_id = $2
       and (${isWaiting} or not exists (select 1 from sessions s where s.id = $3 and ${isWaiting}))
     returning s.id`,
    [sessionId, session.member.id, session.id],
  )
  if (ended.length === 0) throw new Refusal('not_found')
}

export type ListedSession = {
  readonly id: SessionId
  readonly browser: string
  readonly address: string
  readonly createdAt: Date
  readonly seenAt: Date
  readonly uses: readonly SessionUse[]
}

export async function listSessions({ db }: Context, memberId: MemberId): Promise<ListedSession[]> {
  const rows = await db.query<Omit<ListedSession, 'uses'> & { uses: readonly UseRow[] }>(
    `select s.id, s.browser, s.address, s.created_at as "createdAt", s.seen_at as "seenAt", s.uses
     from sessions s where s.member_id = $1 and ${isOpen} order by s.id desc`,
    [memberId],
  )
  return rows.map((row) => ({ ...row, uses: row.uses.map(toUse) }))
}

function toUse({ at, ...use }: UseRow): SessionUse {
  return { ...use, at: new Date(at) }
}

/** Whether a session is still open. It cannot be ended until the transaction is over. */
export async function holdSession(tx: Transaction, id: SessionId): Promise<boolean> {
  return (await tx.query('select 1 as held from sessions where id = $1 for key share', [id])).length > 0
}

/**
 * Where a session was used from, and how often its use elsewhere was announced. No other request records a use of it
 * until the transaction is over.
 */
async function holdUses(
  tx: Transaction,
  id: SessionId,
): Promise<{ readonly uses: readonly SessionUse[]; readonly moves: number } | null> {
  const [row] = await tx.query<{ uses: readonly UseRow[]; moves: number }>(
    'select uses, moves from sessions where id = $1 for no key update',
    [id],
  )
  return row ? { uses: row.uses.map(toUse), moves: row.moves } : null
}

/** Puts a use first in the session's list, which keeps only the newest. */
async function noteUse(db: Reader, id: SessionId, use: SessionUse, counts: boolean): Promise<void> {
  await db.query(
    `update sessions set seen_at = case when $4 then clock() else seen_at end, uses = (
       select jsonb_agg(use order by use->>'at' desc) from (
         select use from (
           select $2::jsonb as use
           union all
           select use from jsonb_array_elements(uses) use
           where (use->>'browser', use->>'address') <> ($2::jsonb->>'browser', $2::jsonb->>'address')
         ) every order by use->>'at' desc limit $3
       ) newest
     ) where id = $1`,
    [id, JSON.stringify(use), usesMax, counts],
  )
}

export async function deleteSession(db: Reader, memberId: MemberId, id: string): Promise<boolean> {
  const rows = await db.query('delete from sessions where id = $1 and member_id = $2 returning id', [
    id,
    memberId,
  ])
  return rows.length > 0
}

export async function deleteSessions(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('delete from sessions where member_id = $1', [memberId])
}

/** Deletes the sessions that a passkey opened, or with null those that a company's account opened, except `kept`. */
export async function deleteSessionsOf(
  tx: Transaction,
  memberId: MemberId,
  passkeyId: string | null,
  kept: SessionId,
): Promise<void> {
  await tx.query(
    'delete from sessions where member_id = $1 and passkey_id is not distinct from $2 and id <> $3',
    [memberId, passkeyId, kept],
  )
}
