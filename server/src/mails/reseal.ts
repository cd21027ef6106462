import type { Context } from '../context.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import { seal, unseal } from '../secrets/seal.ts'
import { placeOf } from './mail.ts'
import { listSealedOtherwise, replaceSealed } from './rows.ts'

const mailsPerBatch = 100

/** Seals every waiting mail with the first key. A mail is written once, so what was sealed otherwise stays as read. */
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
