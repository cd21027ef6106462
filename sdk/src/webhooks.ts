import type { Event } from './wire.ts'

/**
 * Webhooks as Standard Webhooks 1.0 signs them: HMAC-SHA256 over `id.timestamp.body`, in the header webhook-signature as
 * `v1,` and base64, one for each secret in use, separated by spaces. Runs wherever there is WebCrypto.
 */

/** Either side's clock may be off by this much. It is also how long a stolen delivery could be replayed. */
const toleranceSeconds = 300

export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

export type WebhookErrorCode =
  | 'missing_header'
  | 'malformed_header'
  | 'malformed_secret'
  | 'too_old'
  | 'too_new'
  | 'wrong_signature'
  | 'malformed_body'

/** The delivery must not be believed. Answer it with 400. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly code: WebhookErrorCode

  constructor(code: WebhookErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * The event that a delivery carries, or a WebhookError. `body` must be the bytes as they came, before any JSON parser:
 * another order of keys is another signature. While a secret is being rolled, give both. Remember `event.id` with what
 * you did: every event is delivered at least once, and each try has the same id.
 */
export async function verifyWebhook(delivery: {
  readonly body: Uint8Array | string
  readonly headers: WebhookHeaders
  readonly secrets: string | readonly string[]
  /** For tests. */
  readonly now?: Date
}): Promise<Event> {
  const { headers } = delivery
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const signatures = readHeader(headers, 'webhook-signature')
  if (!/^\d{1,12}$/.test(timestamp))
    throw new WebhookError('malformed_header', 'webhook-timestamp must be seconds since 1970.')
  const ageSeconds = (delivery.now ?? new Date()).getTime() / 1_000 - Number.parseInt(timestamp, 10)
  if (ageSeconds > toleranceSeconds)
    throw new WebhookError('too_old', 'The delivery was signed too long ago.')
  if (ageSeconds < -toleranceSeconds)
    throw new WebhookError('too_new', 'The delivery was signed in the future. Is the clock right?')
  const body = toBytes(delivery.body)
  const content = contentOf(id, timestamp, body)
  const candidates = parseSignatures(signatures)
  let isRight = false
  for (const secret of [delivery.secrets].flat()) {
    const key = await importSecret(secret, 'verify')
    // WebCrypto compares in constant time. Every candidate is tried, so that time tells nothing about which one fits.
    for (const candidate of candidates)
      isRight = (await crypto.subtle.verify('HMAC', key, candidate, content)) || isRight
  }
  if (!isRight) throw new WebhookError('wrong_signature', 'No signature fits the body and the secrets.')
  const event = parseEvent(body)
  if (event.id !== id)
    throw new WebhookError('malformed_body', 'The body is not the event that webhook-id names.')
  return event
}

/** The headers that make a delivery genuine: for a store's own tests. */
export async function signWebhook(delivery: {
  readonly id: string
  readonly timestamp: Date
  readonly body: Uint8Array | string
  readonly secrets: string | readonly string[]
}): Promise<{ 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }> {
  const timestamp = String(Math.floor(delivery.timestamp.getTime() / 1_000))
  const content = contentOf(delivery.id, timestamp, toBytes(delivery.body))
  const signatures = await Promise.all(
    [delivery.secrets].flat().map(async (secret) => {
      const key = await importSecret(secret, 'sign')
      return `v1,${toBase64(new Uint8Array(await crypto.subtle.sign('HMAC', key, content)))}`
    }),
  )
  return {
    'webhook-id': delivery.id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

type Key = Awaited<ReturnType<typeof crypto.subtle.importKey>>

const signatureBytes = 32
/** More than a sender with two secrets has use for; fewer than would make us work for a forger. */
const signaturesMax = 8
const secretBytesMin = 24
const secretBytesMax = 64

function parseSignatures(header: string): Uint8Array<ArrayBuffer>[] {
  const candidates = header
    .split(' ')
    .slice(0, signaturesMax)
    .flatMap((item) => {
      // Other versions may stand beside ours.
      const bytes = item.startsWith('v1,') ? fromBase64(item.slice(3)) : null
      return bytes?.length === signatureBytes ? [bytes] : []
    })
  if (candidates.length === 0)
    throw new WebhookError('malformed_header', 'webhook-signature holds no signature of version 1.')
  return candidates
}

async function importSecret(secret: string, use: 'sign' | 'verify'): Promise<Key> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes || bytes.length < secretBytesMin || bytes.length > secretBytesMax)
    throw new WebhookError('malformed_secret', 'A secret is whsec_ and the base64 of 24 to 64 bytes.')
  return await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [use])
}

function readHeader(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '')
    throw new WebhookError('missing_header', `The header ${name} is missing or was sent twice.`)
  return value
}

function contentOf(id: string, timestamp: string, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`)
  const content = new Uint8Array(prefix.length + body.length)
  content.set(prefix)
  content.set(body, prefix.length)
  return content
}

function parseEvent(body: Uint8Array): Event {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new WebhookError('malformed_body', 'The body is not JSON.')
  }
}

function toBytes(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}
