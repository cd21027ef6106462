import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import type { Database, Transaction } from '../database/db.ts'
import { type MemberId, newId, type StoreId } from '../ids.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { seal, unseal } from '../secrets/seal.ts'
import { type Mail, type MailKind, placeOf, type WaitingMail, waitingColumns } from './mail.ts'

/**
 * The number of waiting mails at which no more of a kind are written while the mail server is down. Payments leave room
 * for receipts, and both for links and alerts: days of a busy deployment. Mails about changes of members or wallets are
 * always written, so that other stores' mails cannot keep the news from a store's owners; the shares below bound them.
 */
const waitingMax: Readonly<Record<MailKind, number | null>> = {
  link: 1_000,
  alert: 1_000,
  payment: 250,
  member: null,
  code: null,
  store: null,
  // Strangers cause them, so they stop before they could stop links and alerts.
  receipt: 500,
}
/** A store's waiting mails at which no more about its payments are written: a few stores cannot fill the room of all. */
const waitingPerStore = 100
/**
 * Each store's share per day, in UTC. Links go to any address that an owner enters: enough for a new team, and too few
 * for spamming strangers. Receipts go to any address too, but only about a payment in full, and few an hour to an address
 * (recipients.ts): enough for a shop with a thousand orders a day, of whose buyers every fifth asks. The other shares let ten owners get both alerts each hour, 20 changes of members, and the 100 changes
 * of wallets that keys may make, and two members 20 mails about payments each hour.
 */
const perDayMax: Readonly<Record<MailKind, number>> = {
  link: 20,
  alert: 480,
  payment: 1_000,
  member: 200,
  code: 1_000,
  store: 1_000,
  receipt: 200,
}
/**
 * Of a kind per day and deployment. Mailbox providers count what comes from a domain, and treat it as a bulk sender's from
 * 5,000 mails a day on. Receipts stay below that, and leave the domain its standing for all other mails.
 */
const perDeploymentMax: Partial<Readonly<Record<MailKind, number>>> = { receipt: 4_000 }

type Cause = {
  readonly kind: MailKind
  readonly storeId: StoreId
  /** The members whose share of links it uses too: one share per member, however many stores they have. */
  readonly memberIds?: readonly MemberId[]
  /** For the log, if it is not about the store as a whole. */
  readonly about?: string
}

/** Whether this deployment sends mails. */
export function sendsMail({ config }: Context): boolean {
  return config.smtpUrl !== ''
}

/**
 * Leaves a mail for `work` to send if this transaction commits: a row, so that no mail reports an event that did not
 * happen, a crash loses none, and no request waits for a mail server. The row is sealed, because the mail may contain a
 * link. Returns whether it was written. The console's transaction must have named the store.
 */
export async function writeMail(
  ctx: Context,
  tx: Transaction,
  { kind, storeId, memberIds = [], about = storeId }: Cause,
  mail: Mail,
  now: Date,
): Promise<boolean> {
  if (!sendsMail(ctx)) return false
  if (!(await countMail(tx, storeId, kind, perDayMax[kind]))) {
    ctx.log.warn(
      { about, storeId, kind, perDay: perDayMax[kind] },
      'the store has used up its mails of this kind for today, so this mail was not written',
    )
    return false
  }
  const ofAll = perDeploymentMax[kind]
  if (ofAll !== undefined && !(await countDeploymentMail(tx, kind, ofAll))) {
    ctx.log.error(
      { about, storeId, kind, perDay: ofAll },
      'all stores together have used up the mails of this kind for today, so this mail was not written',
    )
    return false
  }
  if (memberIds.length > 0 && !(await countMembersMail(tx, memberIds, perDayMax[kind]))) {
    ctx.log.warn(
      { about, storeId, memberIds, perDay: perDayMax[kind] },
      'the store’s owners or the sender have used up their links for today, so this mail was not written',
    )
    return false
  }
  const [key] = readSecretsKeys(ctx.config.secretsKeyFile)
  assert(key, 'config requires SECRETS_KEY_FILE where SMTP_URL is set')
  const id = newId('mail', ctx.config.cell, now)
  const row = { id, about, ...seal(key, placeOf(id), JSON.stringify(mail)) }
  if (kind === 'payment' && (await countWaiting(tx, about, waitingPerStore)) >= waitingPerStore) {
    ctx.log.warn(
      { about, waiting: waitingPerStore },
      'too many mails of this store are waiting, so this mail was not written',
    )
    return false
  }
  const isWritten = await insertMail(tx, row, waitingMax[kind], now)
  if (!isWritten)
    ctx.log.error(
      { about, waiting: waitingMax[kind] },
      'too many mails are waiting, so this mail was not written: check SMTP_URL, the mail server and that work runs',
    )
  return isWritten
}

