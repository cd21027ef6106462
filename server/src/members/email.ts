import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { nameStore } from '../database/scope.ts'
import type { MemberId, StoreId } from '../ids.ts'
import { takeLinkRecipient } from '../mails/recipients.ts'
import { sendsMail, writeMail } from '../mails/write.ts'
import { announceEverywhere } from './announce.ts'
import { type Touch, useTouch } from './confirm.ts'
import type { Session } from './member.ts'
import { Refusal } from './refusal.ts'
import { lockMember, mayMailStrangers } from './rows.ts'
import { holdSession } from './session.ts'
import { hashToken, isToken, newToken } from './token.ts'

/**
 * A member adds or changes their own address. It takes a touch, and the address counts only once the member has opened
 * the link that was sent there, signed in, and pressed its button: mail scanners open links, and have no session. Until
 * then mail goes where it went before. An address can be replaced but not removed, because security news goes there and
 * cannot be turned off. The one before is told.
 */

/** As long as an invitation's link: a mail may be read the next morning. */
const linkHours = 24
/** Enough for two typing mistakes. Each goes to an address that nobody has checked. */
const linksPerDay = 3
/** Rows of earlier days that one request deletes, so that addresses nobody confirmed are not kept. */
const clearedAtOnce = 20

/** An address that waits for its link to be opened. */
export type WaitingEmail = { readonly email: string; readonly expiresAt: Date }

/** Sends a link to the address. It replaces the member's earlier one. */
export async function askForEmail(ctx: Context, touch: Touch, email: string, now: Date): Promise<void> {
  if (!sendsMail(ctx)) throw new Refusal('not_found')
  const { member } = touch.session
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, member.id)
    await useTouch(ctx, tx, touch, { action: 'email.change', values: { email } }, now)
    const store = await findMailingStore(tx, member.id)
    if (!store) throw new Refusal('email_unknown')
    const { storeId, ownerIds } = store
    const token = newToken()
    const expiresAt = new Date(now.getTime() + linkHours * 3_600_000)
    await clearOver(tx)
    const isOpen =
      (await openChange(tx, { memberId: member.id, hash: hashToken(token), email, expiresAt })) &&
      (await takeLinkRecipient(ctx, tx, email))
    if (!isOpen) throw new Refusal('email_links_max')
    await nameStore(tx, storeId)
    const memberIds = [...new Set([...ownerIds, member.id])]
    const cause = { kind: 'link', storeId, memberIds, about: member.id } as const
    const mail = {
      ...{ to: email, subject: 'Confirm your address' as const },
      text: letter(`${ctx.config.consoleUrl}/account/email/${token}`, ctx.config.consoleUrl, expiresAt),
    }
    if (!(await writeMail(ctx, tx, cause, mail, now))) throw new Refusal('email_links_max')
  })
}

/** The address that a link of this member's is for. Looking changes nothing. */
export async function readEmailLink(db: Database, memberId: MemberId, token: string): Promise<string> {
  const [row] = await db.query<{ email: string }>(
    `select email from email_changes where member_id = $1 and token_hash = $2 and ${isWaiting}`,
    [memberId, hashLink(token)],
  )
  if (!row) throw new Refusal('email_link')
  return row.email
}

/** Mail goes to the link's address from now on. The link is used up. */
export async function confirmEmail(ctx: Context, session: Session, token: string, now: Date): Promise<void> {
  const { member } = session
  await ctx.db.transaction(async (tx) => {
    await lockMember(tx, member.id)
    if (!(await holdSession(tx, session.id))) throw new Refusal('signed_out')
    const email = await useLink(tx, member.id, hashLink(token))
    if (email === null) throw new Refusal('email_link')
    // Before the change, so that the address so far is told.
    await announceEverywhere(ctx, tx, member, 'member.email_changed', now)
    await tx.query('update members set email = $2, email_confirmed_at = $3 where id = $1', [
      member.id,
      email,
      now,
    ])
  })
}

