/**
 * What a create pays for its event: `npm run bench:events -- --seconds 5`.
 *
 * Above the line: the server's own creating statement, which writes the checkout, the stored answer and the event. Below
 * it: the same statement without the event. Both in `pgbench`, prepared, on one server that commits to disk (fsync on),
 * turn by turn. The ratio is the median of the rounds, one checkout a statement, as a create that comes alone; beside it
 * the same with 16 a statement, as under load.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { insertCheckouts } from '../server/src/checkouts/rows.ts'
import { type Database, openDatabase } from '../server/src/db.ts'
import { migrate } from '../server/src/migrate.ts'
import { startCluster } from '../server/src/postgres.ts'

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
const execute = promisify(execFile)

const folder = await mkdtemp(join(tmpdir(), 'farthing-bench-'))
const cluster = await startCluster(folder, [
  'cluster_name=farthing_bench',
  'shared_buffers=512MB',
  'max_wal_size=4GB',
  'fsync=on',
  'synchronous_commit=on',
])
try {
  await measure()
} finally {
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
}

async function measure(): Promise<void> {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'bench' })
  const sides = { with: await prepare(admin, 'with'), without: await prepare(admin, 'without') }
  const { withEvent, withoutEvent } = await readStatements()
  const ratios = new Map<number, number[]>(batches.map((rows) => [rows, []]))
  const rates: Record<string, number[]> = {}
  for (let round = 0; round < rounds; round++) {
    for (const rows of batches) {
      const rate = { with: 0, without: 0 }
      const order = ['with', 'without'] as const
      // Whoever goes first in one round goes last in the next.
      for (const side of round % 2 === 0 ? order : order.toReversed()) {
        // However long it takes: a busy disk must not end the run.
        await sides[side].transaction((tx) => tx.script('set local statement_timeout = 0; checkpoint'))
        rate[side] = await run(side, side === 'with' ? withEvent : withoutEvent, rows, round)
        rates[`${side}${rows}`] = [...(rates[`${side}${rows}`] ?? []), rate[side]]
      }
      ratios.get(rows)?.push(rate.with / rate.without)
      process.stdout.write(
        `round ${round + 1}, ${rows} a statement: ${Math.round(rate.with * rows)} creates/s with events, ${Math.round(rate.without * rows)} without\n`,
      )
    }
  }
  await verify(sides.with, true)
  await verify(sides.without, false)
  for (const db of [admin, ...Object.values(sides)]) await db.close()
  const [single = [], batched = []] = batches.map((rows) => ratios.get(rows) ?? [])
  process.stdout.write(
    `${JSON.stringify({
      ratio: round2(median(single)),
      ratios: single.map(round2),
      ratioBatched: round2(median(batched)),
      ratiosBatched: batched.map(round2),
      createsPerSecond: Math.round(median(rates.with1 ?? [])),
      clients,
      seconds,
      rounds,
    })}\n`,
  )
}

async function prepare(admin: Database, side: string): Promise<Database> {
  await admin.query(`create database ${side}_events`)
  const db = openDatabase({ url: cluster.url(`${side}_events`), connections: 4, name: 'bench' })
  await migrate(db)
  await db.query(
    `insert into stores (id, mode, name, finality_policy, created_at) values ($1, 'live', 'Bench', '[]', now())`,
    [storeId],
  )
  return db
}

/** The statement as the server sends it, and the same with the part that writes the event cut out. */
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

/** Statements a second. Ids rise with time and end in random digits, as real ones do. */
async function run(side: string, statement: string, rows: number, round: number): Promise<number> {
  const checkout = `'id', 'ch_00' || :n::text || '-' || i, 'store_id', '${storeId}', 'revision', 1,
    'order_id', 'order-' || :n::text, 'price_amount', '12.50', 'price_currency', 'USD',
    'options', json_build_array(json_build_object('network', 'eip155:8453', 'asset', '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
      'amount', '12500000', 'payTo', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8')),
    'finality', 'included', 'created_at', now(), 'expires_at', now() + interval '1 day',
    'event_id', 'evt_00' || :n::text || '-' || i`
  const object = `json_build_object('id', 'ch_00' || :n::text || '-' || i, 'orderId', 'order-' || :n::text,
    'priceAmount', '12.50', 'priceCurrency', 'USD', 'status', 'OPEN', 'expiresAt', now(),
    'checkoutUrl', 'https://farthing.example/pay/ch_00' || :n::text, 'createdAt', now(), 'successRedirectUrl', null)`
  const input = `(select json_agg(json_build_object(${checkout}, 'event_data', json_build_object('checkout', ${object}),
    'route', 'POST /api/v1/checkouts', 'key', 'key-' || :r::text || '-' || :n::text || '-' || i,
    'body_hash', 'MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=', 'answer', ${object})) from generate_series(1, ${rows}) i)`
  const path = join(folder, `${side}-${rows}.sql`)
  const text = statement.replace('$1', input).replace('$2', "'5000'")
  // Each client counts for itself, from a start of its own that rises with the rounds.
  await writeFile(
    path,
    `\\set c :c + 1\n\\set r random(100000, 999999)\n\\set n :c * 1000 + :client_id\n${text};\n`,
  )
  const first = 1_000_000_000 * (10 * (round + 1) + batches.indexOf(rows as 1 | 16))
  const { hostname, port, username } = new URL(cluster.url(''))
  const { stdout } = await execute('pgbench', [
    ...['-n', '-M', 'prepared', '-j', '2', '-c', String(clients), '-T', String(seconds)],
    ...['-D', `c=${first}`, '-f', path, '-h', hostname, '-p', port, '-U', username, `${side}_events`],
  ])
  const rate = /^tps = ([\d.]+)/m.exec(stdout)?.[1]
  assert(rate && /failed transactions: 0 /.test(stdout), stdout)
  return Number.parseFloat(rate)
}

/** Every checkout was written, with its answer, and with its event or without. */
async function verify(db: Database, hasEvents: boolean): Promise<void> {
  const [counts] = await db.query<{ checkouts: number; events: number; answers: number }>(
    `select (select count(*) from checkouts)::int as checkouts, (select count(*) from events)::int as events,
       (select count(*) from idempotency_keys)::int as answers`,
  )
  assert(counts && counts.checkouts > 0)
  assert.deepEqual([counts.events, counts.answers], [hasEvents ? counts.checkouts : 0, counts.checkouts])
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
}

function round2(number: number): number {
  return Math.round(number * 100) / 100
}

function whole(name: string, text: string, min: number, max: number): number {
  const number = /^\d+$/.test(text) ? Number.parseInt(text, 10) : -1
  assert(number >= min && number <= max, `--${name} must be a whole number from ${min} to ${max}`)
  return number
}
