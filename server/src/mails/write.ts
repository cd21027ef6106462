import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { type MemberId, newId, type StoreId } from '../ids.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { seal } from '../secrets/seal.ts'
import { type Mail, type MailKind, placeOf } from './mail.ts'
import { countMail, countMembersMail, insertMail } from './rows.ts'

/**
 * While the mail server is away no more links and alerts are written once so many mails wait: days of a busy deployment.
 * Of a change of its members or wallets each store's owners are told however many wait, so that no other store's mails keep
 * the news from them; the shares bound those.
 */
const waitingMax: Readonly<Record<MailKind, number | null>> = {
  link: 1_000,
  alert: 1_000,
  member: null,
  store: null,
}
/**
 * The share of each store per day, in UTC. Links go to any address that an owner enters: enough for a team that begins,
 * and too few to be of use to whoever wants to write to strangers. Of the others, ten owners hear of both alerts each
 * hour, of 20 changes of members and of the 100 changes of wallets that keys may make.
 */
const perDayMax: Readonly<Record<MailKind, number>> = { link: 20, alert: 480, member: 200, store: 1_000 }

type Cause = {
  readonly kind: MailKind
  readonly storeId: StoreId
  /** Whose share of links it takes too: one share per member, however many stores they have. */
  readonly memberIds?: readonly MemberId[]
  /** For the log, if it is not about the store as a whole. */
  readonly about?: string
}

/** Whether mails are sent at all. */
export function sendsMail({ config }: Context): boolean {
  return config.smtpUrl !== ''
}

/**
 * Leaves a mail for `work` to send, if this transaction commits: a row, so that there is no mail about what did not
 * happen, a crash loses none, and no request waits for a mail server. It is sealed, because it may hold a link. Returns whether it did. The console's transaction must
 * have named the store.
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
      'the store has used up its mails of this kind for today, so this one was not written',
    )
    return false
  }
  if (memberIds.length > 0 && !(await countMembersMail(tx, memberIds, perDayMax[kind]))) {
    ctx.log.warn(
      { about, storeId, memberIds, perDay: perDayMax[kind] },
      'the store’s owners, or who sends this mail, have used up their links for today, so this one was not written',
    )
    return false
  }
  const [key] = readSecretsKeys(ctx.config.secretsKeyFile)
  assert(key, 'config.ts asks for SECRETS_KEY_FILE where SMTP_URL is set')
  const id = newId('mail', ctx.config.cell, now)
  const row = { id, about, ...seal(key, placeOf(id), JSON.stringify(mail)) }
  const isWritten = await insertMail(tx, row, waitingMax[kind], now)
  if (!isWritten)
    ctx.log.error(
      { about, waiting: waitingMax[kind] },
      'too many mails are waiting, so this one was not written: check SMTP_URL, the mail server and that work runs',
    )
  return isWritten
}
