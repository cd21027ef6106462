import type { Signed } from './wire.ts'

/**
 * Verifies what a checkout's server has signed (x402's extension `offer-receipt`, in its JWS form), with WebCrypto alone:
 *
 * 1. The key is named `did:web:HOST#KEY`, and HOST must be the host of the paid URL. Otherwise anyone could sign receipts
 *    for anyone's checkouts.
 * 2. The fields are compared with what the caller expects. Anyone can sign for their own host, so a caller that knows
 *    the paid URL must expect it as `resourceUrl`. The receipt's author chose HOST, so no request goes there before.
 * 3. HOST publishes its keys at https://HOST/.well-known/did.json. That document is fetched, or given for use offline.
 * 4. The signature must be that key's, over exactly these bytes.
 *
 * A receipt proves what the host said, not what the chain did: look the transaction up on its network if that matters.
 */

export type { Signed, SignedOffer } from './wire.ts'

/** What a receipt says. Servers other than Farthing leave out the optional fields. */
export type ReceiptContent = {
  readonly version: number
  /** CAIP-2. */
  readonly network: string
  readonly resourceUrl: string
  readonly payer: string
  /** Seconds since 1970. */
  readonly issuedAt: number
  readonly transaction?: string
  readonly asset?: string
  /** What was paid, in the asset's smallest unit. */
  readonly amount?: string
  readonly payTo?: string
}

/** What an offer says. */
export type OfferContent = {
  readonly version: number
  readonly resourceUrl: string
  readonly scheme: string
  readonly network: string
  readonly asset: string
  readonly payTo: string
  /** In the asset's smallest unit. */
  readonly amount: string
  /** Seconds since 1970. */
  readonly validUntil?: number
}

export type Verified<Content> =
  | {
      readonly isValid: true
      readonly content: Content
      /** Who signed: the host of the paid URL. */
      readonly host: string
      readonly keyId: string
    }
  | { readonly isValid: false; readonly code: Flaw; readonly detail: string }

export type Flaw =
  /** Not a signed statement of the wanted kind. */
  | 'malformed'
  /** The key is not one of the paid URL's host, or that host can't be asked safely. */
  | 'wrong_host'
  /** The host publishes no such key: the key is foreign, or was withdrawn. */
  | 'unknown_key'
  /** The signature is not that key's, or the content was changed. */
  | 'bad_signature'
  /** The offer is over, or the receipt comes from the future. */
  | 'wrong_time'
  /** It differs from what the caller expects. Its signature was not checked. */
  | 'mismatch'

export type VerifyOptions = {
  /** The host's DID document, to verify offline. Default: fetched from the host over https. */
  readonly did?: unknown
  /**
   * Fields that must have these values; addresses in hexadecimal may differ in letter case. Always pass `resourceUrl`, the
   * URL that was paid: without it, a receipt that a stranger signed for a URL of their own is valid. Keys are fetched
   * over http, from this machine alone, only if `resourceUrl` is given.
   */
  readonly expect?: Readonly<Record<string, string>>
  /** Default: this machine's time. */
  readonly now?: Date
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch
}

/** How far two clocks may differ. */
const skewSeconds = 300
const didTimeoutMs = 10_000
/** Sixty keys fit into half of it. */
const didBytesMax = 65_536
/** A receipt is about 700 characters. */
const signatureCharactersMax = 8_192

/** Checks a receipt. Throws only if the host's keys can't be fetched. */
export async function verifyReceipt(
  signed: Signed,
  options: VerifyOptions = {},
): Promise<Verified<ReceiptContent>> {
  return await verify<ReceiptContent>(signed, options, isReceipt, (content, now) =>
    content.issuedAt > now + skewSeconds ? 'The receipt was issued in the future.' : null,
  )
}

/** Checks an offer, which says what is asked for; it proves no payment. Throws only if the host's keys can't be fetched. */
export async function verifyOffer(
  signed: Signed,
  options: VerifyOptions = {},
): Promise<Verified<OfferContent>> {
  return await verify<OfferContent>(signed, options, isOffer, ({ validUntil = Number.MAX_VALUE }, now) =>
    validUntil < now ? 'The offer has expired.' : null,
  )
}

type Fields = Readonly<Record<string, unknown>>

async function verify<Content extends { readonly resourceUrl: string }>(
  signed: Signed,
  options: VerifyOptions,
  isWanted: (content: Fields) => boolean,
  findWrongTime: (content: Content, now: number) => string | null,
): Promise<Verified<Content>> {
  const statement = readStatement(signed)
  if (!statement || !isWanted(statement.content))
    return flaw('malformed', 'This is not a signed statement of the expected kind.')
  const content = statement.content as unknown as Content
  const { keyId, input, signature } = statement
  const [did = ''] = keyId.split('#')
  const host = hostOf(content.resourceUrl)
  if (host === null || did !== `did:web:${encodeURIComponent(host)}`)
    return flaw('wrong_host', `The key ${keyId} does not belong to the host of ${content.resourceUrl}.`)

  const { expect = {} } = options
  for (const [name, wanted] of Object.entries(expect)) {
    const found = statement.content[name]
    if (!isSame(String(found), wanted))
      return flaw('mismatch', `It is about another ${name}: ${String(found)}, not ${wanted}.`)
  }
  // Otherwise a receipt could make us call services on this machine.
  if (options.did === undefined && expect.resourceUrl === undefined && !isHttps(content.resourceUrl))
    return flaw(
      'wrong_host',
      `${content.resourceUrl} is not https: its keys are fetched only if you say that you expect this URL.`,
    )

  const document = options.did ?? (await fetchDid(content.resourceUrl, options.fetch ?? fetch))
  const bytes = findKey(document, did, keyId)
  if (!bytes) return flaw('unknown_key', `${host} does not publish the key ${keyId}.`)
  const key = await crypto.subtle.importKey('raw', bytes, 'Ed25519', false, ['verify'])
  if (!(await crypto.subtle.verify('Ed25519', key, signature, input)))
    return flaw('bad_signature', `The signature is not that of ${keyId}, or the content was changed.`)

  const now = Math.floor((options.now ?? new Date()).getTime() / 1_000)
  const wrongTime = findWrongTime(content, now)
  if (wrongTime !== null) return flaw('wrong_time', wrongTime)
  return { isValid: true, content, host, keyId }
}

