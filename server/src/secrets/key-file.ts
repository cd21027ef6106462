import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { ConfigError } from '../config/read.ts'

/** A key that seals secrets in the database. Its id is stored with everything that it sealed. */
export type SecretsKey = { readonly id: string; readonly bytes: Buffer }

/** AES-256. */
const keyBytes = 32
const idBytes = 4
/** Enough for a rotation every month for a year, even if no old key is removed. */
const keysMax = 16

/**
 * The keys of SECRETS_KEY_FILE, one per line: id, space, 32 bytes in base64. The first one seals, all of them open.
 * Empty lines and # comments are skipped. Without a file there are no keys, and nothing is sealed.
 */
export function readSecretsKeys(file: string): readonly SecretsKey[] {
  if (file === '') return []
  const lines = readText(file)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const keys = lines.map((line) => readKey(line) ?? refuse(file))
  const isUnique = new Set(keys.map(({ id }) => id)).size === keys.length
  if (keys.length === 0 || keys.length > keysMax || !isUnique) return refuse(file)
  return keys
}

/** Makes a file with one key, which only its owner can read. Returns null, or why it was not made. */
export async function createKeyFile(file: string): Promise<{ readonly refusal: string } | null> {
  const made = await open(file, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => error)
  if (made instanceof Error) {
    return {
      refusal:
        'code' in made && made.code === 'EEXIST'
          ? `${file} already exists. Nothing was changed: secrets sealed with its keys cannot be opened without them.`
          : `${file} cannot be written: ${made.message}.`,
    }
  }
  try {
    const id = randomBytes(idBytes).toString('hex')
    await made.writeFile(`${id} ${randomBytes(keyBytes).toString('base64')}\n`)
    await made.sync()
  } finally {
    await made.close()
  }
  return null
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `SECRETS_KEY_FILE cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}

function readKey(line: string): SecretsKey | null {
  const [, id, text = ''] = /^([0-9a-z]{1,32}) ([A-Za-z0-9+/]{43}=)$/.exec(line) ?? []
  return id === undefined ? null : { id, bytes: Buffer.from(text, 'base64') }
}

function refuse(file: string): never {
  throw new ConfigError(
    `SECRETS_KEY_FILE (${file}) must hold 1 to ${keysMax} keys, one per line: an id of its own, a space, and 32 bytes in base64. To make one, run: secrets create --out FILE`,
  )
}
