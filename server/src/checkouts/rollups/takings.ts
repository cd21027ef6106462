import type { Context } from '../../context.ts'
import type { StoreId } from '../../ids.ts'
import { parseDecimal } from '../../money.ts'
import { findQuote, type Quote } from '../../rates/quote.ts'
import { addDays, dayRange, daysBetween, knownZone, localTime, monthBefore, weekdayOf } from '../../zone.ts'
import { readDeltas } from './count.ts'
import {
  addFigures,
  type Figures,
  medianMs,
  noFigures,
  parseTakenKey,
  pricedDecimals,
  tokenOf,
} from './rollup.ts'
import { readDays, readQuarters, readUncounted } from './rows.ts'

/** A store's takings in a period up to now, and in the period before it up to the same time of day. */
export const periods = ['today', 'week', 'month'] as const
export type Period = (typeof periods)[number]

/** Days of the store's calendar, both included. */
export type DayRange = { readonly from: string; readonly to: string }

/** A year and its neighbours: as many rows of figures are read, twice. */
const rangeDaysMax = 400
/** With more days than this, a bar stands for a month. */
const dayBarsMax = 62

export type Takings = {
  readonly from: string
  readonly to: string
  readonly sum: Sum
  /** The period before. Its last day counts up to the same time, unless that month was shorter. */
  readonly before: { readonly from: string; readonly to: string; readonly sum: Sum }
  /** For the chart: the whole month, the last seven days, or the range. `amount` is null for days in the future. */
  readonly days: readonly {
    readonly day: string
    /** The last one that it stands for: the same day, or the end of a month. */
    readonly to: string
    readonly amount: bigint | null
    readonly beforeDay: string | null
    readonly before: bigint | null
  }[]
  /** Events that are not counted yet. */
  readonly waiting: bigint
}

/** Amounts are in millionths of the currency that the store reports in. */
export type Sum = {
  readonly amount: bigint
  readonly payments: number
  readonly average: bigint | null
  /** The part of the amount that was converted at today's rate. */
  readonly converted: bigint
  /** Takings that are not in the amount, because there is no rate for them. */
  readonly left: readonly { readonly symbol: string; readonly units: bigint; readonly decimals: number }[]
  readonly made: number
  readonly paid: number
  readonly expired: number
  readonly canceled: number
  readonly open: number
  readonly medianMs: number | null
}

/** More events than this are too many to add per request. They wait to be counted, and the screen says so. */
const addedMax = 500n
/** Counting advances once a second. */
const readTries = 3

type Reporting = { readonly id: StoreId; readonly timeZone: string; readonly reportCurrency: string }

export async function readTakings(
  ctx: Context,
  store: Reporting,
  period: Period | DayRange,
  now: Date,
): Promise<Takings> {
  const zone = knownZone(store.timeZone)
  const { day: today, minutes } = localTime(now, zone)
  const span = spanOf(period, today)
  const chart = chartOf(period, span, today)
  const first = [span.beforeFrom, ...chart.map(({ beforeDay, day }) => beforeDay ?? day)].toSorted()[0]
  const quote = await findQuote(ctx, store.reportCurrency, now)
  const read = await readFigures(ctx, store.id, zone, {
    first: first ?? today,
    last: span.to,
    cut: span.cutDay === null ? null : { day: span.cutDay, minutes },
  })
  const { days, cut, waiting } = read
  const total = (from: string, to: string) =>
    days
      .filter(({ at }) => at >= from && at <= to)
      .reduce((sum, { figures }) => addFigures(sum, figures), noFigures)
  const sumUp = (figures: Figures) => toSum(figures, store.reportCurrency, quote)
  const amountOf = (from: string | null, to: string | null) =>
    from === null ? null : sumUp(total(from, to ?? from)).amount
  const before = addFigures(total(span.beforeFrom, span.beforeTo), cut)
  return {
    from: span.from,
    to: span.to,
    sum: sumUp(total(span.from, span.to)),
    before: { from: span.beforeFrom, to: span.cutDay ?? span.beforeTo, sum: sumUp(before) },
    days: chart.map(({ day, to, beforeDay, beforeTo }) => ({
      day,
      to,
      amount: day > today ? null : amountOf(day, to),
      beforeDay,
      before: amountOf(beforeDay, beforeTo),
    })),
    waiting,
  }
}

/**
 * `beforeTo` is the last whole day of the period before. `cutDay` is the day after it, which counts up to this time.
 */
type Span = {
  readonly from: string
  readonly to: string
  readonly beforeFrom: string
  readonly beforeTo: string
  readonly cutDay: string | null
}

export function spanOf(period: Period | DayRange, today: string): Span {
  if (typeof period === 'object') return spanOfRange(period, today)
  if (period === 'month') {
    const from = `${today.slice(0, 8)}01`
    const cutDay = monthBefore(today)
    const beforeTo = addDays(cutDay ?? from, -1)
    return { from, to: today, beforeFrom: `${addDays(from, -1).slice(0, 8)}01`, beforeTo, cutDay }
  }
  const back = period === 'today' ? 1 : 7
  const from = period === 'today' ? today : addDays(today, -weekdayOf(today))
  const cutDay = addDays(today, -back)
  return { from, to: today, beforeFrom: addDays(from, -back), beforeTo: addDays(cutDay, -1), cutDay }
}

