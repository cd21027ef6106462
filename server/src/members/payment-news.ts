import { parseDecimal, unitsToText } from '../money.ts'
import { networks } from '../networks.ts'
import { localTime } from '../zone.ts'

/** What a store's log says about payments, and the sentences that members are mailed about it. */

/** A payment that completed no checkout: somebody decides about it. */
export const undecidedTypes = [
  'payment.late',
  'payment.underpaid',
  'payment.overpaid',
  'payment.unmatched',
] as const
/** The others are a payment that completed its checkout, and one that the chain took back. */
export const newsTypes = ['checkout.completed', ...undecidedTypes, 'payment.reversed'] as const
type NewsType = (typeof newsTypes)[number]

export type NewsRow = {
  readonly sequence: string
  readonly type: NewsType
  readonly at: Date
  readonly checkoutId: string | null
  /** Null in an event about a completed checkout. */
  readonly paymentId: string | null
  readonly orderId: string | null
  readonly priceAmount: string | null
  readonly priceCurrency: string | null
  readonly network: string | null
  readonly asset: string | null
  readonly amount: string | null
  /** The checkout was completed by a payment that a member accepted: that one was told when it arrived. */
  readonly isAccepted: boolean
}

/**
 * Which rows tell of something that no earlier row told of. After a reorganisation of the chain, the log has the same
 * payment again. `seen` remembers what was told, and changes.
 */
export function pickNews(rows: readonly NewsRow[], seen: Set<string>): NewsRow[] {
  return rows.filter((row) => {
    const { type, checkoutId, paymentId } = row
    const key =
      type === 'checkout.completed'
        ? `paid ${checkoutId}`
        : `${type === 'payment.reversed' ? 'gone' : 'odd'} ${paymentId}`
    const isNew = !seen.has(key)
    seen.add(key)
    // Another payment may complete the checkout now.
    if (type === 'payment.reversed') seen.delete(`paid ${checkoutId}`)
    return isNew
  })
}

/** Sums of news, which can be added up page by page. */
export type Sums = {
  /** By currency, in millionths: a price has at most six decimals. */
  readonly paid: Map<string, { count: number; amount: bigint }>
  undecided: number
  reversed: number
  /** The first lines of the mail. */
  readonly lines: string[]
  count: number
}

export function noSums(): Sums {
  return { paid: new Map(), undecided: 0, reversed: 0, lines: [], count: 0 }
}

/** The rest is only counted. */
const linesMax = 20
const priceDecimals = 6

export function addNews(sums: Sums, news: readonly NewsRow[], zone: string): void {
  for (const row of news) {
    sums.count++
    if (sums.lines.length < linesMax) sums.lines.push(`${showTime(row.at, zone)}  ${sentenceOf(row)}`)
    if (row.type === 'payment.reversed') sums.reversed++
    else if (row.type !== 'checkout.completed') sums.undecided++
    else if (row.priceAmount !== null && row.priceCurrency !== null) {
      const sum = sums.paid.get(row.priceCurrency) ?? { count: 0, amount: 0n }
      const { coefficient, scale } = parseDecimal(row.priceAmount)
      sums.paid.set(row.priceCurrency, {
        count: sum.count + 1,
        amount: sum.amount + coefficient * 10n ** BigInt(priceDecimals - scale),
      })
    }
  }
}

const needs = 'It needs a decision.'

/** One sentence about one payment, without a word that could be a link or a line of its own. */
export function sentenceOf(row: NewsRow): string {
  const order = nameOrder(row)
  const received = showReceived(row)
  switch (row.type) {
    case 'checkout.completed':
      return `${showPrice(row.priceAmount ?? '0', row.priceCurrency ?? 'USD')} paid for ${order}`
    case 'payment.late':
      return `${received} arrived too late for ${order}. ${needs}`
    case 'payment.underpaid':
      return `${received} arrived, too little for ${order}. ${needs}`
    case 'payment.overpaid':
      return `${received} arrived, too much for ${order}. ${needs}`
    case 'payment.unmatched':
      return `${received} arrived for no known order. ${needs}`
    case 'payment.reversed':
      return `${received} for ${order} is gone: the blockchain took the payment back`
  }
}

/** What was paid, and what needs somebody, one fact per line. */
export function summaryOf({ paid, undecided, reversed, lines, count }: Sums): string {
  const sums = [...paid].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const orders = sums.reduce((total, [, each]) => total + each.count, 0)
  const amounts = sums.map(([currency, { amount }]) =>
    showPrice(unitsToText(amount, priceDecimals), currency),
  )
  return [
    ...(orders > 0
      ? [`${orders} ${orders === 1 ? 'order was' : 'orders were'} paid: ${amounts.join(' and ')}.`]
      : ['No order was paid.']),
    ...(undecided > 0
      ? [
          `${undecided} ${undecided === 1 ? 'payment' : 'payments'} arrived late, short, too high or for no order.`,
        ]
      : []),
    ...(reversed > 0
      ? [`The blockchain took back ${reversed} ${reversed === 1 ? 'payment' : 'payments'}.`]
      : []),
    '',
    ...lines,
    ...(count > lines.length ? [`and ${count - lines.length} more`] : []),
  ].join('\n')
}

/**
 * A store chooses its orders' names, and may take them from strangers. A mail shows only names that can be no sentence,
 * no link and no trick with the direction of text; the checkout's id stands for the others.
 */
const plainName = /^[\p{L}\p{N}_#-]{1,40}$/u

export function nameOrder({ orderId, checkoutId }: Pick<NewsRow, 'orderId' | 'checkoutId'>): string {
  if (orderId !== null && plainName.test(orderId)) return `order “${orderId}”`
  return checkoutId === null ? 'an unknown order' : `checkout ${checkoutId}`
}

function showReceived({ network, asset, amount }: NewsRow): string {
  const on = networks.find(({ caip2 }) => caip2 === network)
  const token = on?.assets.find(({ address }) => address === asset)
  return token && amount !== null
    ? `${unitsToText(BigInt(amount), token.decimals)} ${token.symbol}`
    : 'A payment'
}

function showPrice(amount: string, currency: string): string {
  const format = new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    currencyDisplay: 'code',
    maximumFractionDigits: priceDecimals,
  })
  return format.format(amount as `${number}`).replaceAll(/\s/g, ' ')
}

function showTime(at: Date, zone: string): string {
  const { day, minutes } = localTime(at, zone)
  const two = (part: number) => `${part}`.padStart(2, '0')
  return `${day} ${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
}

/** Where a member sees the payment. */
export function pathOf({ type, checkoutId }: NewsRow): string {
  return type === 'checkout.completed' ? `checkouts/${checkoutId}` : 'inbox'
}
