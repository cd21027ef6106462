import type { CheckoutStatus, Disposition } from '@farthing/sdk'
import type { PaymentQuery } from '../../../checkouts/payments/list.ts'
import type { CheckoutQuery } from '../../../checkouts/read.ts'
import { isId } from '../../../ids.ts'
import { parseDecimal } from '../../../money.ts'
import { networks } from '../../../networks.ts'
import type { Screen } from '../screen.ts'
import { readSearch, type Search } from './search.ts'

export const rowsPerPage = 25

export const statuses = ['OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED'] as const
export const dispositions = ['exact', 'late', 'underpaid', 'overpaid', 'unmatched'] as const

/**
 * The filter of the list, from its URL. Impossible values, such as a date that does not exist, are ignored, so that an old
 * URL still shows something. Checkouts are listed by creation, money by arrival.
 */
export type ListQuery = {
  readonly show: 'checkouts' | 'money'
  /** How the typed text is read, and the other ways to read it. */
  readonly search: Search | null
  readonly others: readonly Search[]
  readonly status: CheckoutStatus | null
  readonly disposition: Disposition | null
  readonly network: string | null
  /** Decimals of a token. */
  readonly least: string | null
  readonly most: string | null
  /** Days in the store's zone, such as 2026-11-16; both are included. */
  readonly from: string | null
  readonly to: string | null
  readonly cursor: string | null
}

/** The list that is asked for; of a search, once per way to read what was typed. */
export function readQueries({ request, store: { mode }, locale, now }: Screen): readonly ListQuery[] {
  const given = (request.query ?? {}) as Readonly<Record<string, unknown>>
  const text = (name: string) => {
    const value = given[name]
    return typeof value === 'string' && value.isWellFormed() ? value.slice(0, 300) : ''
  }
  const readings = readSearch(text('q'), locale, now)
  const chosen = readings.filter(({ kind }) => kind === text('as'))
  const asked = chosen.length > 0 ? chosen : readings
  const amount = (name: string) => (/^\d{1,15}(\.\d{1,6})?$/.test(text(name)) ? text(name) : null)
  const queryFor = (search: Search | null): ListQuery => {
    const show = search ? shownAs[search.kind] : text('show') === 'money' ? 'money' : 'checkouts'
    const cursor = text('cursor')
    return {
      show,
      search,
      others: readings.filter((each) => each !== search),
      status: statuses.find((each) => show === 'checkouts' && each === text('status')) ?? null,
      disposition: dispositions.find((each) => show === 'money' && each === text('kind')) ?? null,
      network:
        networks.find((each) => show === 'money' && each.mode === mode && each.caip2 === text('network'))
          ?.caip2 ?? null,
      least: show === 'money' ? amount('least') : null,
      most: show === 'money' ? amount('most') : null,
      from: isDay(text('from')) ? text('from') : null,
      to: isDay(text('to')) ? text('to') : null,
      cursor: isId(show === 'money' ? 'pay' : 'ch', cursor) ? cursor : null,
    }
  }
  return (asked.length > 0 ? asked : [null]).map(queryFor)
}

/** What is listed for each way to read a search. */
const shownAs: Readonly<Record<Search['kind'], ListQuery['show']>> = {
  checkout: 'checkouts',
  payment: 'money',
  refund: 'checkouts',
  link: 'checkouts',
  receipt: 'checkouts',
  transaction: 'money',
  address: 'money',
  short: 'money',
  days: 'checkouts',
  order: 'checkouts',
  price: 'checkouts',
  received: 'money',
  words: 'checkouts',
}

/** The URL's query for the same list with some changes. */
export function addressOf(query: ListQuery, change: Partial<ListQuery> = {}): string {
  const { search, show, status, disposition, network, least, most, from, to, cursor } = {
    ...query,
    cursor: null,
    ...change,
  }
  const parameters = Object.entries({
    q: search?.text,
    as: search?.kind,
    show: show === 'money' && search === null ? show : null,
    ...{ status, kind: disposition, network, least, most, from, to, cursor },
  }).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return new URLSearchParams(parameters).toString()
}

export function checkoutQueryOf(query: ListQuery, timeZone: string): Omit<CheckoutQuery, 'limit'> {
  const { search, status } = query
  return { status, ...wantedCheckouts(search), ...rangeOf(query, timeZone) }
}

/** No index covers these filters, so a page of results reads at most this many rows. */
const searchedRows = 2_000

function wantedCheckouts(search: Search | null): Partial<CheckoutQuery> {
  switch (search?.kind) {
    case 'link':
      return { linkId: search.id }
    case 'order':
      return { orderIds: search.orders }
    case 'price':
      return {
        priceCurrency: search.currency,
        minPrice: search.least,
        maxPrice: search.most,
        windowRows: searchedRows,
      }
    case 'words':
      return { words: search.words, windowRows: searchedRows }
    default:
      return {}
  }
}

export function paymentQueryOf(query: ListQuery, timeZone: string): Omit<PaymentQuery, 'limit'> {
  const { search, disposition, network } = query
  const { least, most } = search?.kind === 'received' ? search : query
  return {
    disposition,
    network,
    payer: search?.kind === 'address' ? search.value : null,
    transaction: search?.kind === 'transaction' ? search.value : null,
    short: search?.kind === 'short' ? search : null,
    minAmount: least === null ? null : unitsOf(least, network),
    maxAmount: most === null ? null : unitsOf(most, network),
    ...(search && { windowRows: searchedRows }),
    ...rangeOf(query, timeZone),
  }
}

function rangeOf({ search, cursor, ...days }: ListQuery, timeZone: string) {
  const { from, to } = search?.kind === 'days' ? search : days
  return {
    createdFrom: from === null ? null : startOfDay(from, timeZone),
    createdBefore: to === null ? null : startOfDay(dayAfter(to), timeZone),
    cursor,
  }
}

/** Most tokens have this many decimals. Of a network that is chosen, its first token counts. */
const usualDecimals = 6

function unitsOf(amount: string, network: string | null): string {
  const decimals = networks.find(({ caip2 }) => caip2 === network)?.assets[0]?.decimals ?? usualDecimals
  const { coefficient, scale } = parseDecimal(amount)
  return (coefficient * 10n ** BigInt(decimals - scale)).toString()
}

export function isDay(text: string): boolean {
  const time = /^20\d{2}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

const dayMs = 86_400_000

function dayAfter(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + dayMs).toISOString().slice(0, 10)
}

/** When a day begins in a zone. The offset from UTC is computed twice, because it may change in between. */
export function startOfDay(day: string, timeZone: string): Date {
  const wanted = Date.parse(`${day}T00:00:00Z`)
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    ...{ year: 'numeric', month: 'numeric', day: 'numeric' },
    ...{ hour: 'numeric', minute: 'numeric', second: 'numeric' },
  })
  const aheadMs = (at: number) => {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
    const digits = (name: string) => Number.parseInt(part[name] ?? '0', 10)
    const shown = Date.UTC(
      digits('year'),
      digits('month') - 1,
      digits('day'),
      digits('hour'),
      digits('minute'),
      digits('second'),
    )
    return shown - at
  }
  return new Date(wanted - aheadMs(wanted - aheadMs(wanted)))
}
