import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import type { Transaction } from '../database/db.ts'
import { newId } from '../ids.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { seal } from '../secrets/seal.ts'
import { type Mail, placeOf } from './mail.ts'
import { insertMail } from './rows.ts'

/** While the mail server is away no more wait than this: days of a busy deployment, and a bound for the table. */
const waitingMax = 1_000

/** Whether mails are sent at all. */
export function sendsMail({ config }: Context): boolean {
  return config.smtpUrl !== ''
}

/** Leaves a mail for `work` to send, if this transaction commits. Returns whether it did. */
export async function writeMail(
  ctx: Context,
  tx: Transaction,
  about: string,
  mail: Mail,
  now: Date,
): Promise<boolean> {
  if (!sendsMail(ctx)) return false
  const [key] = readSecretsKeys(ctx.config.secretsKeyFile)
  assert(key, 'config.ts asks for SECRETS_KEY_FILE where SMTP_URL is set')
  const id = newId('mail', ctx.config.cell, now)
  const row = { id, about, ...seal(key, placeOf(id), JSON.stringify(mail)) }
  const isWritten = await insertMail(tx, row, waitingMax, now)
  if (!isWritten)
    ctx.log.error(
      { about, waiting: waitingMax },
      'too many mails are waiting, so this one was not written: check SMTP_URL, the mail server and that work runs',
    )
  return isWritten
}
