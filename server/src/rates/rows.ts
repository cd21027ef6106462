import type { Database } from '../database/db.ts'
import type { Rates, Source } from './sources.ts'

export type RateRow = {
  readonly source: string
  readonly currency: string
  readonly perBase: string
  readonly asOf: Date
}

/**
 * A change of more than a tenth, up or down. No currency that stores price in moves that far between two readings, unless
 * it is devalued. The same bound decides whether two sources agree.
 */
const isFarSql =
  'greatest(old.per_base, incoming.per_base) * 10 > least(old.per_base, incoming.per_base) * 11'
/** How long later rates are compared with the same rate. Many small steps within this time are a jump too. */
const baselineHours = 24
/** A rate older than this says too little about the next one. */
const comparedDays = 7

/** The source under which the rate before a jump is kept, with the time the jump was seen. Nothing is priced with it. */
export function jumpOf({ name }: Pick<Source, 'name'>): string {
  return `${name} before jump`
}

/**
 * The source under which the baseline is kept: rates of a day ago, or since the last jump, with which new rates are
 * compared. They stay while a currency is missing from the files. Nothing is priced with them.
 */
function baselineOf({ name }: Pick<Source, 'name'>): string {
  return `${name} baseline`
}

/**
 * Replaces a source's rates and returns the time of its newest. A file older than the stored one changes nothing. The
 * base's row is the gate: it is locked first and decides which file is newer, so two files that arrive at once do not
 * deadlock, and the newer one is stored completely. A currency that only the older one has may stay behind with its own
 * time; quotes require equal times. Rates that jumped are recorded, because one reading alone must not decide a price.
 */
export async function replaceRates(
  db: Database,
  source: Source,
  { asOf, perBase }: Rates,
  readAt: Date,
): Promise<Date> {
  const incoming = [...perBase].map(([currency, rate]) => ({ currency, per_base: rate }))
  const [row] = await db.query<{ newest: Date }>(
    `with incoming as (
       select currency, per_base from json_to_recordset($4) as entry (currency text, per_base numeric)
     ), gate as (
       insert into rates (source, currency, per_base, as_of)
       select $1::text, currency, per_base, $3::timestamptz from incoming where currency = $2
       on conflict (source, currency) do update set per_base = excluded.per_base, as_of = excluded.as_of
         where rates.as_of <= excluded.as_of
       returning source, as_of
     ), upserted as (
       insert into rates (source, currency, per_base, as_of)
       select gate.source, incoming.currency, incoming.per_base, gate.as_of
       from gate, incoming where incoming.currency <> $2
       on conflict (source, currency) do update set per_base = excluded.per_base, as_of = excluded.as_of
     ), jumped as (
       insert into rates (source, currency, per_base, as_of)
       select distinct on (old.currency) $5, old.currency, old.per_base, $6::timestamptz
       from gate join rates old on old.source in (gate.source, $7) join incoming on incoming.currency = old.currency
       where ${isFarSql} and old.as_of > $6::timestamptz - make_interval(days => ${comparedDays})
       on conflict (source, currency) do update set per_base = excluded.per_base, as_of = excluded.as_of
     ), compared as (
       insert into rates (source, currency, per_base, as_of)
       select $7, incoming.currency, incoming.per_base, $6::timestamptz
       from gate cross join incoming left join rates old on old.source = $7 and old.currency = incoming.currency
       where old.currency is null or ${isFarSql} or old.as_of < $6::timestamptz - make_interval(hours => ${baselineHours})
       on conflict (source, currency) do update set per_base = excluded.per_base, as_of = excluded.as_of
     ), deleted as (
       delete from rates using gate
       where rates.source = gate.source and rates.currency not in (select currency from incoming)
     )
     select greatest($3, max(as_of)) as newest from rates where source = $1`,
    [source.name, source.base, asOf, JSON.stringify(incoming), jumpOf(source), readAt, baselineOf(source)],
  )
  return row?.newest ?? asOf
}

/** The rates needed to price in one currency: its own and those of USD, from every source. */
export async function readRates(db: Database, currency: string): Promise<RateRow[]> {
  return await db.query<RateRow>(
    `select source, currency, per_base as "perBase", as_of as "asOf" from rates where currency in ($1, 'USD')`,
    [currency],
  )
}

export async function readAllRates(db: Database): Promise<RateRow[]> {
  return await db.query<RateRow>('select source, currency, per_base as "perBase", as_of as "asOf" from rates')
}
