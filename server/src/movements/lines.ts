import assert from 'node:assert/strict'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import type { Movement } from './movement.ts'
import { type BookedRange, inRange } from './rows.ts'

/**
 * A line as it is exported: times are milliseconds, and amounts are text, because a million of them are written as they
 * are. `details` are what the payment's records say today. Notes change, and payers are erased, so what is there now may
 * be gone tomorrow; the rest of a line never changes.
 */
export type Line = Pick<
  Movement,
  | 'id'
  | 'type'
  | 'network'
  | 'asset'
  | 'wallet'
  | 'transaction'
  | 'place'
  | 'paymentId'
  | 'refundId'
  | 'checkoutId'
  | 'orderId'
  | 'priceAmount'
  | 'priceCurrency'
  | 'rate'
  | 'rateSource'
  | 'disposition'
  | 'value'
  | 'valueCurrency'
  | 'valueRate'
  | 'valueRateSource'
> & {
  readonly number: string
  readonly happenedAt: number
  readonly bookedAt: number
  readonly rateTime: number | null
  readonly valueRateTime: number | null
  readonly amount: string
  readonly reverses: string | null
  readonly actorType: string | null
  readonly actorId: string | null
  readonly details: Details | null
}

type Details = {
  readonly payer: string | null
  readonly recipient: string | null
  readonly description: string | null
  readonly note: string | null
}

/** The numbers of the lines of a range: those after `after`, up to `last`. */
export type Bounds = { readonly after: bigint; readonly last: bigint }

/** Lines are numbered without gaps, so this is also how many there are. */
export async function readBounds(
  db: Database,
  storeId: StoreId,
  { from, before }: BookedRange,
): Promise<Bounds> {
  const [row] = await db.query<{ first: string | null; last: string | null }>(
    `select min(m.number)::text as first, max(m.number)::text as last from movements m where ${inRange}`,
    [storeId, from, before],
  )
  const { first = null, last = null } = row ?? {}
  return first === null || last === null
    ? { after: 0n, last: 0n }
    : { after: BigInt(first) - 1n, last: BigInt(last) }
}

const ms = (column: string) => `extract(epoch from ${column}) * 1000`

/**
 * SQL: the parts of a line `m` that contain no text from outside. They arrive as one text, because a driver takes longer
 * to read thirty columns than PostgreSQL does to find them and we to write them.
 */
const parts = [
  ...[
    'm.number',
    'm.id',
    'm.type',
    ms('m.happened_at'),
    ms('m.booked_at'),
    'm.network',
    'm.asset',
    'm.amount',
  ],
  ...['m.wallet', 'm.transaction_hash', 'm.place', 'm.payment_id', 'm.refund_id', 'm.checkout_id'],
  ...['m.price_amount', 'm.price_currency', 'm.rate', 'm.rate_source', ms('m.rate_time'), 'm.reverses'],
  ...['m.actor_type', 'm.disposition', 'm.value', 'm.value_currency', 'm.value_rate', 'm.value_rate_source'],
  ms('m.value_rate_time'),
]
const separator = '|'

/** SQL: the columns of a line `m`, except its details. */
const lineColumns = `concat_ws('${separator}', ${parts.map((part) => `coalesce((${part})::text, '')`).join(', ')}) as parts,
  m.order_id as "orderId", m.actor_id as "actorId"`

type LineRow = Pick<Line, 'orderId' | 'actorId' | 'details'> & { readonly parts: string }

function toLine(row: LineRow): Line {
  const { orderId, actorId, details } = row
  const cells = row.parts.split(separator)
  assert(cells.length === parts.length, `a line has ${cells.length} parts`)
  let next = 0
  const text = () => cells[next++] ?? ''
  const optional = () => text() || null
  const time = () => Number.parseInt(text(), 10)
  const optionalTime = () => {
    const found = text()
    return found === '' ? null : Number.parseInt(found, 10)
  }
  // In the order of `parts`.
  return {
    number: text(),
    id: text() as Line['id'],
    type: text() as Line['type'],
    happenedAt: time(),
    bookedAt: time(),
    network: text(),
    asset: text(),
    amount: text(),
    wallet: optional(),
    transaction: optional(),
    place: optionalTime(),
    paymentId: text(),
    refundId: optional() as Line['refundId'],
    checkoutId: optional() as Line['checkoutId'],
    priceAmount: optional(),
    priceCurrency: optional(),
    rate: optional(),
    rateSource: optional(),
    rateTime: optionalTime(),
    reverses: optional(),
    actorType: optional(),
    disposition: optional() as Line['disposition'],
    value: optional(),
    valueCurrency: text(),
    valueRate: optional(),
    valueRateSource: optional(),
    valueRateTime: optionalTime(),
    ...{ orderId, actorId, details },
  }
}

/** SQL: `columns` and the source they come from, with details or without. */
const withoutDetails = { select: `${lineColumns}, null as details`, join: '' }
const withDetails = {
  select: `${lineColumns}, json_build_object('payer', k.payer, 'recipient', r.recipient, 'description', c.description,
    'note', n.note) as details`,
  join: `left join lateral (select payer from credits where payment_id = m.payment_id and orphaned_at is null limit 1) k on true
    left join refunds r on r.id = m.refund_id and r.store_id = m.store_id
    left join checkouts c on c.id = m.checkout_id and c.store_id = m.store_id
    left join payment_notes n on n.payment_id = m.payment_id and n.store_id = m.store_id`,
}

/**
 * The next lines after a number, up to the range's last. Numbers have no gaps, so the last number of the page is known. A
 * limit instead would let PostgreSQL sort all that is left for each page.
 */
export async function readLines(
  db: Database,
  storeId: StoreId,
  { after, last }: Bounds,
  limit: bigint,
  hasDetails: boolean,
): Promise<Line[]> {
  const { select, join } = hasDetails ? withDetails : withoutDetails
  const rows = await db.query<LineRow>(
    `select ${select} from movements m ${join}
     where m.store_id = $1 and m.number > $2 and m.number <= $3 order by m.number`,
    [storeId, after.toString(), (after + limit < last ? after + limit : last).toString()],
  )
  return rows.map(toLine)
}
