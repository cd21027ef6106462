import assert from 'node:assert/strict'
import type { Context } from '../context.ts'
import { type Decimal, one, parseDecimal, toUnits, unitsToText } from '../money.ts'
import { Problem } from '../problems.ts'
import { currencies } from './iso4217.ts'
import { jumpOf, type RateRow, readRates } from './rows.ts'
import { type Source, sources } from './sources.ts'

/** How a price is converted to US dollars: price × usdPerBase ÷ perBase. */
export type Quote = {
  readonly source: string
  readonly perBase: string
  readonly usdPerBase: string
  readonly asOf: Date
}

/** The current rate for a currency; null for USD, which equals USDC one to one. */
export async function quoteCurrency(ctx: Context, currency: string, now: Date): Promise<Quote | null> {
  assert(currencies.has(currency), `not an ISO 4217 code: ${currency}`)
  if (currency === 'USD') return null
  const fixed = fixedQuote(ctx, currency, now)
  if (fixed) return fixed
  const byCurrency = Map.groupBy(await readRates(ctx.db, currency), (row) => row.currency)
  const rows = byCurrency.get(currency) ?? []
  const usdRows = byCurrency.get('USD') ?? []
  const quote = pickQuote(rows, usdRows, now)
  if (quote) return quote
  throw refuse(ctx, currency, rows, usdRows, now)
}

/** Today's rate; null for dollars, and if there is no reliable rate. */
export async function findQuote(ctx: Context, currency: string, now: Date): Promise<Quote | null> {
  // The list of currencies may have lost one since it was stored.
  if (!currencies.has(currency)) return null
  try {
    return await quoteCurrency(ctx, currency, now)
  } catch (error) {
    if (error instanceof Problem) return null
    throw error
  }
}

/**
 * The rate of the preferred fresh source; null if another fresh source disagrees by more than a tenth, or if there is no
 * other and this one has just jumped.
 */
export function pickQuote(rows: readonly RateRow[], usdRows: readonly RateRow[], now: Date): Quote | null {
  const [first, ...others] = freshQuotes(rows, usdRows, now)
  if (!first || !others.every((other) => areNear(first, other))) return null
  return others.length === 0 && findJump(first, rows, usdRows, now) !== null ? null : first
}

/** When the only source's rate jumped, if that is too recent to trust the rate. */
function findJump(
  quote: Quote,
  rows: readonly RateRow[],
  usdRows: readonly RateRow[],
  now: Date,
): { readonly seenAt: Date; readonly until: Date } | null {
  const source = sources.find(({ name }) => name === quote.source)
  assert(source)
  const seen = [...rows, ...usdRows].filter((row) => row.source === jumpOf(source))
  const seenAt = new Date(Math.max(0, ...seen.map(({ asOf }) => asOf.getTime())))
  const until = new Date(seenAt.getTime() + source.confirmMs)
  return until > now ? { seenAt, until } : null
}

/** A rate from FIXED_RATES, for deployments without real money. */
export function fixedQuote(ctx: Context, currency: string, now: Date): Quote | null {
  const perBase = ctx.config.fixedRates.get(currency)
  return perBase === undefined ? null : { source: 'fixed', perBase, usdPerBase: '1', asOf: now }
}

/**
 * One quote per source whose rates for the currency and for USD are both fresh. They must also come from one file: a
 * currency that was left behind when two files arrived at once must not be used.
 */
function freshQuotes(rows: readonly RateRow[], usdRows: readonly RateRow[], now: Date): Quote[] {
  return sources.flatMap((source) => {
    const row = ofSource(rows, source)
    const usd = ofSource(usdRows, source)
    if (!row || !usd || row.asOf.getTime() !== usd.asOf.getTime()) return []
    if (!isFresh(source, row.asOf, now)) return []
    return [{ source: source.name, perBase: row.perBase, usdPerBase: usd.perBase, asOf: row.asOf }]
  })
}

