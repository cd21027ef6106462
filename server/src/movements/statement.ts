import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { localTime } from '../zone.ts'
import type { MovementType } from './movement.ts'
import { type BookedRange, listQuarterSums, type QuarterSum } from './rows.ts'

/**
 * A month on one page: what the books say about it, with the receipts that were given in it. The sums of a closed month
 * never change. Receipts become void later, and what waits for the store is as of now.
 */

/** Sums of lines of one type and one token. Values are in millionths of the currency. */
export type TypeSum = Omit<QuarterSum, 'startsAt'>

/** A wallet's money in one token, as the books know it. */
export type WalletSum = {
  readonly wallet: string
  readonly network: string
  readonly asset: string
  readonly opening: bigint
  readonly received: bigint
  /** Of payments, not of refunds: negative. */
  readonly reversed: bigint
  /** Negative. */
  readonly refunded: bigint
  readonly closing: bigint
}

export type DaySum = {
  readonly day: string
  readonly currency: string
  readonly payments: number
  /** In millionths of the currency. */
  readonly gross: bigint
  /** Negative. */
  readonly refunds: bigint
}

const cameIn: readonly MovementType[] = ['payment', 'payment_reversed', 'payment_ceded']
const wentBack: readonly MovementType[] = ['refund', 'refund_reversed', 'refund_declared']

