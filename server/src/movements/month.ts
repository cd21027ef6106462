import { addDays, addMonths, localTime } from '../zone.ts'
import type { BookedRange } from './rows.ts'
import { rangeOfDays } from './sums.ts'

const monthForm = /^\d{4}-(0[1-9]|1[0-2])$/
/** Farthing has no books from before. */
const firstMonth = '2020-01'
const lastMonth = '2999-12'

/** A month of the calendar, such as 2026-10. */
export function isMonth(text: string): boolean {
  return monthForm.test(text) && text >= firstMonth && text <= lastMonth
}

/** Its first and last day. */
export function daysOf(month: string): { readonly from: string; readonly to: string } {
  return { from: `${month}-01`, to: addDays(`${addMonths(month, 1)}-01`, -1) }
}

export function monthRange(month: string, zone: string): BookedRange {
  const { from, to } = daysOf(month)
  return rangeOfDays(from, to, zone)
}

export function monthOf(time: Date, zone: string): string {
  return localTime(time, zone).day.slice(0, 7)
}
