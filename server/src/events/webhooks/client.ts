import { Resolver } from 'node:dns/promises'
import http from 'node:http'
import https from 'node:https'
import type { Event } from '@farthing/sdk'
import type { Context } from '../../context.ts'
import { isLocalName, literalOf, type Reach, reachOf } from './address.ts'

/**
 * Sends webhooks. The URL is a stranger's, so each try looks the name up once, requires every address to be allowed,
 * and connects to the very address that was checked: a name server that answers differently the next time gains
 * nothing. No redirects, cookies, proxies or kept connections; time and bytes are limited. Names are resolved without
 * Node's four threads, so that a slow name server delays no other delivery.
 */
export type Request = {
  readonly url: string
  readonly mode: 'live' | 'test'
  /** How many tries came before this one: tries rotate through a name's addresses. */
  readonly tries: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Answer = {
  readonly status: number | null
  readonly error: string | null
  readonly answer: string | null
  readonly retryAfter: string | null
}

type Post = (request: Request) => Promise<Answer>

/** Covers everything up to the status: looking up the name, connecting, TLS and sending. */
export const answerTimeoutMs = 15_000
/** The response body is only for the delivery log. */
const bodyTimeoutMs = 2_000
const bodyBytesMax = 4_096
const headerBytesMax = 16_384
const lookupTimeoutMs = 2_000
const lookupTries = 2

export function openClient(ctx: Context): Post {
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: lookupTries })
  const reach = { live: reachOf(ctx.config, 'live'), test: reachOf(ctx.config, 'test') }
  return async (request) => {
    const url = new URL(request.url)
    const found = await lookUp(resolver, url, reach[request.mode])
    return 'error' in found
      ? { status: null, error: found.error, answer: null, retryAfter: null }
      : await send(url, found.addresses[request.tries % found.addresses.length] as string, request)
  }
}

/** A name's addresses, IPv4 first; an error if any of them is not allowed. */
async function lookUp(
  resolver: Resolver,
  url: URL,
  reach: Reach,
): Promise<{ addresses: string[] } | { error: string }> {
  if (reach.check('url', url).length > 0) return { error: 'address_refused' }
  const literal = literalOf(url) ?? (isLocalName(url.hostname) ? '127.0.0.1' : null)
  if (literal !== null)
    return reach.allows(literal, url.port) ? { addresses: [literal] } : { error: 'address_refused' }
  const answers = await Promise.allSettled([resolver.resolve4(url.hostname), resolver.resolve6(url.hostname)])
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length === 0) {
    const [failed] = answers.filter((answer) => answer.status === 'rejected')
    return { error: failed ? reasonOf(failed.reason) : 'ENOTFOUND' }
  }
  return addresses.every((address) => reach.allows(address, url.port))
    ? { addresses }
    : { error: 'address_refused' }
}

async function send(url: URL, address: string, request: Request): Promise<Answer> {
  const isSecure = url.protocol === 'https:'
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const outgoing = (isSecure ? https : http).request({
    host: address,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number.parseInt(url.port, 10),
    path: url.pathname + url.search,
    method: 'POST',
    headers: { ...request.headers, host: url.host, 'content-length': Buffer.byteLength(request.body) },
    // The certificate must be for the name, although the connection goes to an address.
    ...(isSecure && { servername: literalOf(url) === null ? url.hostname : '' }),
    agent: false,
    maxHeaderSize: headerBytesMax,
  })
  const fail = (error: string) => resolve({ status: null, error, answer: null, retryAfter: null })
  const timeout = setTimeout(() => fail('timeout'), answerTimeoutMs)
  outgoing.on('error', (error) => fail(reasonOf(error)))
  outgoing.on('response', (response) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const finish = () => {
      clearTimeout(patience)
      const text = Buffer.concat(chunks).subarray(0, bodyBytesMax).toString('utf8')
      resolve({
        status: response.statusCode ?? null,
        error: null,
        // PostgreSQL text can hold any character but this one.
        answer: text.replaceAll('\0', '\ufffd'),
        retryAfter: response.headers['retry-after'] ?? null,
      })
    }
    const patience = setTimeout(finish, bodyTimeoutMs)
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= bodyBytesMax) finish()
    })
    // The status has arrived, so a failure to read the rest does not matter.
    response.on('error', finish)
    response.on('close', finish)
  })
  outgoing.end(request.body)
  const answer = await promise
  clearTimeout(timeout)
  outgoing.destroy()
  return answer
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message.slice(0, 200)
}

/** Sent with every webhook, in addition to the three headers that sign it. */
export const webhookHeaders = {
  'content-type': 'application/json',
  'user-agent': 'Farthing-Webhooks/1',
} as const

/** The body of a webhook: what is signed, byte for byte. */
export function bodyOf(event: Event): string {
  return JSON.stringify(event)
}
