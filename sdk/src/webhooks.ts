import type { Event } from './wire.ts'

/**
 * Webhook signatures as defined by Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`. The webhook-signature
 * header holds `v1,` plus base64 for each secret in use, separated by spaces. Runs on any platform with WebCrypto.
 */

/** How far the two clocks may differ. It is also how long a stolen delivery can be replayed. */
const toleranceSeconds = 300

export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

/** The request's body as it arrived: bytes or text. */
export type WebhookBody = ArrayBuffer | ArrayBufferView | string

export type WebhookErrorCode =
  | 'missing_header'
  | 'malformed_header'
  | 'missing_secret'
  | 'malformed_secret'
  | 'too_old'
  | 'too_new'
  | 'wrong_signature'
  | 'parsed_body'
  | 'malformed_body'

/**
 * The delivery is not authentic, or was not passed on as it arrived. Do not process it; answer with 400.
 * `missing_secret`, `malformed_secret` and `parsed_body` are mistakes in the receiver, with which every delivery fails.
 */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly code: WebhookErrorCode

  constructor(code: WebhookErrorCode, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Verifies a delivery and returns its event; throws a `WebhookError` if it is not authentic. `body` must be the raw
 * bytes, before any JSON parser: reordered keys have a different signature. While you roll a secret, pass both. Store
 * `event.id` along with your work: events are delivered at least once, and every try carries the same id.
 */
export async function verifyWebhook(delivery: {
  readonly body: WebhookBody
  readonly headers: WebhookHeaders
  readonly secrets: string | readonly string[]
  /** The current time, for tests. */
  readonly now?: Date
}): Promise<Event> {
  const { headers } = delivery
  const body = toBytes(delivery.body)
  const secrets = listSecrets(delivery.secrets)
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const signatures = readHeader(headers, 'webhook-signature')
  if (!/^\d{1,12}$/.test(timestamp))
    throw new WebhookError('malformed_header', 'webhook-timestamp must be seconds since 1970.')
  const ageSeconds = (delivery.now ?? new Date()).getTime() / 1_000 - Number.parseInt(timestamp, 10)
  if (ageSeconds > toleranceSeconds)
    throw new WebhookError('too_old', 'The delivery was signed too long ago.')
  if (ageSeconds < -toleranceSeconds)
    throw new WebhookError('too_new', 'The delivery was signed in the future. Is this machine’s clock right?')
  const content = contentOf(id, timestamp, body)
  const candidates = parseSignatures(signatures)
  let isRight = false
  for (const secret of secrets) {
    const key = await importSecret(secret, 'verify')
    // WebCrypto compares in constant time. Every candidate is tried, so that timing does not reveal which one matches.
    for (const candidate of candidates)
      isRight = (await crypto.subtle.verify('HMAC', key, candidate, content)) || isRight
  }
  if (!isRight)
    throw new WebhookError(
      'wrong_signature',
      'No signature matches the body and the secrets. A body that was parsed and written again has another signature.',
    )
  const event = parseEvent(body)
  if (event.id !== id)
    throw new WebhookError(
      'malformed_body',
      'The event in the body has a different id than the webhook-id header.',
    )
  return event
}

/** Signs a delivery and returns its headers, for a store's own tests. */
export async function signWebhook(delivery: {
  readonly id: string
  readonly timestamp: Date
  readonly body: WebhookBody
  readonly secrets: string | readonly string[]
}): Promise<{ 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }> {
  const timestamp = String(Math.floor(delivery.timestamp.getTime() / 1_000))
  const content = contentOf(delivery.id, timestamp, toBytes(delivery.body))
  const signatures = await Promise.all(
    listSecrets(delivery.secrets).map(async (secret) => {
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
/** More than a sender with two secrets needs, and few enough that a forger cannot make us do much work. */
const signaturesMax = 8
const secretBytesMin = 24
const secretBytesMax = 64

function parseSignatures(header: string): Uint8Array<ArrayBuffer>[] {
  const candidates = header
    .split(' ')
    .slice(0, signaturesMax)
    .flatMap((item) => {
      // The header may also hold signatures of other versions.
      const bytes = item.startsWith('v1,') ? fromBase64(item.slice(3)) : null
      return bytes?.length === signatureBytes ? [bytes] : []
    })
  if (candidates.length === 0)
    throw new WebhookError('malformed_header', 'webhook-signature contains no v1 signature.')
  return candidates
}

/** Without types, or with `process.env.…!`, a secret may be missing or of any type. */
function listSecrets(given: string | readonly string[]): string[] {
  const secrets: unknown[] = [given].flat()
  if (
    secrets.length === 0 ||
    secrets.some((secret) => secret === undefined || secret === null || secret === '')
  )
    throw new WebhookError(
      'missing_secret',
      'secrets must have the endpoint’s secret, which begins with whsec_. Is the environment variable set?',
    )
  return secrets.map(String)
}

async function importSecret(secret: string, use: 'sign' | 'verify'): Promise<Key> {
  const bytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (!bytes || bytes.length < secretBytesMin || bytes.length > secretBytesMax)
    throw new WebhookError(
      'malformed_secret',
      'A secret must be whsec_ followed by the base64 of 24 to 64 bytes.',
    )
  return await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, [use])
}

function readHeader(headers: WebhookHeaders, name: string): string {
  const value = isHeaders(headers)
    ? headers.get(name)
    : Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1]
  if (typeof value !== 'string' || value === '')
    throw new WebhookError('missing_header', `The header ${name} is missing or was sent twice.`)
  return value
}

/** Accepts headers of another implementation or realm, which frameworks and test runners use. */
function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers?.get === 'function'
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

function toBytes(body: WebhookBody): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
  // `instanceof` fails for a buffer of another realm, which test runners use.
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') return new Uint8Array(body)
  throw new WebhookError(
    'parsed_body',
    'body must be the raw bytes or the text of the request, taken before any JSON parser: in Express with express.raw(), elsewhere often with await request.text().',
  )
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
