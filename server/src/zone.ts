/**
 * Days and clock times of a time zone. All of it comes from the runtime's tables and none from the database's, so that
 * a quarter hour always belongs to the same day.
 */
type LocalTime = {
  /** As 2026-11-16. */
  readonly day: string
  readonly minutes: number
}

const dayMs = 86_400_000
const formats = new Map<string, Intl.DateTimeFormat>()

export function localTime(time: Date, zone: string): LocalTime {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(time)
      .map(({ type, value }) => [type, value]),
  )
  const number = (name: Intl.DateTimeFormatPartTypes) => Number.parseInt(parts.get(name) ?? '', 10)
  return {
    day: `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`,
    minutes: number('hour') * 60 + number('minute'),
  }
}

/** The zone itself, or UTC if the runtime does not know it: figures in a wrong zone are better than none. */
export function knownZone(zone: string): string {
  try {
    formatOf(zone)
    return zone
  } catch {
    return 'UTC'
  }
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  formats.set(zone, made)
  return made
}

export function addDays(day: string, days: number): string {
  return toDay(new Date(toTime(day).getTime() + days * dayMs))
}

export function daysBetween(from: string, to: string): number {
  return Math.round((toTime(to).getTime() - toTime(from).getTime()) / dayMs)
}

/** 0 for Monday. */
export function weekdayOf(day: string): number {
  return (toTime(day).getUTCDay() + 6) % 7
}

/** The same day in the month before; null if that month is too short. */
export function monthBefore(day: string): string | null {
  const [year = 0, month = 0, date = 0] = day.split('-').map((part) => Number.parseInt(part, 10))
  const found = toDay(new Date(Date.UTC(year, month - 2, date)))
  return found.endsWith(day.slice(-2)) ? found : null
}

/** Months as 2026-10. */
export function addMonths(month: string, months: number): string {
  const [year = 0, number = 0] = month.split('-').map((part) => Number.parseInt(part, 10))
  return toDay(new Date(Date.UTC(year, number - 1 + months, 1, 12))).slice(0, 7)
}

/**
 * A range of time that contains the whole day in its zone and little more. Clocks may change by up to two hours on that
 * day.
 */
export function dayRange(day: string, zone: string): { readonly from: Date; readonly before: Date } {
  const noon = toTime(day)
  const local = localTime(noon, zone)
  const offsetMs = (daysBetween(day, local.day) * 1_440 + local.minutes - 720) * 60_000
  const midnightMs = noon.getTime() - dayMs / 2 - offsetMs
  const slackMs = 7_200_000
  return { from: new Date(midnightMs - slackMs), before: new Date(midnightMs + dayMs + slackMs) }
}

/** All offsets of time zones in use are whole quarter hours, and so are all changes of clocks. */
const quarterMs = 900_000

/** The first moment of a day. A day whose clocks skip midnight begins later, and one that the zone skips never was. */
export function startOf(day: string, zone: string): Date {
  let at = dayRange(day, zone).from.getTime()
  while (localTime(new Date(at), zone).day < day) at += quarterMs
  return new Date(at)
}

/** When the day of this moment began. A day whose clocks skip midnight begins with its first minute. */
export function startOfDay(time: Date, zone: string): Date {
  const { day } = localTime(time, zone)
  let at = Math.floor(time.getTime() / quarterMs) * quarterMs
  while (localTime(new Date(at - 1), zone).day === day) at -= quarterMs
  return new Date(at)
}

/** The next quarter of an hour after this moment that is the first one of this hour of the day. */
export function nextHour(time: Date, zone: string, hour: number): Date {
  let at = (Math.floor(time.getTime() / quarterMs) + 1) * quarterMs
  while (Math.floor(localTime(new Date(at), zone).minutes / 15) !== hour * 4) at += quarterMs
  return new Date(at)
}

/** From a moment on, how far a zone's clocks are ahead of UTC. */
export type Offset = { readonly from: number; readonly ms: number }

const offsets = new Map<string, readonly Offset[]>()
/** Before the first books, and longer than they last. Asking the runtime about a century would take a tenth of a second. */
const offsetsFrom = Date.UTC(2019, 0, 1)
const offsetsBefore = Date.UTC(2050, 0, 1)
/** No zone changes its clocks twice within a week: in Gaza, in 2040, it takes exactly one. */
const stepMs = 6 * dayMs

/** All offsets of a zone in these years. The first one also counts before them, and the last one after them. */
export function listOffsets(zone: string): readonly Offset[] {
  const known = offsets.get(zone)
  if (known) return known
  const found: Offset[] = [{ from: offsetsFrom, ms: offsetAt(offsetsFrom, zone) }]
  for (let at = offsetsFrom; at < offsetsBefore; at += stepMs) {
    const ms = offsetAt(at + stepMs, zone)
    if (ms === found.at(-1)?.ms) continue
    let [before, from] = [at, at + stepMs]
    while (from - before > quarterMs) {
      const middle = before + Math.floor((from - before) / quarterMs / 2) * quarterMs
      if (offsetAt(middle, zone) === ms) from = middle
      else before = middle
    }
    found.push({ from, ms })
  }
  offsets.set(zone, found)
  return found
}

function offsetAt(time: number, zone: string): number {
  const { day, minutes } = localTime(new Date(time), zone)
  return daysBetween('1970-01-01', day) * dayMs + minutes * 60_000 - time
}

/** Noon, because every day has a noon in every time zone. */
function toTime(day: string): Date {
  return new Date(`${day}T12:00:00Z`)
}

function toDay(time: Date): string {
  return time.toISOString().slice(0, 10)
}