/** What the account's page says about the address: one that waits, and whether a link may be sent. */
export async function readEmailState(
  db: Database,
  memberId: MemberId,
): Promise<{ readonly waiting: WaitingEmail | null; readonly mayAsk: boolean }> {
  const [waiting] = await db.query<WaitingEmail>(
    `select email, expires_at as "expiresAt" from email_changes where member_id = $1 and ${isWaiting}`,
    [memberId],
  )
  return { waiting: waiting ?? null, mayAsk: (await findMailingStore(db, memberId)) !== null }
}

/** Ends the link of a member whose passkeys are replaced: a thief may have asked for it. */
export async function withdrawEmail(tx: Transaction, memberId: MemberId): Promise<void> {
  await tx.query('update email_changes set token_hash = null, email = null where member_id = $1', [memberId])
}

/**
 * Whether the member entered their address themselves. A link that replaces their passkeys is not mailed there: somebody
 * with a stolen passkey may have entered it.
 */
export async function hasOwnEmail(tx: Transaction, memberId: MemberId): Promise<boolean> {
  const rows = await tx.query(
    'select 1 as one from members where id = $1 and email_confirmed_at is not null',
    [memberId],
  )
  return rows.length > 0
}

/** Fixed words: whoever enters a stranger's address cannot write to them. */
function letter(link: string, consoleUrl: string, expiresAt: Date): string {
  return `Somebody entered this address for their account on ${consoleUrl}. If that was you, open this link where you are signed in, and confirm that mails about your account and your stores come here:

${link}

It works once, until ${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC. If it was not you, there is nothing to do: no more mails come unless the link is used.
`
}

/** SQL: the change still waits for its link to be opened. */
const isWaiting = 'token_hash is not null and expires_at > clock()'

function hashLink(token: string): Buffer {
  if (!isToken(token)) throw new Refusal('email_link')
  return hashToken(token)
}

/** A store of the member's that may mail addresses nobody has checked, and its owners, whose share of links it uses. */
async function findMailingStore(
  db: Database | Transaction,
  memberId: MemberId,
): Promise<{ readonly storeId: StoreId; readonly ownerIds: readonly MemberId[] } | null> {
  const [row] = await db.query<{ storeId: StoreId; ownerIds: MemberId[] }>(
    `select s.id as "storeId",
       array(select member_id from memberships where store_id = s.id and role = 'owner') as "ownerIds"
     from memberships m join stores s on s.id = m.store_id
     where m.member_id = $1 and ${mayMailStrangers} order by s.id limit 1`,
    [memberId],
  )
  return row ?? null
}

const today = "(clock() at time zone 'utc')::date"

/** False if the member has asked often enough today. */
async function openChange(
  tx: Transaction,
  change: {
    readonly memberId: MemberId
    readonly hash: Buffer
    readonly email: string
    readonly expiresAt: Date
  },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into email_changes as c (member_id, token_hash, email, expires_at, day, links)
     values ($1, $2, $3, $4, ${today}, 1)
     on conflict (member_id) do update set token_hash = excluded.token_hash, email = excluded.email,
       expires_at = excluded.expires_at, day = excluded.day,
       links = case when c.day = excluded.day then c.links + 1 else 1 end
     where c.day <> excluded.day or c.links < $5
     returning member_id`,
    [change.memberId, change.hash, change.email, change.expiresAt, linksPerDay],
  )
  return rows.length > 0
}

/** The address of a link that is used up now; null if it cannot be used. */
async function useLink(tx: Transaction, memberId: MemberId, hash: Buffer): Promise<string | null> {
  const [row] = await tx.query<{ email: string }>(
    `update email_changes c set token_hash = null, email = null from (
       select member_id, email from email_changes where member_id = $1 and token_hash = $2 and ${isWaiting} for update
     ) waiting where c.member_id = waiting.member_id returning waiting.email`,
    [memberId, hash],
  )
  return row?.email ?? null
}

/** A link lives for a day, so the day that an expired one was counted for is over too. */
async function clearOver(tx: Transaction): Promise<void> {
  await tx.query(
    `delete from email_changes where member_id in (
       select member_id from email_changes where expires_at <= clock() order by expires_at limit $1
       for update skip locked)`,
    [clearedAtOnce],
  )
}