/** The sums of a range by type and token, and by day and currency. */
export async function readDaySums(
  db: Database,
  storeId: StoreId,
  range: BookedRange,
  zone: string,
): Promise<{ readonly types: readonly TypeSum[]; readonly days: readonly DaySum[] }> {
  const quarters = await listQuarterSums(db, storeId, range)
  const types = new Map<string, TypeSum>()
  const days = new Map<string, DaySum>()
  for (const { startsAt, ...sum } of quarters) {
    const key = JSON.stringify([sum.type, sum.network, sum.asset, sum.currency])
    const had = types.get(key)
    types.set(key, had ? addTypes(had, sum) : sum)
    const { day } = localTime(startsAt, zone)
    const dayKey = `${day} ${sum.currency}`
    days.set(dayKey, addDay(days.get(dayKey) ?? { ...nothing, day, currency: sum.currency }, sum))
  }
  const inOrder = [...days.values()].toSorted((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
  return { types: [...types.values()], days: inOrder }
}

const nothing = { payments: 0, gross: 0n, refunds: 0n }

function addTypes(a: TypeSum, b: TypeSum): TypeSum {
  return {
    ...a,
    lines: a.lines + b.lines,
    amount: a.amount + b.amount,
    value: a.value + b.value,
    unvalued: a.unvalued + b.unvalued,
  }
}

function addDay(day: DaySum, { type, lines, value }: TypeSum): DaySum {
  const isIn = cameIn.includes(type)
  return {
    ...day,
    payments: day.payments + (type === 'payment' ? lines : isIn ? -lines : 0),
    gross: day.gross + (isIn ? value : 0n),
    refunds: day.refunds + (wentBack.includes(type) ? value : 0n),
  }
}

export type Totals = {
  readonly currency: string
  readonly payments: number
  readonly gross: bigint
  readonly refunds: bigint
  readonly net: bigint
}

/** One for each currency that the store reported in within the range, usually one. */
export function totalsOf(days: readonly DaySum[]): Totals[] {
  const byCurrency = Map.groupBy(days, ({ currency }) => currency)
  return [...byCurrency].map(([currency, sums]) => {
    const add = (pick: (sum: DaySum) => bigint) => sums.reduce((sum, each) => sum + pick(each), 0n)
    const [gross, refunds] = [add((sum) => sum.gross), add((sum) => sum.refunds)]
    const payments = sums.reduce((sum, each) => sum + each.payments, 0)
    return { currency, payments, gross, refunds, net: gross + refunds }
  })
}

/** What had moved by the beginning and by the end of the range, which are beginnings of quarter hours. */
export async function readWallets(
  db: Database,
  storeId: StoreId,
  { from, before }: BookedRange,
): Promise<WalletSum[]> {
  const until = (
    time: string,
  ) => `select received, reversed, refunded from movement_balances b where b.store_id = $1
    and b.wallet = w.wallet and b.network = w.network and b.asset = w.asset and b.starts_at < ${time}
    order by b.starts_at desc limit 1`
  const rows = await db.query<
    Record<'wallet' | 'network' | 'asset' | 'opening' | 'received' | 'reversed' | 'refunded', string>
  >(
    `with recursive wallets as (
       (select wallet, network, asset from movement_balances where store_id = $1 order by wallet, network, asset limit 1)
       union all
       select n.* from wallets w cross join lateral (select b.wallet, b.network, b.asset from movement_balances b
         where b.store_id = $1 and (b.wallet, b.network, b.asset) > (w.wallet, w.network, w.asset)
         order by b.wallet, b.network, b.asset limit 1) n
     )
     select w.*, coalesce(o.received + o.reversed + o.refunded, 0)::text as opening,
       (c.received - coalesce(o.received, 0))::text as received, (c.reversed - coalesce(o.reversed, 0))::text as reversed,
       (c.refunded - coalesce(o.refunded, 0))::text as refunded
     from wallets w cross join lateral (${until('$3')}) c left join lateral (${until('$2')}) o on true
     order by w.wallet, w.network, w.asset`,
    [storeId, from, before],
  )
  return rows.map(({ wallet, network, asset, ...sums }) => {
    const [opening, received] = [BigInt(sums.opening), BigInt(sums.received)]
    const [reversed, refunded] = [BigInt(sums.reversed), BigInt(sums.refunded)]
    const closing = opening + received + reversed + refunded
    return { wallet, network, asset, opening, received, reversed, refunded, closing }
  })
}

/** The receipts of one series and year that were given in a range of days. Their numbers have no gaps. */
export type ReceiptRun = {
  readonly series: string
  readonly year: number
  readonly first: number
  readonly last: number
  readonly count: number
  /** Those of them that are void now. */
  readonly void: readonly number[]
}

/** More void receipts than this are counted, but not named. */
const voidMax = 200

export async function readReceipts(
  db: Database,
  storeId: StoreId,
  days: { readonly from: string; readonly to: string },
): Promise<ReceiptRun[]> {
  return await db.query<ReceiptRun>(
    `select series, year, min(number) as first, max(number) as last, count(*)::integer as count,
       coalesce((array_agg(number order by number) filter (where void_at is not null))[1:${voidMax}], '{}') as void
     from buyer_receipts r where store_id = $1 and issued_on between $2 and $3
       and (series, year) in (select n.series, n.year from buyer_receipt_counters n
         where n.store_id = $1 and n.year between extract(year from $2::date) and extract(year from $3::date))
     group by series, year order by min(issued_at)`,
    [storeId, days.from, days.to],
  )
}

/** An invoice that was paid in the range. */
export type PaidInvoice = {
  readonly number: string
  readonly linkId: string
  readonly paidAt: Date
  readonly priceAmount: string
  readonly priceCurrency: string
}

const invoicesMax = 1_000

/** The first of them. Whether an invoice counts as paid can change; the lines of its payment cannot. */
export async function listPaidInvoices(
  db: Database,
  storeId: StoreId,
  { from, before }: BookedRange,
): Promise<PaidInvoice[]> {
  return await db.query<PaidInvoice>(
    `select invoice_number as number, id as "linkId", paid_at as "paidAt", price_amount as "priceAmount",
       price_currency as "priceCurrency"
     from links where store_id = $1 and invoice_number is not null and paid_at >= $2 and paid_at < $3
     order by paid_at limit ${invoicesMax}`,
    [storeId, from, before],
  )
}
