/** A month of the archive, as in 2026-08, in UTC: what is exported and dropped as a whole. */
export type Month = `${number}-${string}`

const form = /^(\d{4})-(0[1-9]|1[0-2])$/
const dayMs = 86_400_000

/** Null if it is none. */
export function parseMonth(text: string): Month | null {
  return form.test(text) ? (text as Month) : null
}

function endOf(month: Month): Date {
  const [, year = '', number = ''] = form.exec(month) ?? []
  return new Date(Date.UTC(Number.parseInt(year, 10), Number.parseInt(number, 10), 1))
}

/** From when on a month may be dropped; null if it is kept for ever. */
export function droppableFrom(month: Month, retentionDays: number): Date | null {
  return retentionDays === 0 ? null : new Date(endOf(month).getTime() + retentionDays * dayMs)
}

/** What the names of the month's tables end in. */
export function suffixOf(month: Month): string {
  return month.replace('-', '_')
}
