import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Payment, PaymentRequired, PaymentRequirements, Settlement } from '@farthing/sdk'
import { ConfigError } from '../config/read.ts'

/**
 * The x402 extension `offer-receipt`, in its JWS form. An offer states a checkout's terms and how long they last; a
 * receipt states that it was paid. Both name their key as `did:web:HOST#KEY`, where HOST is that of the paid URL, and
 * the keys are published at https://HOST/.well-known/did.json.
 *
 * An offer contains only facts that were fixed when the checkout was created, and Ed25519 is deterministic. So every
 * process always makes the same offer for a checkout, and signs it only once. A receipt describes the moment at which
 * it is made, because a chain can drop a payment.
 */
export type Issuer = {
  /** As many of the offers as have room, from the first on; null if none has. */
  signOffers(
    resourceUrl: string,
    accepts: readonly PaymentRequirements[],
    limits: { readonly expiresAt: Date; readonly bytesMax: number },
  ): Offers | null
  signReceipt(resourceUrl: string, payment: Payment, now: Date): Receipt
  /** The DID document that publishes our keys for the host of this URL. */
  describeKeys(url: string): object
}

type Offers = NonNullable<PaymentRequired['extensions']>

type Receipt = NonNullable<Settlement['extensions']>

/** At about 1 KB each. A dropped one is signed again, with the same result. */
const offersKept = 5_000

/** Null if no key is configured: then nothing is offered. */
export function openIssuer(file: string): Issuer | null {
  const keys = readReceiptKeys(file)
  const [key] = keys
  if (!key) return null
  const kept = new Map<string, string>()
  const signOnce = (text: string) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const made = signText(key, text)
    kept.set(text, made)
    if (kept.size > offersKept) kept.delete(kept.keys().next().value as string)
    return made
  }
  return {
    signOffers(resourceUrl, accepts, { expiresAt, bytesMax }) {
      const signed = accepts.map(({ scheme, network, asset, payTo, amount }, acceptIndex) => {
        const validUntil = Math.floor(expiresAt.getTime() / 1_000)
        const offer = { version, resourceUrl, scheme, network, asset, payTo, amount, validUntil }
        return {
          format: 'jws',
          acceptIndex,
          signature: signOnce(toSigningInput(key, resourceUrl, offer)),
        } as const
      })
      const wrap = (count: number): Offers => ({
        'offer-receipt': { info: { offers: signed.slice(0, count) }, schema: offersSchema },
      })
      const count = signed.findLastIndex((_, i) => sizeInTerms(wrap(i + 1)) <= bytesMax) + 1
      return count > 0 ? wrap(count) : null
    },
    signReceipt(resourceUrl, { network, payer, transaction, asset, amount, payTo }, now) {
      const issuedAt = Math.floor(now.getTime() / 1_000)
      // The extension's own fields don't contain the amount and the recipient. A receipt for a payment must.
      const receipt = { version, network, resourceUrl, payer, issuedAt, transaction, asset, amount, payTo }
      const signature = signText(key, toSigningInput(key, resourceUrl, receipt))
      return { 'offer-receipt': { info: { receipt: { format: 'jws', signature } }, schema: receiptSchema } }
    },
    describeKeys: (url) => describeKeys(keys, url),
  }
}

function sizeInTerms(extensions: Offers): number {
  return `,"extensions":${JSON.stringify(extensions)}`.length
}

/** The version of both payloads. */
const version = 1

/** Every answer repeats this schema, and headers are small, so it contains only what a client needs to find the JWS. */
const offersSchema = {
  type: 'object',
  properties: { offers: { type: 'array' } },
  required: ['offers'],
}

const receiptSchema = {
  type: 'object',
  properties: { receipt: { type: 'object' } },
  required: ['receipt'],
}

function toSigningInput({ name }: ReceiptKey, resourceUrl: string, payload: object): string {
  const header = { alg: 'EdDSA', kid: `${didOf(resourceUrl)}#${name}` }
  // Sorted keys and no white space: the canonical form (RFC 8785) of a flat object of strings and small integers.
  const sorted = Object.fromEntries(Object.entries(payload).sort(([a], [b]) => (a < b ? -1 : 1)))
  return [header, sorted].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
}

function signText({ privateKey }: ReceiptKey, text: string): string {
  if (!privateKey) throw new TypeError('a retired key signs nothing')
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString('base64url')}`
}

/** A port's colon is escaped, because colons separate the parts of a DID. */
function didOf(url: string): string {
  return `did:web:${encodeURIComponent(new URL(url).host)}`
}

function describeKeys(keys: readonly ReceiptKey[], url: string): object {
  const id = didOf(url)
  const verificationMethod = keys.map(({ name, jwk }) => ({
    id: `${id}#${name}`,
    type: 'JsonWebKey2020',
    controller: id,
    publicKeyJwk: jwk,
  }))
  return {
    '@context': ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'],
    id,
    verificationMethod,
    assertionMethod: verificationMethod.map((method) => method.id),
  }
}

/**
 * A key that signs offers and receipts. It can't move money: a thief could only make false statements about payments.
 * Of a retired key the public half stays, so that its signatures can still be verified.
 */
type ReceiptKey = {
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
function readReceiptKeys(file: string): readonly ReceiptKey[] {
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
    // OpenSSL's message adds nothing to the caller's.
    return null
  }
}