/** Whole months are compared with the month before, other ranges with as many days before them. */
function spanOfRange(range: DayRange, today: string): Span {
  const to = range.to > today ? today : range.to
  const earliest = addDays(to, 1 - rangeDaysMax)
  const wanted = range.from > to ? to : range.from
  const from = wanted < earliest ? earliest : wanted
  const last = addDays(from, -1)
  const isMonth = from.endsWith('-01') && to === addDays(nextMonth(from), -1)
  const beforeFrom = isMonth ? `${last.slice(0, 8)}01` : addDays(from, -1 - daysBetween(from, to))
  // A day that is not over yet is compared with as much of the day before the range.
  return to === today && !isMonth
    ? { from, to, beforeFrom, beforeTo: addDays(last, -1), cutDay: last }
    : { from, to, beforeFrom, beforeTo: last, cutDay: null }
}

function nextMonth(first: string): string {
  return `${addDays(first, 31).slice(0, 8)}01`
}

type Bar = {
  readonly day: string
  readonly to: string
  readonly beforeDay: string | null
  readonly beforeTo: string | null
}

function chartOf(period: Period | DayRange, span: Span, today: string): Bar[] {
  const bar = (day: string, beforeDay: string | null) => ({ day, to: day, beforeDay, beforeTo: beforeDay })
  if (typeof period === 'object') {
    const length = daysBetween(span.from, span.to) + 1
    const days = Array.from({ length }, (_, i) => addDays(span.from, i))
    if (length <= dayBarsMax) return days.map((day) => bar(day, null))
    const isFirst = (day: string) => day === span.from || day.endsWith('-01')
    return days.filter(isFirst).map((day) => {
      const end = addDays(nextMonth(`${day.slice(0, 8)}01`), -1)
      return { ...bar(day, null), to: end < span.to ? end : span.to }
    })
  }
  const month = `${today.slice(0, 8)}01`
  const start = period === 'month' ? month : addDays(today, -6)
  const length = period === 'month' ? daysBetween(month, nextMonth(month)) : 7
  return Array.from({ length }, (_, i) => {
    const day = addDays(start, i)
    return bar(day, period === 'month' ? monthBefore(day) : addDays(day, -7))
  })
}

type Wanted = {
  readonly first: string
  readonly last: string
  /** A day up to a time of it. */
  readonly cut: { readonly day: string; readonly minutes: number } | null
}
type Read = {
  readonly days: readonly { readonly at: string; readonly figures: Figures }[]
  /** The figures of the cut day up to this time, including the quarter hour that was running. */
  readonly cut: Figures
  readonly waiting: bigint
}

/**
 * Reads the stored sums, and adds the events that `work` has yet to count, so that a screen that reacts to an event
 * shows it. If they are counted in between, everything is read again.
 */
async function readFigures(ctx: Context, storeId: StoreId, zone: string, wanted: Wanted): Promise<Read> {
  const { first, last, cut } = wanted
  const range = cut && dayRange(cut.day, zone)
  const isBeforeCut = (at: string) => {
    const local = localTime(new Date(at), zone)
    return local.day === cut?.day && local.minutes <= cut.minutes
  }
  for (let tries = 1; ; tries++) {
    const uncounted = await readUncounted(ctx.db, storeId)
    const waiting = BigInt(uncounted.until) - BigInt(uncounted.after)
    const days = await readDays(ctx.db, storeId, first, last)
    const quarters = range ? await readQuarters(ctx.db, storeId, range.from, range.before) : []
    const isAdded = waiting > 0n && waiting <= addedMax
    const deltas = isAdded ? await readDeltas(ctx.db, [uncounted]) : []
    const { after } = await readUncounted(ctx.db, storeId)
    if (after !== uncounted.after && tries < readTries) continue
    const byDay = new Map(days.map(({ at, figures }) => [at, figures]))
    for (const { at, figures } of deltas) {
      const { day } = localTime(new Date(at), zone)
      byDay.set(day, addFigures(byDay.get(day) ?? noFigures, figures))
    }
    return {
      days: [...byDay].map(([at, figures]) => ({ at, figures })),
      cut: [...quarters, ...deltas]
        .filter(({ at }) => isBeforeCut(at))
        .reduce((sum, { figures }) => addFigures(sum, figures), noFigures),
      waiting: waiting <= addedMax ? 0n : waiting,
    }
  }
}

export function toSum(figures: Figures, currency: string, quote: Quote | null): Sum {
  let [amount, converted, payments] = [0n, 0n, 0]
  const left = new Map<string, Sum['left'][number]>()
  for (const [key, taken] of Object.entries(figures.taken)) {
    const parsed = parseTakenKey(key)
    const token = tokenOf(parsed)
    payments += taken.payments
    if (parsed.currency === currency) amount += taken.priced
    else if (token && currency === 'USD') amount += toMillionths(taken.received, token.decimals)
    else if (token && quote) {
      const worth = exchange(toMillionths(taken.received, token.decimals), quote)
      amount += worth
      converted += worth
    } else {
      const symbol = token?.symbol ?? parsed.asset
      const units = (left.get(symbol)?.units ?? 0n) + taken.received
      left.set(symbol, { symbol, units, decimals: token?.decimals ?? 0 })
    }
  }
  const { made, paid, expired, canceled, times } = figures
  return {
    amount,
    payments,
    average: payments > 0 && left.size === 0 ? amount / BigInt(payments) : null,
    converted,
    left: [...left.values()],
    made,
    paid,
    expired,
    canceled,
    open: made - paid - expired - canceled,
    medianMs: medianMs(times),
  }
}

function toMillionths(units: bigint, decimals: number): bigint {
  return (units * 10n ** BigInt(pricedDecimals)) / 10n ** BigInt(decimals)
}

/** Converts US dollars into the currency of a quote: the opposite of how prices are converted. */
function exchange(dollars: bigint, quote: Quote): bigint {
  const [per, usd] = [parseDecimal(quote.perBase), parseDecimal(quote.usdPerBase)]
  return (dollars * per.coefficient * 10n ** BigInt(usd.scale)) / (usd.coefficient * 10n ** BigInt(per.scale))
}
