import type { Locale } from '../formats.ts'

export type Days = { readonly from: string; readonly to: string }

/**
 * The day or the month that a text names, as people and our own lists write it: 2026-11-16, 16.11.2026, 11/16/2026 where
 * months come first, "Nov 16", "16 de noviembre de 2026", "November 2026", "yesterday". A time of day after it is left out.
 */
export function dateIn(text: string, locale: Locale, now: Date): Days | null {
  const bare = text.replace(/[,\s]*\b\d{1,2}:\d{2}(:\d{2})?(\s*[ap]\.?\s?m\b\.?)?(\s*UTC)?$/i, '').trim()
  const today = dayOf(now, locale.timeZone)
  return numericIn(bare, locale, today) ?? relativeIn(bare, locale, today) ?? writtenIn(bare, locale, today)
}

function dayOf(time: Date, timeZone: string): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone }).format(time)
}

function numericIn(text: string, { tag }: Locale, today: string): Days | null {
  const iso = /^(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?:T[\d:.]*Z?)?$/.exec(text)
  if (iso) return daysOf(iso[1], iso[2], iso[3])
  // Without a year, only a slash tells a date from an amount.
  const [, one, other, year] =
    /^(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d{2})$/.exec(text) ?? /^(\d{1,2})\/(\d{1,2})$/.exec(text) ?? []
  if (!one || !other) return null
  const parts = new Intl.DateTimeFormat(tag).formatToParts(0).map(({ type }) => type)
  const isMonthFirst = text.includes('/') && parts.indexOf('month') < parts.indexOf('day')
  const [day, month] = isMonthFirst ? [other, one] : [one, other]
  if (year === undefined) return latest(month, day, today)
  return daysOf(year.length === 2 ? `20${year}` : year, month, day)
}

function relativeIn(text: string, { tag }: Locale, today: string): Days | null {
  const format = new Intl.RelativeTimeFormat(tag, { numeric: 'auto' })
  const ago = [0, 1].find((days) => format.format(-days, 'day') === text.toLowerCase())
  if (ago === undefined) return null
  const day = new Date(Date.parse(today) - ago * dayMs).toISOString().slice(0, 10)
  return { from: day, to: day }
}

const dayMs = 86_400_000

function writtenIn(text: string, { tag }: Locale, today: string): Days | null {
  const words = text
    .toLowerCase()
    .split(/[\s,./]+/)
    .filter((word) => word !== '' && !/^(de|del|of|the|el)$/.test(word))
    .map((word) => word.replace(/^(\d{1,2})(st|nd|rd|th)$/, '$1'))
  const months = words.map((word) => monthOf(word, tag))
  const month = months.find((each) => each !== null)
  const numbers = words.filter((_, i) => months[i] === null)
  const year = numbers.find((each) => /^20\d{2}$/.test(each))
  const [day, ...others] = numbers.filter((each) => each !== year)
  const isDate =
    month && words.length === numbers.length + 1 && others.length === 0 && /^(\d{1,2})?$/.test(day ?? '')
  if (!isDate) return null
  return year === undefined ? latest(month, day, today) : daysOf(year, month, day)
}

function monthOf(word: string, tag: string): string | null {
  for (const language of [tag, 'en'])
    for (const month of ['long', 'short'] as const)
      for (let at = 0; at < 12; at++) {
        const name = new Intl.DateTimeFormat(language, { month, timeZone: 'UTC' }).format(
          Date.UTC(2026, at, 15),
        )
        if (name.toLowerCase().replace('.', '') === word) return String(at + 1)
      }
  return null
}

/** Without a year the last one is meant. */
function latest(month: string, day: string | undefined, today: string): Days | null {
  const thisYear = Number.parseInt(today, 10)
  const [now, before] = [thisYear, thisYear - 1].map((year) => daysOf(String(year), month, day))
  return now && now.from <= today ? now : (before ?? null)
}

/** Null if the calendar has no such day. Without a day, the whole month. */
function daysOf(year = '', month = '', day?: string): Days | null {
  const first = `${year}-${month.padStart(2, '0')}-${(day ?? '1').padStart(2, '0')}`
  const time = Date.parse(`${first}T00:00:00Z`)
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== first) return null
  if (day !== undefined) return { from: first, to: first }
  const at = new Date(time)
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0))
  return { from: first, to: last.toISOString().slice(0, 10) }
}
