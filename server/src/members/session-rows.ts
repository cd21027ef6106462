import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, PasskeyId, SessionId, StoreId } from '../ids.ts'
import type { Role, Session, SessionUse } from './member.ts'
import { toMember } from './rows.ts'

type Reader = Database | Transaction

/** Rows past their time that one insert clears away, so that neither table grows with attempts. */
const clearedAtOnce = 20

type SessionRow = {
  id: SessionId
  token_hash: Buffer
  seen_at: Date
  browser: string
  address: string
  uses: readonly UseRow[]
  member_id: MemberId
  name: string
  email: string | null
  is_operator: boolean
}

type UseRow = { browser: string; address: string; at: string }

/** A session, the browser and address that it was opened from, and those that it was used from. */
export type UsedSession = Session & {
  readonly browser: string
  readonly address: string
  readonly uses: readonly SessionUse[]
}

export type ListedSession = {
  readonly id: SessionId
  readonly browser: string
  readonly address: string
  readonly createdAt: Date
  readonly seenAt: Date
  readonly uses: readonly SessionUse[]
}

/** SQL: the session has neither ended nor been left alone for too long. */
const isOpen = 's.expires_at > clock() and s.seen_at > clock() - make_interval(hours => $2)'

export async function readSession(
  db: Database,
  tokenHash: Buffer,
  idleHours: number,
): Promise<UsedSession | null> {
  const [row] = await db.query<SessionRow>(
    `select s.id, s.token_hash, s.seen_at, s.browser, s.address, s.uses, s.member_id, m.name, m.email, m.is_operator
     from sessions s join members m on m.id = s.member_id where s.token_hash = $1 and ${isOpen}`,
    [tokenHash, idleHours],
  )
  if (!row) return null
  const { id, token_hash, seen_at, browser, address, uses, member_id, ...rest } = row
  const member = toMember({ id: member_id, ...rest })
  return { id, tokenHash: token_hash, seenAt: seen_at, browser, address, uses: uses.map(toUse), member }
}

export async function listSessions(
  db: Database,
  memberId: MemberId,
  idleHours: number,
): Promise<ListedSession[]> {
  const rows = await db.query<Omit<ListedSession, 'uses'> & { uses: readonly UseRow[] }>(
    `select s.id, s.browser, s.address, s.created_at as "createdAt", s.seen_at as "seenAt", s.uses
     from sessions s where s.member_id = $1 and ${isOpen} order by s.id desc`,
    [memberId, idleHours],
  )
  return rows.map((row) => ({ ...row, uses: row.uses.map(toUse) }))
}

function toUse({ at, ...use }: UseRow): SessionUse {
  return { ...use, at: new Date(at) }
}

export type NewSession = {
  readonly id: SessionId
  readonly tokenHash: Buffer
  readonly memberId: MemberId
  readonly passkeyId: PasskeyId | null
  readonly browser: string
  readonly address: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Inserts a session, and deletes the member's oldest ones beyond `kept` and some that are over. */
export async function insertSession(tx: Transaction, session: NewSession, kept: number): Promise<void> {
  await tx.query(
    `with over as (
       delete from sessions where id in (
         select id from sessions where expires_at < clock() order by expires_at limit $9 for update skip locked)
     ), oldest as (
       delete from sessions where id in (
         select id from sessions where member_id = $3 order by id desc offset $10)
     )
     insert into sessions (id, token_hash, member_id, passkey_id, browser, address, created_at, seen_at, expires_at, uses)
     values ($1, $2, $3, $4, $5, $6, $7, $7, $8, $11)`,
    [
      session.id,
      session.tokenHash,
      session.memberId,
      session.passkeyId,
      session.browser,
      session.address,
      session.createdAt,
      session.expiresAt,
      clearedAtOnce,
      kept - 1,
      JSON.stringify([{ browser: session.browser, address: session.address, at: session.createdAt }]),
    ],
  )
}

/** Whether a session has not been ended. Until the transaction is over nobody else can end it. */
export async function holdSession(tx: Transaction, id: SessionId): Promise<boolean> {
  return (await tx.query('select 1 as held from sessions where id = $1 for key share', [id])).length > 0
}

/** A session's member's role in a store, which nobody else can take away until the transaction is over. */
export async function holdRole(tx: Transaction, id: SessionId, storeId: StoreId): Promise<Role | null> {
  const [row] = await tx.query<{ role: Role }>(
    `select m.role from memberships m join sessions s on s.member_id = m.member_id
     where m.store_id = $2 and s.id = $1 for share of m for key share of s`,
    [id, storeId],
  )
  return row?.role ?? null
}

/**
 * Where a session was used from, and how often its member was told that it is used elsewhere. Until the transaction is
 * over nobody else notes a use of it.
 */
export async function holdUses(
  tx: Transaction,
  id: SessionId,
): Promise<{ readonly uses: readonly SessionUse[]; readonly moves: number } | null> {
  const [row] = await tx.query<{ uses: readonly UseRow[]; moves: number }>(
    'select uses, moves from sessions where id = $1 for no key update',
    [id],
  )
  return row ? { uses: row.uses.map(toUse), moves: row.moves } : null
}

/** Puts a use first among those of a session, of which it keeps so many. */
export async function noteUse(
  db: Reader,
  id: SessionId,
  use: SessionUse,
  kept: number,
  counts: boolean,
): Promise<void> {
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
    [id, JSON.stringify(use), kept, counts],
  )
}

export async function countMove(tx: Transaction, id: SessionId): Promise<void> {
  await tx.query('update sessions set moves = moves + 1 where id = $1', [id])
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

/** The sessions that a passkey opened, or those that a company's account did (null), but not the one that removes it. */
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

export type ChallengeKey = {
  readonly hash: Buffer
  readonly purpose: 'sign_in' | 'sign_up' | 'enrol' | 'add_passkey' | 'confirm' | 'oidc'
  readonly browserHash: Buffer
  readonly subjectHash: Buffer
}

export async function insertChallenge(db: Database, key: ChallengeKey, seconds: number): Promise<void> {
  await db.query(
    `with over as (
       delete from challenges where hash in (
         select hash from challenges where expires_at < clock() order by expires_at limit $6 for update skip locked)
     )
     insert into challenges (hash, purpose, browser_hash, subject_hash, expires_at)
     values ($1, $2, $3, $4, clock() + make_interval(secs => $5))`,
    [key.hash, key.purpose, key.browserHash, key.subjectHash, seconds, clearedAtOnce],
  )
}

/** Whether the challenge was open for exactly this. It is not any more. */
export async function deleteChallenge(tx: Transaction, key: ChallengeKey): Promise<boolean> {
  const rows = await tx.query(
    `delete from challenges where hash = $1 and purpose = $2 and browser_hash = $3 and subject_hash = $4
       and expires_at > clock() returning hash`,
    [key.hash, key.purpose, key.browserHash, key.subjectHash],
  )
  return rows.length > 0
}
