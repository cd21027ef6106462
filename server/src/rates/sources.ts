import { parseDecimal } from '../money.ts'
import { currencies } from './iso4217.ts'

/** A source's rates at one time: units of each currency per unit of the source's base, the base itself included. */
export type Rates = { readonly asOf: Date; readonly perBase: ReadonlyMap<string, string> }

export type Source = {
  readonly name: string
  readonly base: string
  /** The setting that holds the source's URL. */
  readonly setting: 'exchangeRatesUrl' | 'ecbRatesUrl'
  /** A rate older than this is not used. */
  readonly maxAgeMs: number
  readonly refreshMs: number
  /** How long a rate that jumped must have stayed before it is used without a second source: more than one reading. */
  readonly confirmMs: number
  /** Parses the source's file. Throws an Error that completes the sentence "The file …". */
  readonly parse: (text: string, fetchedAt: Date) => Rates
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

/** In order of preference: the first with a fresh rate is used. */
export const sources: readonly Source[] = [
  {
    name: 'exchange',
    base: 'USD',
    setting: 'exchangeRatesUrl',
    maxAgeMs: 5 * minuteMs,
    refreshMs: minuteMs,
    confirmMs: 10 * minuteMs,
    parse: parseExchange,
  },
  {
    name: 'ecb',
    base: 'EUR',
    setting: 'ecbRatesUrl',
    // The ECB publishes on working days in the afternoon: over a long weekend its rates reach an age of 111 hours.
    maxAgeMs: 120 * hourMs,
    refreshMs: hourMs,
    confirmMs: 2 * hourMs,
    parse: parseEcb,
  },
]

/** A file with fewer is an error page or a fragment, not a list of rates. */
const currenciesMin = 5

/** The exchange's file has no timestamp, so the time of the fetch is used. */
function parseExchange(text: string, fetchedAt: Date): Rates {
  const data = member(parseJson(text), 'data')
  const currency = member(data, 'currency')
  if (currency !== 'USD') {
    throw new Error(`has rates based on ${String(JSON.stringify(currency)).slice(0, 40)} instead of "USD"`)
  }
  const rates = member(data, 'rates')
  if (typeof rates !== 'object' || rates === null) throw new Error('has no data.rates')
  refuseRepeated(text, rates)
  return { asOf: fetchedAt, perBase: collect('USD', Object.entries(rates)) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error('is not JSON', { cause })
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, name)?.value
}

/** A JSON string, with the string that is its value if it is the name of a member. */
const jsonStrings = /("[^"\\]*(?:\\.[^"\\]*)*")(?:\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"))?/g

/** JSON.parse keeps the last of two members with the same name, so the text is searched for others. */
function refuseRepeated(text: string, rates: object): void {
  for (const [, name = '', value] of text.matchAll(jsonStrings)) {
    if (value === undefined) continue
    const currency: string = JSON.parse(name)
    if (currencies.has(currency) && member(rates, currency) !== JSON.parse(value)) {
      throw new Error(`has two rates for ${currency}`)
    }
  }
}

/** Matches up to the next angle bracket never overlap, so the time is linear for any text. */
const cubes = /<Cube([^<>]*)>/g
const dateCube = /^\s+time=(['"])(\d{4}-\d\d-\d\d)\1\s*$/
const rateCube = /^\s+currency=(['"])([^'"]*)\1\s+rate=(['"])([^'"]*)\3\s*\/$/

/** Accepts only what the ECB has always written; a file with anything more may mean something else. */
function parseEcb(text: string, fetchedAt: Date): Rates {
  if (!text.trimEnd().endsWith('</gesmes:Envelope>')) throw new Error('is not a complete gesmes:Envelope')
  if (text.includes('<!')) throw new Error('has a comment or declaration, which ECB files never have')
  const dates: string[] = []
  const rates: [string, string][] = []
  for (const [, attributes = ''] of text.matchAll(cubes)) {
    const [, , date] = dateCube.exec(attributes) ?? []
    const [, , currency, , rate] = rateCube.exec(attributes) ?? []
    if (date !== undefined) dates.push(date)
    else if (currency !== undefined && rate !== undefined) rates.push([currency, rate])
    else if (attributes !== '') throw new Error(`has an unexpected Cube:${attributes.slice(0, 80)}`)
  }
  const [date] = dates
  if (date === undefined || dates.length > 1) throw new Error(`has ${dates.length} dates instead of one`)
  const perBase = collect('EUR', rates)
  if (!perBase.has('USD')) throw new Error('has no usable rate for USD')
  return { asOf: dayStart(date, fetchedAt), perBase }
}

/** A future date would stay fresh, and block every correct file, until it has passed. */
function dayStart(date: string, fetchedAt: Date): Date {
  const time = new Date(`${date}T00:00:00Z`)
  const isDate = !Number.isNaN(time.getTime()) && time.toISOString().startsWith(date)
  if (!isDate) throw new Error(`is dated ${date}, which is not a date`)
  if (time > fetchedAt)
    throw new Error(`is dated ${date}, which is in the future: check this machine’s clock`)
  return time
}

type Entry = readonly [currency: string, rate: unknown]

/** Keeps the usable rates. Throws if the list contains anything that cannot be true of rates. */
function collect(base: string, entries: readonly Entry[]): Map<string, string> {
  const listed = new Map<string, unknown>()
  for (const [currency, rate] of entries) {
    if (!currencies.has(currency)) continue
    if (listed.has(currency) && listed.get(currency) !== rate)
      throw new Error(`has two rates for ${currency}`)
    listed.set(currency, rate)
  }
  const ownRate = listed.get(base)
  if (isRate(ownRate) && !isOne(ownRate)) throw new Error(`says that one ${base} is ${ownRate} ${base}`)
  const perBase = new Map([[base, '1']])
  for (const [currency, rate] of listed) {
    if (currency !== base && isRate(rate)) perBase.set(currency, rate)
  }
  if (perBase.size < currenciesMin)
    throw new Error(`has too few usable currencies (${perBase.size} of at least ${currenciesMin})`)
  return perBase
}

/** A plain decimal greater than zero, in the form that parseDecimal accepts: no sign, no exponent. */
function isRate(rate: unknown): rate is string {
  return typeof rate === 'string' && /^\d{1,30}(\.\d{1,30})?$/.test(rate) && /[1-9]/.test(rate)
}

function isOne(rate: string): boolean {
  const { coefficient, scale } = parseDecimal(rate)
  return coefficient === 10n ** BigInt(scale)
}
