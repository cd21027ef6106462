/**
 * The cost of a create's event: `npm run bench:events -- --seconds 5`.
 *
 * The numerator is the server's own statement, which writes the checkout, the stored answer and the event; the
 * denominator is the same statement without the event. Both run in `pgbench`, prepared, in turns, on one server that
 * commits to disk (fsync on). The ratio is the median of the rounds with one checkout per statement, as for a single
 * create; a second ratio has 16 checkouts per statement, as under load.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { insertCheckouts } from '../server/src/checkouts/create.ts'
import type { Database } from '../server/src/database/db.ts'
import type { Cluster } from '../server/src/dev/postgres.ts'
import { median, round, say, whole } from './figures.ts'
import { makeDatabase, onStand, runPgbench, type Stand } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    /** Length of each measurement. A round has four. */
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
  },
})
const seconds = whole('seconds', options.seconds, 1, 60)
const rounds = whole('rounds', options.rounds, 1, 20)
const clients = 16
const batches = [1, 16] as const
const storeId = `st_00${'1'.repeat(26)}`

await onStand('512MB', measure)

async function measure({ cluster, folder }: Stand): Promise<void> {
  const sides = { with: await prepare(cluster, 'with'), without: await prepare(cluster, 'without') }
  const { withEvent, withoutEvent } = await readStatements()
  const ratios = new Map<number, number[]>(batches.map((rows) => [rows, []]))
  const rates: Record<string, number[]> = {}
  for (let i = 0; i < rounds; i++) {
    for (const rows of batches) {
      const rate = { with: 0, without: 0 }
      const order = ['with', 'without'] as const
      // The order is reversed in every other round.
      for (const side of i % 2 === 0 ? order : order.toReversed()) {
        // Without a time-out: a busy disk must not abort the run.
        await sides[side].db.transaction((tx) => tx.script('set local statement_timeout = 0; checkpoint'))
        const path = join(folder, `${side}-${rows}.sql`)
        await writeFile(path, scriptOf(side === 'with' ? withEvent : withoutEvent, rows))
        // Each client has its own counter, which starts higher in every round.
        const define = `c=${1_000_000_000 * (10 * (i + 1) + batches.indexOf(rows))}`
        rate[side] = (await runPgbench(sides[side].url, path, { clients, seconds, define })).perSecond
        rates[`${side}${rows}`] = [...(rates[`${side}${rows}`] ?? []), rate[side]]
      }
      ratios.get(rows)?.push(rate.with / rate.without)
      say(
        `round ${i + 1}, ${rows} per statement: ${Math.round(rate.with * rows)} creates/s with events, ${Math.round(rate.without * rows)} without`,
      )
    }
  }
  await verify(sides.with.db, true)
  await verify(sides.without.db, false)
  for (const { db } of Object.values(sides)) await db.close()
  const [single = [], batched = []] = batches.map((rows) => ratios.get(rows) ?? [])
  say(
    JSON.stringify({
      ratio: round(median(single), 2),
      ratios: single.map((ratio) => round(ratio, 2)),
      ratioBatched: round(median(batched), 2),
      ratiosBatched: batched.map((ratio) => round(ratio, 2)),
      createsPerSecond: Math.round(median(rates.with1 ?? [])),
      clients,
      seconds,
      rounds,
    }),
  )
}

async function prepare(cluster: Cluster, side: string): Promise<{ url: string; db: Database }> {
  const { url, db } = await makeDatabase(cluster, `${side}_events`)
  await db.query(
    `insert into stores (id, mode, name, finality_policy, created_at) values ($1, 'live', 'Bench', '[]', now())`,
    [storeId],
  )
  return { url, db }
}

/** The statement as the server sends it, and the same statement without the part that writes the event. */
async function readStatements(): Promise<{ withEvent: string; withoutEvent: string }> {
  let withEvent = ''
  const listener = {
    query: async (text: string) => {
      withEvent = text
      return []
    },
  }
  await insertCheckouts(listener as unknown as Database, [], 0)
  const withoutEvent = withEvent.replace(/, told as \(\s*insert into events[\s\S]*?\n {5}\)/, '')
  assert(/insert into events/.test(withEvent) && !/insert into events/.test(withoutEvent), withoutEvent)
  return { withEvent, withoutEvent }
}

/**
 * The statement for `pgbench`, with an expression in place of each parameter. Ids increase with time and end in random
 * digits, as real ones do.
 */
function scriptOf(statement: string, rows: number): string {
  const id = `'ch_00' || :n::text || '-' || i`
  const values: Readonly<Record<string, string>> = {
    id,
    store_id: `'${storeId}'`,
    revision: `'1'`,
    order_id: `'order-' || :n::text`,
    price_amount: `'12.50'`,
    price_currency: `'USD'`,
    options: `json_build_array(json_build_object('network', 'eip155:8453', 'asset',
      '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'amount', '12500000',
      'payTo', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'))::text`,
    finality: `'included'`,
    created_at: 'now()::text',
    expires_at: `(now() + interval '1 day')::text`,
    event_id: `'evt_00' || :n::text || '-' || i`,
    route: `'POST /api/v1/checkouts'`,
    key: `'key-' || :r::text || '-' || :n::text || '-' || i`,
    body_hash: `'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE='`,
    answer: `json_build_object('id', ${id}, 'orderId', 'order-' || :n::text, 'priceAmount', '12.50',
      'priceCurrency', 'USD', 'status', 'OPEN', 'expiresAt', now(),
      'checkoutUrl', 'https://farthing.example/pay/ch_00' || :n::text, 'createdAt', now(), 'successRedirectUrl', null)::text`,
  }
  const [, names = ''] = / as i \(([^)]*)\)/.exec(statement) ?? []
  const parameters = names.split(', ').map((name) => {
    // Columns that are not listed are null; an empty text means null.
    return `(select string_agg(${values[name] ?? "''"}, E'\\x1f') from generate_series(1, ${rows}) i)`
  })
  const text = statement
    // pgbench would read it as one of its variables.
    .replace(':null', ': null')
    .replace(/\$(\d+)/g, (_, n) => parameters[Number.parseInt(n, 10) - 1] ?? "'5000'")
  return `\\set c :c + 1\n\\set r random(100000, 999999)\n\\set n :c * 1000 + :client_id\n${text};\n`
}

/** Every checkout was written with its answer, and with or without its event. */
async function verify(db: Database, hasEvents: boolean): Promise<void> {
  const [counts] = await db.query<{ checkouts: number; events: number; answers: number }>(
    `select (select count(*) from checkouts)::int as checkouts, (select count(*) from events)::int as events,
       (select count(*) from idempotency_keys)::int as answers`,
  )
  assert(counts && counts.checkouts > 0)
  assert.deepEqual([counts.events, counts.answers], [hasEvents ? counts.checkouts : 0, counts.checkouts])
}
