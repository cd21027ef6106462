import { randomBytes } from 'node:crypto'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { announceEverywhere } from './announce.ts'
import { openChallenge, takeChallenge } from './challenge.ts'
import { type Touch, useTouch } from './confirm.ts'
import type { Member, Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { deleteRecoveryCodes, insertPasskey, lockMember, memberColumns } from './rows.ts'
import { type Browser, deleteSessionsOf, holdSession, openSession } from './session.ts'
import { hashToken } from './token.ts'
import { type CreationOptions, creationOptions, readNewPasskey } from './webauthn.ts'

/**
 * Codes on paper, for a member who has lost every passkey. A code is no way to sign in: it makes one new passkey. All
 * owners of the member's stores and the member are told at once. For a day the new passkey opens sessions but confirms
 * nothing, and the earlier passkeys go on working. In that time the member, in any session that the new passkey did not
 * open or with another code, can refuse it without a touch, and other owners can replace it or remove the member. So
 * whoever finds a code can look around for a day, as a thief with a cookie can, and takes over only a member whom nobody
 * looks after. Operators have no codes: another operator helps them, and their commands need no passkey.
 */
export const codesPerSet = 8
/**
 * 120 random bits. Nobody guesses them, however fast the hash is, so codes are hashed as tokens are. A slow hash is for
 * secrets that people choose; here it would only let strangers keep our processors busy. (NIST SP 800-63B asks for one
 * below 112 bits.)
 */
const codeLength = 24
/** Crockford's base32, five bits per character: no I, L, O or U, which people misread. */
const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const codeForm = /^[0-9A-HJKMNP-TV-Z]{24}$/
/** With spaces and hyphens between all characters. */
const typedMax = 60
/** Long enough to notice a mail, whatever the time zone: as long as a change of wallet can be undone. */
const waitHours = 24
/** Enough for a member whose first new passkey is on the wrong device, too few to use up a sheet that was found. */
const usesPerDay = 3

/** The member's codes that are not used yet, and when they were made. Null: the member has never made any. */
export type CodesLeft = { readonly count: number; readonly madeAt: Date }

/** A new sheet of codes. It ends the one before. The codes are shown once. */
export async function makeCodes(ctx: Context, touch: Touch, now: Date): Promise<readonly string[]> {
  const { session } = touch
  const codes = Array.from({ length: codesPerSet }, newCode)
  await ctx.db.transaction(async (tx) => {
    if (await lockMember(tx, session.member.id)) throw new Refusal('operator_codes')
    await useTouch(ctx, tx, touch, { action: 'codes.make', values: {} }, now)
    await deleteRecoveryCodes(tx, session.member.id)
    await tx.query(
      'insert into recovery_codes (hash, member_id, created_at) select hash, $2, $3 from unnest($1::bytea[]) hash',
      [codes.map(hashCode), session.member.id, now],
    )
    await announceEverywhere(ctx, tx, session.member, 'member.codes_made', now)
  })
  return codes.map(group)
}

export async function readCodesLeft(db: Database, memberId: MemberId): Promise<CodesLeft | null> {
  const [row] = await db.query<CodesLeft>(
    `select (count(*) filter (where used_at is null))::integer as count, max(created_at) as "madeAt"
     from recovery_codes where member_id = $1 having count(*) > 0`,
    [memberId],
  )
  return row ?? null
}

/**
 * Whether the only owner of a store could get in again without their passkey: by another one or by a code. Null for
 * everyone else, whom another owner helps, and for an owner without a passkey, whom only `dev` has.
 */
export async function readSpare(db: Database, storeId: StoreId, memberId: MemberId): Promise<boolean | null> {
  const [row] = await db.query<{ isOnlyOwner: boolean; passkeys: number; hasCodes: boolean }>(
    `select array(select member_id from memberships where store_id = $1 and role = 'owner') = array[$2::text]
         as "isOnlyOwner",
       (select count(*) from passkeys where member_id = $2)::integer as passkeys,
       exists (select 1 from recovery_codes where member_id = $2 and used_at is null) as "hasCodes"`,
    [storeId, memberId],
  )
  return row?.isOnlyOwner && row.passkeys > 0 ? row.passkeys > 1 || row.hasCodes : null
}

/** Whose code it is, and the options for the authenticator. Reading them does not use the code up. */
export async function openRecovery(
  ctx: Context,
  browserToken: string,
  typed: unknown,
): Promise<{ readonly name: string; readonly options: CreationOptions }> {
  const code = readCode(typed)
  const [member] = await ctx.db.query<Member>(
    `select ${memberColumns} from members where id = (
       select member_id from recovery_codes where hash = $1 and used_at is null)`,
    [hashCode(code)],
  )
  if (!member) throw new Refusal('code')
  const challenge = await openChallenge(ctx, 'recover', hashToken(browserToken), toSubject(code))
  return { name: member.name, options: creationOptions(ctx, challenge, member, []) }
}

/** Stores the passkey, which uses up the code, and opens a session with it. Returns the session's token. */
export async function recover(
  ctx: Context,
  browser: Browser,
  asked: { readonly code: unknown; readonly answer: unknown; readonly passkeyName: string },
  now: Date,
): Promise<string> {
  const code = readCode(asked.code)
  const { passkey, challenge } = await readNewPasskey(ctx, asked.answer, asked.passkeyName, now)
  return await ctx.db.transaction(async (tx) => {
    await takeChallenge(tx, challenge, 'recover', hashToken(browser.token), toSubject(code))
    const member = await useCode(tx, hashCode(code), now)
    if (!(await insertPasskey(tx, member.id, passkey, now))) throw new Refusal('passkey')
    await tx.query('update passkeys set waits_until = clock() + make_interval(hours => $2) where id = $1', [
      passkey.id,
      waitHours,
    ])
    await announceEverywhere(ctx, tx, member, 'member.code_used', now)
    ctx.log.warn({ memberId: member.id, passkeyId: passkey.id }, 'a member used a recovery code')
    return await openSession(ctx, tx, { memberId: member.id, passkeyId: passkey.id, browser, now })
  })
}

/**
 * Removes the passkeys that wait and all codes: whoever used one may have the sheet. This needs no touch, because it
 * gives nobody access, and a member who has lost every passkey may still be signed in somewhere. A session that a waiting
 * passkey opened cannot do it: a thief must not refuse the member.
 */
export async function refuseRecovery(ctx: Context, session: Session, now: Date): Promise<void> {
  const { member } = session
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, member.id)
    if (!(await holdSession(tx, session.id))) throw new Refusal('signed_out')
    const removed = await tx.query<{ id: string }>(
      `delete from passkeys where member_id = $1 and waits_until > clock() and not exists (
         select 1 from sessions s join passkeys k on k.id = s.passkey_id
         where s.id = $2 and k.waits_until > clock())
       returning id`,
      [member.id, session.id],
    )
    if (removed.length === 0) throw new Refusal('not_found')
    for (const { id } of removed) await deleteSessionsOf(tx, member.id, id, session.id)
    await deleteRecoveryCodes(tx, member.id)
    await announceEverywhere(ctx, tx, member, 'member.passkey_removed', now)
  })
}