/** Counts one more mail of this kind for the store today, unless it has reached its limit. */
async function countMail(tx: Transaction, storeId: StoreId, kind: MailKind, max: number): Promise<boolean> {
  const rows = await tx.query(
    `insert into mail_counts as c (store_id, kind, day, count) values ($1, $2, (clock() at time zone 'utc')::date, 1)
     on conflict (store_id, kind) do update set day = excluded.day,
       count = case when c.day = excluded.day then c.count + 1 else 1 end
     where c.day <> excluded.day or c.count < $3
     returning count`,
    [storeId, kind, max],
  )
  return rows.length > 0
}

/** Counts one more mail of this kind for all stores today, unless they have reached the limit. */
async function countDeploymentMail(tx: Transaction, kind: MailKind, max: number): Promise<boolean> {
  const rows = await tx.query(
    `insert into deployment_mail_counts as c (kind, day, count) values ($1, (clock() at time zone 'utc')::date, 1)
     on conflict (kind) do update set day = excluded.day,
       count = case when c.day = excluded.day then c.count + 1 else 1 end
     where c.day <> excluded.day or c.count < $2
     returning count`,
    [kind, max],
  )
  return rows.length > 0
}

/** Counts one more link today for each of these members, unless one of them has reached the limit. */
async function countMembersMail(
  tx: Transaction,
  memberIds: readonly MemberId[],
  max: number,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into member_mail_counts as c (member_id, day, count)
     select id, (clock() at time zone 'utc')::date, 1 from unnest($1::text[]) id order by id
     on conflict (member_id) do update set day = excluded.day,
       count = case when c.day = excluded.day then c.count + 1 else 1 end
     where c.day <> excluded.day or c.count < $2
     returning count`,
    [memberIds, max],
  )
  return rows.length === memberIds.length
}

/** How many mails about this are waiting, counted up to a limit. */
async function countWaiting(tx: Transaction, about: string, max: number): Promise<number> {
  const rows = await tx.query('select 1 as one from mails where about = $1 limit $2', [about, max])
  return rows.length
}

/** Whether so few mails are waiting that another one of this kind may be written. */
export async function hasRoom(db: Database, kind: MailKind): Promise<boolean> {
  const max = waitingMax[kind]
  if (max === null) return true
  const waiting = await db.query('select 1 as one from mails limit $1', [max])
  return waiting.length < max
}

/** False if that many are already waiting; null takes the mail in any case. */
async function insertMail(
  tx: Transaction,
  mail: Omit<WaitingMail, 'tries'>,
  waitingMax: number | null,
  now: Date,
): Promise<boolean> {
  const rows = await tx.query(
    `insert into mails (id, about, key_id, sealed, due_at, created_at)
     select $1, $2, $3, $4, clock(), $5
     where $6::integer is null or (select count(*) from (select 1 from mails limit $6) waiting) < $6
     returning id`,
    [mail.id, mail.about, mail.keyId, mail.sealed, now, waitingMax],
  )
  return rows.length > 0
}

/** Takes back the waiting mails about something that no longer holds. */
export async function dropMails(tx: Transaction, about: readonly string[]): Promise<void> {
  if (about.length > 0) await tx.query('delete from mails where about = any($1)', [about])
}

const mailsPerBatch = 100

/**
 * Seals every waiting mail with the first key. A mail never changes after it is written, so its text cannot change
 * between reading and sealing.
 */
export async function resealMails(ctx: Context): Promise<void> {
  const keys = readSecretsKeys(ctx.config.secretsKeyFile)
  const [key] = keys
  if (!key) return
  for (;;) {
    const batch = await ctx.db.query<WaitingMail>(
      `select ${waitingColumns} from mails where key_id <> $1 order by id limit $2`,
      [key.id, mailsPerBatch],
    )
    if (batch.length === 0) return
    for (const mail of batch) {
      const place = placeOf(mail.id)
      await replaceSealed(ctx.db, mail.id, seal(key, place, unseal(keys, place, mail)))
    }
  }
}

async function replaceSealed(
  db: Database,
  id: string,
  { keyId, sealed }: Pick<WaitingMail, 'keyId' | 'sealed'>,
): Promise<void> {
  await db.query('update mails set key_id = $2, sealed = $3 where id = $1', [id, keyId, sealed])
}
