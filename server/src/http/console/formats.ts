import type { FastifyRequest } from 'fastify'
import { unitsToText } from '../../money.ts'
import { readPreferences } from '../page/accept.ts'
import { type Html, html } from '../page/html.ts'
import { describeOption } from '../page/parts/summary.ts'
import { languageOf, type Texts } from './texts/choose.ts'

/** How the member who reads a screen writes numbers and dates, and the zone of the store whose screen it is. */
export type Locale = { readonly tag: string; readonly timeZone: string }

/** The language of the screen, as the first region of the browser's that speaks it writes it. */
export function localeOf(request: FastifyRequest): Locale {
  const { tag } = languageOf(request)
  const wanted = readPreferences(request.headers['accept-language']).map(({ value }) => value)
  const regional = wanted.find((each) => each.startsWith(`${tag}-`) && isLocale(each))
  const plainly = tag === 'en' ? 'en-GB' : tag
  return { tag: regional ?? plainly, timeZone: request.visitor.store?.timeZone ?? 'UTC' }
}

function isLocale(tag: string): boolean {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0
  } catch {
    return false
  }
}

/** Making one costs more than using it a hundred times; the tag comes from the browser, so there is a bound. */
const formats = new Map<string, Intl.DateTimeFormat>()
const formatsMax = 500

function formatOf({ tag, timeZone }: Locale, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${tag} ${timeZone} ${JSON.stringify(options)}`
  const known = formats.get(key)
  if (known) return known
  if (formats.size >= formatsMax) formats.clear()
  const made = new Intl.DateTimeFormat(tag, { ...options, timeZone })
  formats.set(key, made)
  return made
}

/** A time in the store's zone, as short as it can be: today only the hour, this year no year. UTC on hover. */
export function showTime(locale: Locale, time: Date, now: Date): Html {
  const day: Intl.DateTimeFormatOptions = { year: 'numeric', month: 'numeric', day: 'numeric' }
  const isToday = formatOf(locale, day).format(time) === formatOf(locale, day).format(now)
  const year = formatOf(locale, { year: 'numeric' })
  const hour = { hour: 'numeric', minute: '2-digit' } as const
  const date = { month: 'short', day: 'numeric' } as const
  if (isToday) return timeElement(time, formatOf(locale, hour).format(time))
  if (year.format(time) === year.format(now))
    return timeElement(time, formatOf(locale, { ...date, ...hour }).format(time))
  return timeElement(time, formatOf(locale, { ...date, year: 'numeric' }).format(time))
}

/** A day of the calendar, which is the same in every zone. */
export function showDay({ tag }: Locale, day: string): string {
  return formatOf({ tag, timeZone: 'UTC' }, { dateStyle: 'medium' }).format(new Date(`${day}T12:00:00Z`))
}

/** Date and time, to the minute. In UTC, the zone of pages that belong to no store, it says so. */
export function showMinute(locale: Locale, time: Date): Html {
  const text = formatOf(locale, { dateStyle: 'medium', timeStyle: 'short' }).format(time)
  return timeElement(time, locale.timeZone === 'UTC' ? `${text} UTC` : text)
}

/** Date and time, to the second. */
export function showExactTime(locale: Locale, time: Date): Html {
  return timeElement(time, formatOf(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(time))
}

function timeElement(time: Date, text: string): Html {
  const utc = `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  return html`<time datetime="${time.toISOString()}" title="${utc}">${text}</time>`
}

/** A price, such as "$48.00". The amount is a plain decimal of any length and is never rounded below its own digits. */
export function showMoney({ tag }: Locale, amount: string, currency: string): string {
  const digits = amount.split('.')[1]?.length ?? 0
  try {
    const { minimumFractionDigits = 0 } = new Intl.NumberFormat(tag, {
      style: 'currency',
      currency,
    }).resolvedOptions()
    return new Intl.NumberFormat(tag, {
      style: 'currency',
      currency,
      maximumFractionDigits: Math.max(minimumFractionDigits, digits),
    }).format(amount as unknown as number)
  } catch {
    return `${amount} ${currency}`
  }
}

