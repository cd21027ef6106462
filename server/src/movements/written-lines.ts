import assert from 'node:assert/strict'
import { toShown } from '../chains/families.ts'
import type { Database } from '../database/db.ts'
import type { StoreId } from '../ids.ts'
import { listOffsets } from '../zone.ts'
import { tokenOf } from './fields.ts'
import { type StandardField, standardFields } from './formats.ts'
import type { Bounds } from './lines.ts'

/**
 * The API's own formats, written by PostgreSQL: a page of lines arrives as one text that only has to be passed on. A
 * million lines that are made here instead leave hundreds of megabytes of garbage and take four times as long. The bytes
 * are those of `openWriter(standard)` and `toWire` (`server/test/movements/written-lines.test.ts`).
 *
 * What PostgreSQL cannot know comes as parameters: how addresses and tokens are shown, and the zone's clock, which is
 * the runtime's everywhere.
 */

const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** $6 has the moments at which an offset begins, without the first one, and $7 all offsets. */
const day = (column: string) =>
  `to_char(${column} at time zone 'UTC' + ($7::interval[])[1 + width_bucket(${column}, $6::timestamptz[])], 'YYYY-MM-DD')`

/** The white space of JavaScript, because that of PostgreSQL depends on the database's locale. */
const space = String.raw`\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff`

/** `withoutFormula`. The longest match is the only one that it could find. */
const withoutFormula = (text: string) =>
  String.raw`regexp_replace(${text}, '(^|[;,\t\r\n|])[${space}]*(?=[-=+@\t\r\uff1d\uff0b\uff0d\uff20])', '\&''', 'g')`

/** `csvCell(withoutFormula(…), ',')`. What most ids look like is neither a formula nor quoted. */
const csvText = (text: string) =>
  String.raw`case when ${text} ~ '^[0-9A-Za-z][-0-9A-Za-z_.:#/ ]*$' then ${text}
    when ${text} ~ '[",;|\t\r\n]' then '"' || replace(${withoutFormula(text)}, '"', '""') || '"'
    else ${withoutFormula(text)} end`

const inUnits = 'm.amount * t.unit'

const csvColumns: Readonly<Record<StandardField, string>> = {
  number: 'm.number',
  id: 'm.id',
  type: 'm.type',
  happened_at: utc('m.happened_at'),
  happened_on: day('m.happened_at'),
  booked_at: utc('m.booked_at'),
  booked_on: day('m.booked_at'),
  order_id: csvText('m.order_id'),
  checkout_id: 'm.checkout_id',
  payment_id: 'm.payment_id',
  refund_id: 'm.refund_id',
  disposition: 'm.disposition',
  price_amount: 'm.price_amount',
  price_currency: 'm.price_currency',
  rate: 'm.rate',
  rate_source: 'm.rate_source',
  rate_time: utc('m.rate_time'),
  token: 't.symbol',
  network: 'm.network',
  amount: `round(${inUnits}, greatest(min_scale(${inUnits}), t.places))`,
  value: 'm.value',
  value_currency: 'm.value_currency',
  value_rate: 'm.value_rate',
  value_rate_source: 'm.value_rate_source',
  value_rate_time: utc('m.value_rate_time'),
  wallet: 'w.shown',
  transaction: 'm.transaction_hash',
  log_index: 'm.place',
  reverses: 'm.reverses',
  decided_by: csvText(`(m.actor_type || ' ' || coalesce(m.actor_id, 'null'))`),
}

/** `concat` writes nothing for null. */
const csvLine = `concat(${standardFields.map((field) => csvColumns[field]).join(`, ',', `)}, E'\\r\\n')`

/** `row_to_json` writes neither spaces nor anything else that `JSON.stringify` does not, in the order of the columns. */
const jsonObject = (columns: string) => `(select row_to_json(j) from (select ${columns}) j)`

const jsonLine = `${jsonObject(`m.id, m.number, m.type, ${utc('m.happened_at')} as "happenedAt",
  ${utc('m.booked_at')} as "bookedAt", m.network, t.shown as asset, m.amount::text as amount, w.shown as wallet,
  m.transaction_hash as transaction, m.place as "logIndex", m.payment_id as "paymentId", m.refund_id as "refundId",
  m.checkout_id as "checkoutId", m.order_id as "orderId", m.disposition, m.price_amount as "priceAmount",
  m.price_currency as "priceCurrency", m.rate, m.rate_source as "rateSource", ${utc('m.rate_time')} as "rateTime",
  m.value::text as value, m.value_currency as "valueCurrency", m.value_rate::text as "valueRate",
  m.value_rate_source as "valueRateSource", ${utc('m.value_rate_time')} as "valueRateTime", m.reverses,
  case when m.actor_type is not null and m.actor_id is not null
    then ${jsonObject('m.actor_type as type, m.actor_id as id')} end as "decidedBy"`)}::text || E'\\n'`

