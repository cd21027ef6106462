import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { SecretsKey } from './key-file.ts'

/**
 * A secret that only a key outside the database opens: AES-256-GCM with a random nonce, then nonce, ciphertext and tag
 * in base64. The place where it is stored (a table and the row's id) is authenticated with it, so a person with write
 * access to the database cannot use one row's secret in another row.
 */
export type Sealed = { readonly keyId: string; readonly sealed: string }

/** Why a sealed secret cannot be opened. Its message names key and place, never the secret. */
export class SealError extends Error {
  override readonly name = 'SealError'
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

export function seal(key: SecretsKey, place: string, secret: string): Sealed {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key.bytes, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(place))
  const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return { keyId: key.id, sealed: Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64') }
}

export function unseal(keys: readonly SecretsKey[], place: string, { keyId, sealed }: Sealed): string {
  const key = keys.find(({ id }) => id === keyId)
  if (!key)
    throw new SealError(`the secret of ${place} is sealed with key ${keyId}, which SECRETS_KEY_FILE lacks`)
  const bytes = Buffer.from(sealed, 'base64')
  try {
    const cipher = createDecipheriv(algorithm, key.bytes, bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    })
    cipher.setAAD(Buffer.from(place))
    cipher.setAuthTag(bytes.subarray(-tagBytes))
    const text = bytes.subarray(nonceBytes, -tagBytes)
    return Buffer.concat([cipher.update(text), cipher.final()]).toString('utf8')
  } catch (cause) {
    throw new SealError(
      `the secret of ${place} cannot be opened with key ${keyId}: it was altered, moved from another row, or sealed with another key of this id`,
      { cause },
    )
  }
}
