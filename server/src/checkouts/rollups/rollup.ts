import assert from 'node:assert/strict'
import type { CheckoutStatus } from '@farthing/sdk'
import { networks } from '../../networks.ts'
import type { Option } from '../checkout.ts'

/**
 * What happened in a span of time. Spans can be added: a quarter hour, a day, a month.
 *
 * A checkout counts twice. The span of its creation counts it as made, and later also as paid, expired or canceled; the
 * rest are still open. The span of its payment counts its takings. A later change subtracts the earlier count, so that
 * the figures of a span always agree with the log.
 */
export type Figures = {
  readonly made: number
  readonly paid: number
  readonly expired: number
  readonly canceled: number
  /** Takings, by token and by currency of the price. `takenKey` makes the keys. */
  readonly taken: Readonly<Record<string, Taken>>
  /** The time from creation to payment, as a histogram: bucket to count. */
  readonly times: Readonly<Record<string, number>>
}

type Taken = {
  readonly payments: number
  /** In the token's smallest unit. */
  readonly received: bigint
  /** In millionths of the price's currency, because a price has at most six decimals. */
  readonly priced: bigint
}

export const noFigures: Figures = { made: 0, paid: 0, expired: 0, canceled: 0, taken: {}, times: {} }

/** All offsets of time zones in use are whole quarter hours. */
const quarterMs = 900_000
export const pricedDecimals = 6

/** A checkout as one of its events shows it. */
export type Seen = {
  readonly status: CheckoutStatus
  readonly createdAt: Date
  /** When the event was written. For a completed checkout, that is when it was paid. */
  readonly at: Date
  readonly priceAmount: string
  readonly priceCurrency: string
  readonly options: readonly Option[]
  readonly payment: { readonly network: string; readonly asset: string; readonly amount: string } | null
}

type Share = { readonly startsAt: Date; readonly figures: Figures }

/** What a checkout in this state adds to the figures, apart from counting as made. */
export function sharesOf(seen: Seen): Share[] {
  const made = quarterOf(seen.createdAt)
  switch (seen.status) {
    case 'OPEN':
    case 'PROCESSING':
      return []
    case 'EXPIRED':
      return [{ startsAt: made, figures: { ...noFigures, expired: 1 } }]
    case 'CANCELED':
      return [{ startsAt: made, figures: { ...noFigures, canceled: 1 } }]
    case 'COMPLETED':
      return [
        { startsAt: made, figures: { ...noFigures, paid: 1 } },
        { startsAt: quarterOf(seen.at), figures: { ...noFigures, ...paymentOf(seen) } },
      ]
  }
}

function paymentOf(seen: Seen): Pick<Figures, 'taken' | 'times'> {
  const { payment, priceCurrency } = seen
  assert(payment, 'a completed checkout has no payment')
  const received = BigInt(payment.amount)
  return {
    taken: {
      [takenKey(payment.network, payment.asset, priceCurrency)]: {
        payments: 1,
        received,
        priced: pricedOf(seen, received),
      },
    },
    times: { [bucketOf(seen.at.getTime() - seen.createdAt.getTime())]: 1 },
  }
}

/** A plain transfer may exceed the price by this much, because the suffix identifies it (decision 0018). */
const tailMax = 9_999n

/**
 * The amount received, in the price's currency: the price, or the part of it that was paid. Every token counts as one
 * dollar here, so any option shows the price in tokens.
 */
function pricedOf({ priceAmount, options, payment }: Seen, received: bigint): bigint {
  const [whole = '', fraction = ''] = priceAmount.split('.')
  const price = BigInt(whole + fraction.padEnd(pricedDecimals, '0'))
  const option = options.find(({ network, asset }) => network === payment?.network && asset === payment.asset)
  const asked = BigInt((option ?? options[0])?.amount ?? received)
  const isFull = received >= asked && received - asked <= tailMax
  return isFull ? price : (price * received) / asked
}