/** SQL: the lines `m` of a store ($1) after a number ($2) up to another ($3), with what is known of tokens and wallets. */
const source = `movements m
  left join json_to_recordset($4) as t (network text, asset text, shown text, symbol text, unit numeric, places integer)
    on t.network = m.network and t.asset = m.asset
  left join json_to_recordset($5) as w (network text, wallet text, shown text)
    on w.network = m.network and w.wallet = m.wallet
  where m.store_id = $1 and m.number > $2 and m.number <= $3`

const lineOf = { csv: csvLine, ndjson: jsonLine }
export type WrittenForm = keyof typeof lineOf

/** SQL: each line as a text of its own, in order. */
export const selectLines = (form: WrittenForm) =>
  `select ${lineOf[form]} as line from ${source} order by m.number`

/**
 * The zone's parameters are of CSV only, but each has a type in both. The lines are in order as they come: sorting them
 * in the aggregate would take as long as writing them.
 */
const selectPage = (form: WrittenForm) => `select string_agg(l.line, '') as text, count(*)::integer as lines,
    array_agg(distinct l.token) filter (where l.token is not null) as "newTokens",
    array_agg(distinct l.wallet) filter (where l.wallet is not null) as "newWallets"
  from (select ${lineOf[form]} as line,
      case when t.asset is null then m.network || ' ' || m.asset end as token,
      case when w.wallet is null then m.network || ' ' || m.wallet end as wallet
    from ${source} and $6::timestamptz[] is not null and $7::interval[] is not null order by m.number) l`

const pages = { csv: selectPage('csv'), ndjson: selectPage('ndjson') }

type Page = {
  readonly text: string | null
  readonly lines: number
  readonly newTokens: readonly string[] | null
  readonly newWallets: readonly string[] | null
}

/** What a page needs to be told, which grows as new tokens and wallets appear. A store has few of both. */
type Known = { readonly tokens: Set<string>; readonly wallets: Set<string> }

/** Reads page after page of a store's lines as text. */
export function openWrittenLines(
  form: WrittenForm,
  zone: string,
): (db: Database, storeId: StoreId, bounds: Bounds) => Promise<() => string> {
  const known: Known = { tokens: new Set(), wallets: new Set() }
  const clock = clockOf(zone)
  const read = async (db: Database, storeId: StoreId, bounds: Bounds) => {
    const parameters = [...parametersOf(storeId, bounds, known), ...clock]
    const [page = assert.fail('no page')] = await db.query<Page>(pages[form], parameters)
    return page
  }
  return async (db, storeId, bounds) => {
    let page = await read(db, storeId, bounds)
    if (page.newTokens !== null || page.newWallets !== null) {
      for (const token of page.newTokens ?? []) known.tokens.add(token)
      for (const wallet of page.newWallets ?? []) known.wallets.add(wallet)
      page = await read(db, storeId, bounds)
    }
    assert(page.newTokens === null && page.newWallets === null, 'a token or wallet is still unknown')
    assert(BigInt(page.lines) === bounds.last - bounds.after, `${page.lines} lines after ${bounds.after}`)
    return () => page.text ?? ''
  }
}

/** $1 to $5. */
export function parametersOf(
  storeId: string,
  { after, last }: Bounds,
  { tokens, wallets }: Known,
): readonly string[] {
  const shownTokens = [...tokens].map((key) => {
    const [network, asset] = split(key)
    const { symbol, decimals } = tokenOf({ network, asset })
    const unit = decimals === 0 ? '1' : `0.${'1'.padStart(decimals, '0')}`
    return { network, asset, shown: toShown(network, asset), symbol, unit, places: Math.min(2, decimals) }
  })
  const shownWallets = [...wallets].map((key) => {
    const [network, wallet] = split(key)
    return { network, wallet, shown: toShown(network, wallet) }
  })
  return [
    ...[storeId, after.toString(), last.toString()],
    ...[JSON.stringify(shownTokens), JSON.stringify(shownWallets)],
  ]
}

/** $6 and $7, as PostgreSQL writes arrays. */
export function clockOf(zone: string): readonly string[] {
  const offsets = listOffsets(zone)
  const changes = offsets.slice(1).map(({ from }) => new Date(from).toISOString())
  return [`{${changes}}`, `{${offsets.map(({ ms }) => `${ms / 1_000}s`)}}`]
}

/** CAIP-2 has no space. */
function split(key: string): [network: string, address: string] {
  const at = key.indexOf(' ')
  return [key.slice(0, at), key.slice(at + 1)]
}
