import type { Context } from '../context.ts'
import type { Database } from '../database/db.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { seal, unseal } from '../secrets/seal.ts'
import { placeOf, type WaitingMail, waitingColumns } from './mail.ts'

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
    const batch = await listSealedOtherwise(ctx.db, key.id, mailsPerBatch)
    if (batch.length === 0) return
    for (const mail of batch) {
      const place = placeOf(mail.id)
      await replaceSealed(ctx.db, mail.id, seal(key, place, unseal(keys, place, mail)))
    }
  }
}

/** Mails that were sealed with another key. */
async function listSealedOtherwise(db: Database, keyId: string, limit: number): Promise<WaitingMail[]> {
  return await db.query<WaitingMail>(
    `select ${waitingColumns} from mails where key_id <> $1 order by id limit $2`,
    [keyId, limit],
  )
}

async function replaceSealed(
  db: Database,
  id: string,
  { keyId, sealed }: Pick<WaitingMail, 'keyId' | 'sealed'>,
): Promise<void> {
  await db.query('update mails set key_id = $2, sealed = $3 where id = $1', [id, keyId, sealed])
}
