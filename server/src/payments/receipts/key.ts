import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ConfigError } from '../../config/read.ts'

/**
 * A key that signs offers and receipts. It can't move money: whoever steals it can lie about payments in our name, and
 * nothing else. A retired key stays as its public half, so that what it signed can still be verified.
 */
export type ReceiptKey = {
  /** Names the key in our DID document: the start of its RFC 7638 thumbprint. */
  readonly name: string
  readonly jwk: { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  /** Null for a retired key. */
  readonly privateKey: KeyObject | null
}

const thumbprintCharacters = 16
/** A rotation a month would fill this in five years. The DID document lists all of them. */
const keysMax = 64

/** Reads the keys in PEM form, as openssl writes them. The first signs; all are published. */
export function readReceiptKeys(file: string): readonly ReceiptKey[] {
  if (file === '') return []
  const blocks = readText(file).match(/-----BEGIN ([A-Z ]+)-----[^-]+-----END \1-----/g) ?? []
  const keys = blocks.map((block) => readKey(block) ?? refuse(file))
  if (keys[0]?.privateKey == null || keys.length > keysMax) return refuse(file)
  return keys
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(
      `RECEIPT_KEYS_FILE cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  }
}

function refuse(file: string): never {
  throw new ConfigError(
    `RECEIPT_KEYS_FILE (${file}) must hold 1 to ${keysMax} Ed25519 keys in PEM form, the first of them private: openssl genpkey -algorithm ed25519`,
  )
}

function readKey(pem: string): ReceiptKey | null {
  try {
    const privateKey = pem.startsWith('-----BEGIN PUBLIC KEY-----') ? null : createPrivateKey(pem)
    const { kty, crv, x } = createPublicKey(pem).export({ format: 'jwk' })
    if (kty !== 'OKP' || crv !== 'Ed25519' || x === undefined) return null
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
    return { name: thumbprint.slice(0, thumbprintCharacters), jwk: { kty, crv, x }, privateKey }
  } catch {
    // OpenSSL's message says nothing that the caller's doesn't.
    return null
  }
}
