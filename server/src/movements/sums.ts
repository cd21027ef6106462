import type { Database, Transaction } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { addDays, startOf } from '../zone.ts'
import type { BookedRange } from './rows.ts'

/** What a store's books add up to, in millionths of one currency. `net` is `gross` + `refunds`. */
export type BookSums = {
  /** Payments, without those that the chain took back or another store accepted. */
  readonly gross: bigint
  /** Negative. */
  readonly refunds: bigint
  readonly net: bigint
  readonly lines: number
  /** Whether lines are left out, because they have no value in this currency. */
  readonly isPartial: boolean
}

/** The range of time of whole days in a time zone, both included. */
export function rangeOfDays(from: string, to: string, zone: string): BookedRange {
  return { from: startOf(from, zone), before: startOf(addDays(to, 1), zone) }
}

/** Adds up the quarter hours of a range, which begins and ends with whole ones. */
export async function readSums(
  db: Database | Transaction,
  storeId: StoreId,
  { from, before }: BookedRange,
  currency: string,
): Promise<BookSums> {
  const [row] = await db.query<{ gross: string; refunds: string; lines: number; isPartial: boolean }>(
    `select trunc(coalesce(sum(value) filter (where currency = $4 and type not like 'refund%'), 0) * 1000000)::text as gross,
       trunc(coalesce(sum(value) filter (where currency = $4 and type like 'refund%'), 0) * 1000000)::text as refunds,
       coalesce(sum(lines), 0)::integer as lines,
       coalesce(bool_or(currency <> $4 or unvalued <> 0), false) as "isPartial"
     from movement_quarters where store_id = $1 and starts_at >= $2 and starts_at < $3`,
    [storeId, from, before, currency],
  )
  const [gross, refunds] = [BigInt(row?.gross ?? 0), BigInt(row?.refunds ?? 0)]
  return {
    ...{ gross, refunds, net: gross + refunds },
    ...{ lines: row?.lines ?? 0, isPartial: row?.isPartial ?? false },
  }
}
