import type { Context } from '../context.ts'
import { countByKey, resealEndpoints } from '../events/webhooks/reseal.ts'
import { resealMails } from '../mails/write.ts'
import { createKeyFile, readSecretsKeys } from '../secrets/key-file.ts'
import { UsageError } from './usage.ts'

/** `secrets create` and `secrets rotate`. Returns the text to print. */
export async function secretsCommand(
  ctx: Context,
  [verb]: readonly string[],
  options: Readonly<Record<string, string | boolean | undefined>>,
): Promise<string> {
  if (verb === 'create') return await create(options.out ?? ctx.config.secretsKeyFile)
  if (verb === 'rotate') return await rotate(ctx)
  throw new UsageError('Usage: secrets create [--out FILE], or secrets rotate.')
}

async function create(file: string | boolean): Promise<string> {
  if (typeof file !== 'string' || file === '')
    throw new UsageError('Say which file to keep the key in: --out FILE, or set SECRETS_KEY_FILE.')
  const refused = await createKeyFile(file)
  if (refused) throw new UsageError(refused.refusal)
  return [
    `A key is in ${file}, which only its owner can read.`,
    'Back it up, apart from the database: without it no stored webhook secret can sign.',
    `Next: set SECRETS_KEY_FILE=${file} for serve and work, and restart them. Then run`,
    '  secrets rotate',
    'which seals the secrets that are stored already.',
  ].join('\n')
}

async function rotate(ctx: Context): Promise<string> {
  const { secretsKeyFile: file } = ctx.config
  const [key, ...others] = readSecretsKeys(file)
  if (!key) throw new UsageError('Set SECRETS_KEY_FILE. To make such a file, run: secrets create --out FILE')
  const count = await resealEndpoints(ctx)
  await resealMails(ctx)
  const says = `Sealed the secrets of ${count} ${count === 1 ? 'endpoint' : 'endpoints'} with key ${key.id}.`
  const left = (await countByKey(ctx.db)).filter(({ keyId }) => keyId !== key.id)
  if (left.length > 0) return `${says} Others were changed at the same time: run it again.`
  if (others.length === 0) return `${says} No secret needs another key.`
  const ids = others.map(({ id }) => id).join(', ')
  return `${says} No secret needs another key: once every serve and work has this file, ${ids} can be removed from it.`
}