export function takenKey(network: string, asset: string, currency: string): string {
  return `${network} ${asset} ${currency}`
}

export function parseTakenKey(key: string): { network: string; asset: string; currency: string } {
  const [network = '', asset = '', currency = ''] = key.split(' ')
  return { network, asset, currency }
}

/** The token of a key; undefined if this deployment no longer knows it. */
export function tokenOf({ network, asset }: { network: string; asset: string }) {
  return networks.find(({ caip2 }) => caip2 === network)?.assets.find(({ address }) => address === asset)
}

function quarterOf(time: Date): Date {
  return new Date(Math.floor(time.getTime() / quarterMs) * quarterMs)
}

/** `a` + `b`, or `a` − `b` to subtract what no longer holds. Zeros are left out, so that equal figures look equal. */
export function addFigures(a: Figures, b: Figures, sign: 1 | -1 = 1): Figures {
  const times: Record<string, number> = { ...a.times }
  for (const [bucket, count] of Object.entries(b.times)) {
    const sum = (times[bucket] ?? 0) + sign * count
    if (sum === 0) delete times[bucket]
    else times[bucket] = sum
  }
  const taken: Record<string, Taken> = { ...a.taken }
  for (const [key, more] of Object.entries(b.taken)) {
    const had = taken[key] ?? { payments: 0, received: 0n, priced: 0n }
    const sum = {
      payments: had.payments + sign * more.payments,
      received: had.received + BigInt(sign) * more.received,
      priced: had.priced + BigInt(sign) * more.priced,
    }
    if (sum.payments === 0 && sum.received === 0n && sum.priced === 0n) delete taken[key]
    else taken[key] = sum
  }
  return {
    made: a.made + sign * b.made,
    paid: a.paid + sign * b.paid,
    expired: a.expired + sign * b.expired,
    canceled: a.canceled + sign * b.canceled,
    taken,
    times,
  }
}

/** Figures as stored in a column. Amounts are text, because JSON numbers are exact only up to 2^53. */
export type StoredFigures = Omit<Figures, 'taken'> & {
  readonly taken: Readonly<
    Record<string, { readonly payments: number; readonly received: string; readonly priced: string }>
  >
}

export function toStored(figures: Figures): StoredFigures {
  const taken = Object.entries(figures.taken).map(([key, { payments, received, priced }]) => [
    key,
    { payments, received: received.toString(), priced: priced.toString() },
  ])
  return { ...figures, taken: Object.fromEntries(taken) }
}

export function fromStored(stored: StoredFigures): Figures {
  const taken = Object.entries(stored.taken).map(([key, { payments, received, priced }]) => [
    key,
    { payments, received: BigInt(received), priced: BigInt(priced) },
  ])
  return { ...stored, taken: Object.fromEntries(taken) }
}

/** Four buckets per doubling, from a second to the longest lifetime, so that a median is off by a tenth at most. */
export const bounds = Array.from({ length: 80 }, (_, i) => Math.round(1_000 * 2 ** (i / 4)))

/** The number of the bucket; 0 is for less than a second. */
export function bucketOf(milliseconds: number): number {
  const above = bounds.findIndex((bound) => milliseconds < bound)
  return above === -1 ? bounds.length : above
}

/** The median time, within its bucket's bounds; null if nothing was paid. */
export function medianMs(times: Figures['times']): number | null {
  const counts = Object.entries(times)
    .map(([bucket, count]) => ({ bucket: Number.parseInt(bucket, 10), count }))
    .toSorted((a, b) => a.bucket - b.bucket)
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  let before = 0
  for (const { bucket, count } of counts) {
    if (before + count >= total / 2) {
      const low = bounds[bucket - 1] ?? 0
      const high = bounds[bucket] ?? low
      // Assumes that the times in one bucket are spread evenly.
      return low + (high - low) * ((total / 2 - before) / count)
    }
    before += count
  }
  return null
}