/** A sum of money, to the currency's own digits. */
export function showRounded({ tag }: Locale, amount: string, currency: string): string {
  // As text, so that no digit is lost to a float.
  return new Intl.NumberFormat(tag, { style: 'currency', currency }).format(amount as unknown as number)
}

/** Units of a token, such as "48.00 USDC". */
export function showUnits(locale: Locale, units: bigint, decimals: number, symbol: string): string {
  const text = unitsToText(units, decimals)
  const digits = text.split('.')[1]?.length ?? 0
  const number = new Intl.NumberFormat(locale.tag, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
  // As text, so that no digit is lost to a float.
  return `${number.format(text as unknown as number)} ${symbol}`
}

/** An amount of the token that something was paid in. */
export function showTokens(
  locale: Locale,
  paid: { readonly network: string; readonly asset: string },
  units: bigint | string,
): string {
  const { symbol, decimals } = describeOption(paid)
  return showUnits(locale, BigInt(units), decimals, symbol)
}

/** For lists: cut to two decimals, with all of them on hover. What is below a hundredth is shown whole. */
export function showBriefly(
  locale: Locale,
  paid: { readonly network: string; readonly asset: string },
  units: bigint | string,
): Html {
  const { symbol, decimals } = describeOption(paid)
  const whole = showUnits(locale, BigInt(units), decimals, symbol)
  const hundredth = 10n ** BigInt(Math.max(decimals - 2, 0))
  const rest = BigInt(units) % hundredth
  if (rest === 0n || BigInt(units) < hundredth) return html`${whole}`
  return html`<span title="${whole}">${showUnits(locale, BigInt(units) - rest, decimals, symbol)}</span>`
}

export function showCount({ tag }: Locale, count: number | bigint): string {
  return new Intl.NumberFormat(tag).format(count)
}

/** How long something took, in the two largest units that matter: "16 min 39 s", "3 d 4 h". */
export function showDuration({ tag }: Locale, ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  const parts = [
    { unit: 'day', count: Math.floor(seconds / 86_400) },
    { unit: 'hour', count: Math.floor(seconds / 3_600) % 24 },
    { unit: 'minute', count: Math.floor(seconds / 60) % 60 },
    { unit: 'second', count: seconds % 60 },
  ]
  const first = parts.findIndex(({ count }) => count > 0)
  const shown = first < 0 ? parts.slice(3) : parts.slice(first, first + 2).filter(({ count }) => count > 0)
  return shown
    .map(({ unit, count }) =>
      new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'short' }).format(count),
    )
    .join(' ')
}

/** An address or hash in groups of four, for comparing it. */
export function showFours(text: string): Html {
  const prefix = text.startsWith('0x') ? 2 : 0
  const groups = [text.slice(0, prefix + 2), ...(text.slice(prefix + 2).match(/.{1,4}/g) ?? [])]
  return html`<span class="address fours">${groups.map((group) => html`<span>${group}</span>`)}</span>`
}

/** Enough of an address or hash to tell it from others. Hovering shows all of it. */
export function showShort(text: string): Html {
  const short = text.length > 14 ? `${text.slice(0, 6)}…${text.slice(-4)}` : text
  return html`<code class="address" title="${text}">${short}</code>`
}

/** A user agent in plain words: "Firefox on Windows". A client can send any text, so it proves nothing. */
export function describeBrowser(userAgent: string, texts: Texts): string {
  const find = (names: readonly (readonly [RegExp, string])[]) =>
    names.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = find([
    [/\bEdg(e|A|iOS)?\//, 'Edge'],
    [/\bOPR\//, 'Opera'],
    [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
    [/\b(Headless)?Chrom(e|ium)\/|\bCriOS\//, 'Chrome'],
    [/\bSafari\//, 'Safari'],
  ])
  const system = find([
    [/\biPhone\b/, 'iPhone'],
    [/\biPad\b/, 'iPad'],
    [/\bAndroid\b/, 'Android'],
    [/\bWindows\b/, 'Windows'],
    [/\bMac OS X\b/, 'Mac'],
    [/\bLinux\b|\bCrOS\b/, 'Linux'],
  ])
  const named = browser ?? texts.someBrowser
  return system ? texts.browserOn.replace('{browser}', named).replace('{system}', system) : named
}