/**
 * The same with an unused code, for a member who has neither a passkey nor a session left when somebody else uses another
 * code of the sheet: without it, whoever came first would win. A thief with the sheet can do it too, and then nobody has a
 * way in but through an owner or the operator.
 */
export async function refuseByCode(ctx: Context, typed: unknown, now: Date): Promise<void> {
  const hash = hashCode(readCode(typed))
  await ctx.db.transaction(async (tx) => {
    const [found] = await tx.query<{ memberId: MemberId }>(
      'select member_id as "memberId" from recovery_codes where hash = $1',
      [hash],
    )
    if (!found) throw new Refusal('code')
    await lockMember(tx, found.memberId)
    const [member] = await tx.query<Member>(
      `select ${memberColumns} from members where id = (
         select member_id from recovery_codes where hash = $1 and used_at is null)`,
      [hash],
    )
    if (!member) throw new Refusal('code')
    const removed = await tx.query<{ id: string }>(
      'delete from passkeys where member_id = $1 and waits_until > clock() returning id',
      [member.id],
    )
    if (removed.length === 0) throw new Refusal('nothing_waits')
    await tx.query('delete from sessions where passkey_id = any($1)', [removed.map(({ id }) => id)])
    await deleteRecoveryCodes(tx, member.id)
    await announceEverywhere(ctx, tx, member, 'member.passkey_removed', now)
  })
}