/**
 * Within a tenth of each other. Currencies rarely move that far in the days that an ECB rate may be old. A wrong file,
 * or one with a coin's price under a currency's code, is further off, and a price computed from it could not be undone.
 */
function areNear(a: Quote, b: Quote): boolean {
  const [worthOfA, worthOfB] = [worth(a), worth(b)]
  return worthOfA * 10n <= worthOfB * 11n && worthOfB * 10n <= worthOfA * 11n
}

/** The value of one unit of the currency, in units of 10^-30 US dollars. */
function worth(quote: Quote): bigint {
  return priceInUnits(one, quote, 30)
}

/** A price in the smallest unit of a token that is worth one US dollar, rounded up. */
export function priceInUnits(price: Decimal, quote: Quote | null, decimals: number): bigint {
  if (quote === null) return toUnits(price, one, one, decimals)
  return toUnits(price, parseDecimal(quote.usdPerBase), parseDecimal(quote.perBase), decimals)
}

/** As precise as any source, and enough for the least valuable currency. */
const rateDecimals = 12

/** What one unit of a currency is worth in dollars. */
export function rateText(quote: Quote): string {
  return unitsToText(priceInUnits(one, quote, rateDecimals), rateDecimals)
}

/** Too far in the future is as bad as too old: the machine that wrote it has a wrong clock, so its age is unknown. */
function isFresh(source: Source, asOf: Date, now: Date): boolean {
  return Math.abs(now.getTime() - asOf.getTime()) <= source.maxAgeMs
}

function ofSource(rows: readonly RateRow[], source: Source): RateRow | undefined {
  return rows.find((row) => row.source === source.name)
}

function refuse(
  ctx: Context,
  currency: string,
  rows: readonly RateRow[],
  usdRows: readonly RateRow[],
  now: Date,
): Problem {
  const fresh = freshQuotes(rows, usdRows, now)
  if (fresh.length > 1) {
    const names = fresh.map(({ source }) => source).join(' and ')
    return new Problem(
      'rate_unavailable',
      `The ${currency} rates from ${names} differ by more than 10 %, so neither is used. Price the checkout in USD, which needs no rate. The operator should check the rate sources.`,
      { retryAfterSeconds: Math.min(...sources.map(({ refreshMs }) => refreshMs)) / 1000 },
    )
  }
  const jump = fresh[0] && findJump(fresh[0], rows, usdRows, now)
  if (fresh[0] && jump) {
    return new Problem(
      'rate_unavailable',
      `The ${currency} rate from ${fresh[0].source}, the only source for it now, moved by more than 10 % at ${jump.seenAt.toISOString()}. It is used from ${jump.until.toISOString()} on if it stays there. Price the checkout in USD, which needs no rate.`,
      { retryAfterSeconds: Math.ceil((jump.until.getTime() - now.getTime()) / 1_000) },
    )
  }
  // Every source's file has USD, so a source without it was never loaded and might cover the currency.
  const used = sources.filter(({ setting }) => ctx.config[setting] !== '')
  const awaited = used.filter((source) => ofSource(rows, source) || !ofSource(usdRows, source))
  if (awaited.length === 0) {
    return new Problem(
      'currency_unsupported',
      `No rate source covers ${currency}. Price the checkout in USD, which needs no rate, or in a currency that GET /api/v1/currencies lists.`,
    )
  }
  const retryAfterSeconds = Math.min(...awaited.map(({ refreshMs }) => refreshMs)) / 1000
  const known = awaited.map((source) => {
    const row = ofSource(rows, source)
    return row
      ? `the one from ${source.name} is from ${row.asOf.toISOString()}`
      : `${source.name} was never reached`
  })
  return new Problem(
    'rate_unavailable',
    `There is no fresh ${currency} rate: ${known.join(', ')}. Try again in ${retryAfterSeconds} seconds, or price the checkout in USD, which needs no rate.`,
    { retryAfterSeconds },
  )
}
