import { brotliCompressSync, constants } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
/**
 * A client's preferences from Accept or Accept-Language, best first, with weights from 1 to 1000. A weight outside 0 to 1
 * is ignored, as if there were none.
 */
export function readPreferences(
  header: string | undefined,
): { readonly value: string; readonly weight: number }[] {
  return (header ?? '')
    .split(',', preferencesMax)
    .map((part) => {
      const [value = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      const quality = parameters.find((text) => text.startsWith('q='))
      const [, whole = '1', fraction = ''] = weightForm.exec(quality ?? '') ?? []
      return { value, weight: Number.parseInt(whole + fraction.padEnd(3, '0'), 10) }
    })
    .filter(({ value, weight }) => value !== '' && weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
}

/** 0 to 1 with at most three decimals, as in RFC 9110. */
const weightForm = /^q=(?=0|1(?:\.0*)?$)([01])(?:\.(\d{0,3}))?$/
/** No real client sends more; the rest is ignored. */
const preferencesMax = 20

/** Browsers prefer text/html. Programs accept JSON or anything, or send no header; they get the ways to pay. */
export function prefersPage(accept: string | undefined): boolean {
  const preferences = readPreferences(accept)
  const page = preferences.find(({ value }) => value === 'text/html')
  const other = preferences.find(({ value }) => value === 'application/json' || value === '*/*')
  return page !== undefined && page.weight >= (other?.weight ?? 0)
}

/**
 * Whether the client is answered with a page. A request with a payment comes from a program, no matter what it accepts. HEAD
 * ignores payments, because it must not charge.
 */
export function wantsPage({ method, headers }: FastifyRequest): boolean {
  const hasPayment = method !== 'HEAD' && headers['payment-signature'] !== undefined
  return !hasPayment && prefersPage(headers.accept)
}

/** Fast, and small enough: every request renders the page again. */
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }

/** Sends a page, compressed where the browser takes it. */
export function sendCompressed(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  if (!/\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))) return reply.send(text)
  return reply.header('content-encoding', 'br').send(brotliCompressSync(text, brotli))
}