/** A passkey that was made with a code and waits, as the member and other owners of their stores see it. */
export type WaitingPasskey = {
  readonly memberId: MemberId
  readonly memberName: string
  /** For another member: a store of theirs that the session's member owns. */
  readonly storeId: StoreId | null
  readonly createdAt: Date
  readonly waitsUntil: Date
  /** Whether it opened the session that asks. */
  readonly isHere: boolean
}

/** The waiting passkeys of the session's member, and of the members of stores that they own. */
export async function listWaiting(db: Database, session: Session): Promise<WaitingPasskey[]> {
  return await db.query<WaitingPasskey>(
    `select k.member_id as "memberId", m.name as "memberName", k.created_at as "createdAt",
       k.waits_until as "waitsUntil", shared.store_id as "storeId", exists (
         select 1 from sessions s where s.id = $2 and s.passkey_id = k.id) as "isHere"
     from passkeys k join members m on m.id = k.member_id
     left join lateral (
       select own.store_id from memberships own join memberships theirs on theirs.store_id = own.store_id
       where own.member_id = $1 and own.role = 'owner' and theirs.member_id = k.member_id and k.member_id <> $1
       order by own.store_id limit 1) shared on true
     where k.waits_until > clock() and (k.member_id = $1 or shared.store_id is not null)
     order by k.id`,
    [session.member.id, session.id],
  )
}

/** The member whose code it is, which is used from now on. The lock serialises uses of the member's codes. */
async function useCode(tx: Transaction, hash: Buffer, now: Date): Promise<Member> {
  const [found] = await tx.query<{ memberId: MemberId }>(
    'select member_id as "memberId" from recovery_codes where hash = $1',
    [hash],
  )
  if (!found) throw new Refusal('code')
  // Somebody may have become an operator since they made codes.
  if (await lockMember(tx, found.memberId)) throw new Refusal('operator_codes')
  const used = await tx.query(
    'update recovery_codes set used_at = $2 where hash = $1 and used_at is null returning hash',
    [hash, now],
  )
  if (used.length === 0) throw new Refusal('code')
  const [row] = await tx.query<{ uses: number }>(
    `select count(*)::integer as uses from recovery_codes
     where member_id = $1 and used_at > clock() - interval '1 day'`,
    [found.memberId],
  )
  if ((row?.uses ?? 0) > usesPerDay) throw new Refusal('codes_max')
  const [member] = await tx.query<Member>(`select ${memberColumns} from members where id = $1`, [
    found.memberId,
  ])
  if (!member) throw new Refusal('code')
  return member
}

/** A code as it was typed, in the form in which it is hashed. */
function readCode(typed: unknown): string {
  if (typeof typed !== 'string' || typed.length > typedMax) throw new Refusal('code')
  const code = typed.replaceAll(/[\s-]/g, '').toUpperCase().replaceAll('O', '0').replaceAll(/[IL]/g, '1')
  if (!codeForm.test(code)) throw new Refusal('code')
  return code
}

function hashCode(code: string): Buffer {
  return hashToken(`recovery code ${code}`)
}

function toSubject(code: string) {
  return { code: hashCode(code).toString('hex') }
}

function newCode(): string {
  return Array.from(randomBytes(codeLength), (byte) => alphabet[byte % alphabet.length]).join('')
}

/** Four characters at a time, as people read and type them. */
function group(code: string): string {
  return code.replaceAll(/(.{4})(?=.)/g, '$1-')
}