function flaw(code: Flaw, detail: string): Verified<never> {
  return { isValid: false, code, detail }
}

type Statement = {
  readonly keyId: string
  readonly content: Fields
  /** The bytes that were signed. */
  readonly input: Uint8Array<ArrayBuffer>
  readonly signature: Uint8Array<ArrayBuffer>
}

/** Decodes a JWS in compact form. Null if it is not one that we could verify. */
function readStatement(signed: unknown): Statement | null {
  const { format, signature: text } = asRecord(signed) ?? {}
  if (format !== 'jws' || typeof text !== 'string' || text.length > signatureCharactersMax) return null
  const parts = text.split('.').map(fromBase64Url)
  const [head, body, signature] = parts
  if (parts.length !== 3 || !head || !body || !signature) return null
  const header = asRecord(parse(head))
  const content = asRecord(parse(body))
  // Only this algorithm, and no extension that we would have to understand (`crit`).
  if (header?.alg !== 'EdDSA' || typeof header.kid !== 'string' || 'crit' in header || !content) return null
  const input = new TextEncoder().encode(text.slice(0, text.lastIndexOf('.')))
  return { keyId: header.kid, content, input, signature }
}

function isReceipt(content: Fields): boolean {
  const { version, issuedAt, network, resourceUrl, payer, transaction, asset, amount, payTo } = content
  return (
    version === 1 &&
    Number.isSafeInteger(issuedAt) &&
    [network, resourceUrl, payer].every(isText) &&
    [transaction, asset, amount, payTo].every((each) => each === undefined || isText(each)) &&
    !('validUntil' in content)
  )
}

function isOffer(content: Fields): boolean {
  const { version, validUntil, resourceUrl, scheme, network, asset, payTo, amount } = content
  return (
    version === 1 &&
    (validUntil === undefined || Number.isSafeInteger(validUntil)) &&
    [resourceUrl, scheme, network, asset, payTo, amount].every(isText) &&
    !('issuedAt' in content)
  )
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/** The host of an https URL, or of an http one on this machine; null for any other. */
function hostOf(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, host } = new URL(url)
  return isHttps(url) || (protocol === 'http:' && isLoopback(url)) ? host : null
}

function isHttps(url: string): boolean {
  return new URL(url).protocol === 'https:'
}

/** Only development runs there, without a certificate. */
function isLoopback(url: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(new URL(url).hostname)
}

/** Where the host of a paid URL publishes its keys. */
export function didUrlOf(resourceUrl: string): string {
  return new URL('/.well-known/did.json', resourceUrl).href
}

async function fetchDid(resourceUrl: string, send: typeof fetch): Promise<unknown> {
  const url = didUrlOf(resourceUrl)
  const answer = await send(url, {
    headers: { accept: 'application/did+json, application/json' },
    // The keys must come from this host, not from one that it redirects to.
    redirect: 'error',
    signal: AbortSignal.timeout(didTimeoutMs),
  }).catch((cause: unknown) => {
    throw new Error(`The keys at ${url} can't be fetched.`, { cause })
  })
  const bytes = answer.ok ? await readBytes(answer, didBytesMax) : null
  const document = bytes === null ? undefined : parse(bytes)
  if (document === undefined)
    throw new Error(`${url} answered ${answer.status} without a document that holds keys.`)
  return document
}

/** The body, or null if it is longer than this: then the rest is not read. */
async function readBytes({ body }: Response, most: number): Promise<Uint8Array | null> {
  const bytes = new Uint8Array(most)
  const reader = body?.getReader()
  for (let length = 0; ; ) {
    const chunk = await reader?.read()
    if (!chunk || chunk.done) return bytes.subarray(0, length)
    if (length + chunk.value.length > most) {
      await reader?.cancel()
      return null
    }
    bytes.set(chunk.value, length)
    length += chunk.value.length
  }
}

/** The 32 bytes of the key, if the document is the host's and publishes it for statements. */
function findKey(document: unknown, did: string, keyId: string): Uint8Array<ArrayBuffer> | null {
  const { id, verificationMethod, assertionMethod } = asRecord(document) ?? {}
  if (id !== did || !Array.isArray(verificationMethod) || !Array.isArray(assertionMethod)) return null
  if (!assertionMethod.includes(keyId)) return null
  const method = verificationMethod.map(asRecord).find((each) => each?.id === keyId)
  const { kty, crv, x } = asRecord(method?.publicKeyJwk) ?? {}
  const bytes = kty === 'OKP' && crv === 'Ed25519' && typeof x === 'string' ? fromBase64Url(x) : null
  return bytes?.length === 32 ? bytes : null
}

function isSame(found: string, wanted: string): boolean {
  const isHex = /^0x[0-9a-f]+$/i.test(wanted)
  return isHex ? found.toLowerCase() === wanted.toLowerCase() : found === wanted
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]+$/.test(text) || text.length % 4 === 1) return null
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(plain, (character) => character.charCodeAt(0))
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

function asRecord(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
}
