import assert from 'node:assert/strict'
import { toShown } from '../chains/families.ts'
import { withoutFormula } from '../csv.ts'
import { networks } from '../networks.ts'
import { listOffsets } from '../zone.ts'
import type { Line } from './lines.ts'
import { type MovementType, signedText } from './movement.ts'

/**
 * What a column of an export can show. A file is made of columns, so the API's own format, a spreadsheet, a bank
 * statement and a store's own mapping differ only in their columns and in how numbers and times are written.
 */

export type DateForm = (typeof dateForms)[number]
export const dateForms = ['YYYY-MM-DD', 'YYYY-MM-DD hh:mm', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'] as const

/** How values are written. */
export type Writing = {
  readonly zone: string
  readonly decimal: '.' | ','
  readonly dates: DateForm
  /** What kinds of lines are called; absent: as the API calls them. */
  readonly words?: Readonly<Record<MovementType, string>>
}

/**
 * A text came from outside: it must not become a formula, and is quoted. A phrase is ours and may have commas. A number is
 * digits, and a code is a word without signs, which nothing needs to quote.
 */
export type CellKind = 'text' | 'phrase' | 'number' | 'code'

type Field = {
  readonly kind: CellKind
  /** Null leaves the cell empty. Decimals have a point. */
  readonly show: (line: Line, writing: Writing) => string | null
}

const code = (show: Field['show']): Field => ({ kind: 'code', show })
const text = (show: Field['show']): Field => ({ kind: 'text', show })
const phrase = (show: Field['show']): Field => ({ kind: 'phrase', show })
const decimal = (show: Field['show']): Field => ({ kind: 'number', show })

export const fields = {
  number: code(({ number }) => number),
  id: code(({ id }) => id),
  type: phrase(({ type }, { words }) => words?.[type] ?? type),
  happened_at: code(({ happenedAt }) => utc(happenedAt)),
  happened_on: code(({ happenedAt }, writing) => local(happenedAt, writing)),
  booked_at: code(({ bookedAt }) => utc(bookedAt)),
  booked_on: code(({ bookedAt }, writing) => local(bookedAt, writing)),
  order_id: text(({ orderId }) => orderId),
  checkout_id: code(({ checkoutId }) => checkoutId),
  payment_id: code(({ paymentId }) => paymentId),
  refund_id: code(({ refundId }) => refundId),
  disposition: code(({ disposition }) => disposition),
  price_amount: decimal(({ priceAmount }) => priceAmount),
  price_currency: code(({ priceCurrency }) => priceCurrency),
  rate: decimal(({ rate }) => rate),
  rate_source: code(({ rateSource }) => rateSource),
  rate_time: code(({ rateTime }) => (rateTime === null ? null : utc(rateTime))),
  token: code((line) => tokenOf(line).symbol),
  network: code(({ network }) => network),
  network_name: phrase((line) => tokenOf(line).networkName),
  amount: decimal((line) => amountOf(line)),
  value: decimal(({ value }) => value),
  value_currency: code(({ valueCurrency }) => valueCurrency),
  value_rate: decimal(({ valueRate }) => valueRate),
  value_rate_source: code(({ valueRateSource }) => valueRateSource),
  value_rate_time: code(({ valueRateTime }) => (valueRateTime === null ? null : utc(valueRateTime))),
  /** Begins with a word of ours, so that only the order in it can become a formula. */
  summary: phrase((line, { words }) => {
    const { symbol, networkName } = tokenOf(line)
    const order = line.orderId === null ? '' : ` ${withoutFormula(line.orderId)}`
    return `${words?.[line.type] ?? line.type}${order}, ${amountOf(line)} ${symbol}, ${networkName}`
  }),
  wallet: code(({ network, wallet }) => (wallet === null ? null : shownWallet(network, wallet))),
  transaction: code(({ transaction }) => transaction),
  log_index: code(({ place }) => (place === null ? null : place.toString())),
  reverses: code(({ reverses }) => reverses),
  decided_by: text(({ actorType, actorId }) => (actorType === null ? null : `${actorType} ${actorId}`)),
  payer: code(({ network, details }) => (details?.payer ? toShown(network, details.payer) : null)),
  recipient: code(({ network, details }) =>
    details?.recipient ? toShown(network, details.recipient) : null,
  ),
  description: text(({ details }) => details?.description ?? null),
  note: text(({ details }) => details?.note ?? null),
} as const satisfies Readonly<Record<string, Field>>

export type FieldId = keyof typeof fields

/** What the payment's records say today, and not what was booked. */
export const detailFields = ['payer', 'recipient', 'description', 'note'] as const
export type DetailField = (typeof detailFields)[number]

export function fieldOf(id: FieldId): Field {
  return fields[id]
}

/** A store has few wallets, and a checksum takes long. */
const shownWallets = new Map<string, string>()
const walletsMax = 1_000

function shownWallet(network: string, wallet: string): string {
  const known = shownWallets.get(wallet)
  if (known !== undefined) return known
  if (shownWallets.size >= walletsMax) shownWallets.clear()
  const shown = toShown(network, wallet)
  shownWallets.set(wallet, shown)
  return shown
}

/** Looked up once per token instead of once per line. */
const tokens = new Map<string, { symbol: string; decimals: number; networkName: string }>()

/** A token that was removed from the table since is shown by its address, in its smallest unit. */
export function tokenOf({ network, asset }: Pick<Line, 'network' | 'asset'>) {
  const key = `${network} ${asset}`
  const known = tokens.get(key)
  if (known) return known
  const found = networks.find(({ caip2 }) => caip2 === network)
  const shown = toShown(network, asset)
  const token = found?.assets.find(({ address }) => address === shown)
  const made = {
    symbol: token?.symbol ?? shown,
    decimals: token?.decimals ?? 0,
    networkName: found?.name ?? network,
  }
  tokens.set(key, made)
  return made
}

function amountOf(line: Pick<Line, 'network' | 'asset' | 'amount'>): string {
  return signedText(BigInt(line.amount), tokenOf(line).decimals)
}

const dayMs = 86_400_000
const dayTexts = new Map<number, string>()
/** Thirty years. */
const dayTextsMax = 11_000

/** As toISOString writes it, in a tenth of its time: an export has four of them per line. */
function utc(time: number): string {
  const rest = time - Math.floor(time / dayMs) * dayMs
  const seconds = Math.floor(rest / 1_000)
  const clock = `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
  return `${dayText(time)}T${clock}.${String(Math.floor(rest % 1_000)).padStart(3, '0')}Z`
}

function dayText(time: number): string {
  const day = Math.floor(time / dayMs)
  const known = dayTexts.get(day)
  if (known !== undefined) return known
  if (dayTexts.size >= dayTextsMax) dayTexts.clear()
  const text = new Date(day * dayMs).toISOString().slice(0, 10)
  dayTexts.set(day, text)
  return text
}

function two(number: number): string {
  return number < 10 ? `0${number}` : `${number}`
}

function offsetMs(time: number, zone: string): number {
  const offsets = listOffsets(zone)
  return (offsets.findLast(({ from }) => from <= time) ?? offsets[0] ?? assert.fail(zone)).ms
}

/** The day, and in one form the minute, in the store's zone. */
export function local(time: number, { zone, dates }: Pick<Writing, 'zone' | 'dates'>): string {
  const there = time + offsetMs(time, zone)
  const day = dayText(there)
  const minutes = Math.floor(there / 60_000) % 1_440
  switch (dates) {
    case 'YYYY-MM-DD':
      return day
    case 'YYYY-MM-DD hh:mm':
      return `${day} ${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
    case 'DD.MM.YYYY':
      return day.split('-').toReversed().join('.')
    case 'DD/MM/YYYY':
      return day.split('-').toReversed().join('/')
    case 'MM/DD/YYYY':
      return `${day.slice(5, 7)}/${day.slice(8)}/${day.slice(0, 4)}`
  }
}
