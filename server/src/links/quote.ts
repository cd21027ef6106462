import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Context } from '../context.ts'
import { type CheckoutId, isId } from '../ids.ts'
import type { Quote as Rate } from '../rates/quote.ts'
import { readSecretsKeys } from '../secrets/key-file.ts'
import type { Link } from './link.ts'

/**
 * What a link offers to somebody who opens it. Mail scanners and previews open links too, so opening writes nothing: what is
 * offered is sent along, authenticated, and comes back when the buyer goes on. It names the checkout that will be made of
 * it, so going on twice finds the first one.
 *
 * As text: the checkout's id, the rest as JSON in base64url, and a MAC of both, of the link's id and of its revision.
 */
export type LinkQuote = {
  readonly checkoutId: CheckoutId
  /** In the link's currency. Null while the buyer chooses. */
  readonly priceAmount: string | null
  readonly rate: Rate | null
  /** Network, token, amount and recipient of each way to pay, as a hash. */
  readonly offers: string
  readonly until: Date
}

/** Enough to read the page. Until then the buyer keeps the exchange rate. */
export const quoteMs = 300_000

/** A link, and what authenticates its quotes together with the deployment’s secrets. */
export type QuotingLink = Pick<Link, 'id' | 'revision'> & { readonly quoteKey: Buffer }

const keyBytes = 32
const purpose = 'farthing link quote 1'

export function writeQuote(ctx: Context, link: QuotingLink, { checkoutId, ...rest }: LinkQuote): string {
  const said = `${checkoutId}.${Buffer.from(JSON.stringify(rest)).toString('base64url')}`
  const [key] = listKeys(ctx, link)
  return `${said}.${macOf(key, link, said).toString('base64url')}`
}

/** Null unless this link, as it is now, made the quote. Whether its time is over is for the caller to say. */
export function readQuote(ctx: Context, link: QuotingLink, text: string): LinkQuote | null {
  const [checkoutId = '', body = '', mac = '', ...more] = text.split('.')
  if (more.length > 0 || !isId('ch', checkoutId)) return null
  const given = Buffer.from(mac, 'base64url')
  const isOurs = listKeys(ctx, link).some((key) => {
    const made = macOf(key, link, `${checkoutId}.${body}`)
    return given.length === made.length && timingSafeEqual(given, made)
  })
  if (!isOurs) return null
  const said = JSON.parse(Buffer.from(body, 'base64url').toString()) as Said
  const rate = said.rate && { ...said.rate, asOf: new Date(said.rate.asOf) }
  return { ...said, checkoutId, rate, until: new Date(said.until) }
}

/** The rest of a quote, as JSON has it. */
type Said = Pick<LinkQuote, 'priceAmount' | 'offers'> & {
  readonly rate: (Omit<Rate, 'asOf'> & { readonly asOf: string }) | null
  readonly until: string
}

/** The id of the checkout that a quote would make, before it is known who made the quote. */
export function checkoutIdIn(text: string): CheckoutId | null {
  const [id = ''] = text.split('.')
  return isId('ch', id) ? id : null
}

export function hashOffers(offers: readonly object[]): string {
  return createHash('sha256').update(JSON.stringify(offers)).digest('base64url')
}

/**
 * One for each of the deployment's keys: the first makes, all verify. Without keys the link's own is all there is, which
 * only `serve` and the tables' owner can read.
 */
function listKeys({ config }: Context, { quoteKey }: QuotingLink): [Buffer, ...Buffer[]] {
  const [first, ...others] = readSecretsKeys(config.secretsKeyFile).map(({ bytes }) => bytes)
  const derive = (secret: Buffer) => Buffer.from(hkdfSync('sha256', secret, quoteKey, purpose, keyBytes))
  return [derive(first ?? Buffer.alloc(0)), ...others.map(derive)]
}

function macOf(key: Buffer, { id, revision }: QuotingLink, said: string): Buffer {
  return createHmac('sha256', key).update([id, revision, said].join('\n')).digest()
}
