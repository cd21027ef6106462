/**
 * How fast checkouts are created compared with bare inserts in PostgreSQL: `npm run bench:create -- --seconds 5`.
 *
 * The numerator is durable creates per second over HTTP by one `serve` process, each with an API key to check, a fresh
 * Idempotency-Key, a stored answer and an event. The denominator is `pgbench` inserting the same row, and nothing else,
 * into an identical table on the same server. Both commit to disk (fsync on) and share this machine with the load
 * generator. The ratio is the median of five rounds; rates from different runs are not comparable.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import type { Database } from '../server/src/database/db.ts'
import { median, round, say, whole } from './figures.ts'
import { cpuMs } from './pay-load.ts'
import {
  makeDatabase,
  makeStore,
  onStand,
  runPgbench,
  type Server,
  type Stand,
  settingsFor,
  startServer,
} from './stand.ts'

const { values: options } = parseArgs({
  options: {
    /** Length of each measurement. A round has three: two with pgbench, one with creates. */
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '5' },
    /** `serve` processes, each with its own wrk. The headline is one. */
    serve: { type: 'string', default: '1' },
    /** Additional `work` processes, which assign sequence numbers to the events. */
    work: { type: 'string', default: '0' },
  },
})
const seconds = whole('seconds', options.seconds, 1, 60)
const rounds = whole('rounds', options.rounds, 1, 20)
const servers = whole('serve', options.serve, 1, 4)
const workers = whole('work', options.work, 0, 4)

/** All load generators together. */
const connections = 64
const warmUpSeconds = 15
const pgbenchClients = [16, 64] as const
const script = new URL('create.lua', import.meta.url).pathname
const execute = promisify(execFile)

type Load = {
  requests: number
  microseconds: number
  refused: number
  broken: number
  p50Ms: number
  p99Ms: number
}

await onStand('1GB', measure)

async function measure(stand: Stand): Promise<void> {
  const { url, db } = await makeDatabase(stand.cluster, 'farthing')
  const environment = settingsFor(url)
  const key = await makeStore(db, environment, '0x70997970C51812dc3A010C7d01b50e0d17dc79C8')
  const serving = await Promise.all(
    Array.from({ length: servers }, () => startServer(stand, 'serve', environment)),
  )
  for (let i = 0; i < workers; i++) await startServer(stand, 'work', environment)

  // Measure a server that has been up for a while, with its code compiled and its statements prepared.
  await create(serving, key, 'warm', warmUpSeconds)
  const insert = await prepareBare(db, stand.folder)
  let acknowledged = 0
  const cpu = () => [...stand.children].reduce((sum, { pid }) => sum + (pid ? cpuMs(pid) : 0), 0)
  let cpuTotalMs = 0
  const results: { bare: number; creates: number; p50Ms: number; p99Ms: number }[] = []
  for (let i = 0; i < rounds; i++) {
    const bare: number[] = []
    let load: Load | null = null
    const steps = [
      ...pgbenchClients.map((clients) => async () => {
        bare.push(await insertBare(url, insert, clients, i))
      }),
      async () => {
        const before = cpu()
        load = await create(serving, key, `r${i}`, seconds)
        cpuTotalMs += cpu() - before
      },
    ]
    // The order is reversed in every other round.
    for (const step of i % 2 === 0 ? steps : steps.toReversed()) {
      await db.query('checkpoint')
      await step()
    }
    const { requests, microseconds, p50Ms, p99Ms } = load as unknown as Load
    acknowledged += requests
    results.push({ bare: Math.max(...bare), creates: requests / (microseconds / 1e6), p50Ms, p99Ms })
    const last = results.at(-1)
    say(
      `round ${i + 1}: ${Math.round(last?.creates ?? 0)} creates/s, bare ${bare.map(Math.round).join(' and ')}/s (${pgbenchClients.join(' and ')} clients)`,
    )
  }
  await verify(db, serving, acknowledged)
  await Promise.all([...stand.children].map(stop))
  await db.close()
  say(
    JSON.stringify({
      ratio: round(median(results.map(({ creates, bare }) => creates / bare)), 2),
      ratios: results.map(({ creates, bare }) => round(creates / bare, 2)),
      createsPerSecond: Math.round(median(results.map(({ creates }) => creates))),
      barePerSecond: Math.round(median(results.map(({ bare }) => bare))),
      p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
      cpuMsPerCreate: round(cpuTotalMs / acknowledged, 3),
      serveProcesses: servers,
      workProcesses: workers,
      connections,
      seconds,
      rounds,
    }),
  )
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** Creates checkouts at full load for `length` seconds. Every answer must be a 201. */
async function create(serving: readonly Server[], key: string, run: string, length: number): Promise<Load> {
  const loads = await Promise.all(
    serving.map(async ({ address }, i): Promise<Load> => {
      const args = [
        '-t1',
        `-c${connections / serving.length}`,
        `-d${length}s`,
        // A stall of a shared disk can be longer than wrk's default of two seconds.
        '--timeout',
        '10s',
        '-s',
        script,
        address,
        '--',
        key,
        `${run}-${i}`,
      ]
      const { stdout } = await execute('wrk', args)
      return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
    }),
  )
  const total = loads.reduce((sum, load) => ({
    requests: sum.requests + load.requests,
    microseconds: Math.max(sum.microseconds, load.microseconds),
    refused: sum.refused + load.refused,
    broken: sum.broken + load.broken,
    p50Ms: Math.max(sum.p50Ms, load.p50Ms),
    p99Ms: Math.max(sum.p99Ms, load.p99Ms),
  }))
  assert.equal(total.refused, 0, 'an answer was not 2xx')
  assert.equal(total.broken, 0, 'a connection broke')
  return total
}

/**
 * Creates a table like `checkouts`, with its checks and indexes, and writes the statement that fills it. Everything but
 * the id and the order is constant in the statement; ids increase with time and end in random digits, as real ones do.
 */
async function prepareBare(db: Database, folder: string): Promise<string> {
  await db.query('create table bare (like checkouts including all)')
  const [row] = await db.query<Record<string, string | null>>(
    `select store_id, price_amount, price_currency, options::text as options, finality from checkouts limit 1`,
  )
  assert(row)
  const path = join(folder, 'bare.sql')
  await writeFile(
    path,
    `\\set n :n + 1
\\set r random(1000000000000000, 9999999999999999)
insert into bare (id, store_id, order_id, price_amount, price_currency, success_redirect_url, options, rate, finality,
  status, version, created_at, expires_at)
values ('ch_00' || :n::text || :r::text, '${row.store_id}', 'order-r0-0-' || :n::text,
  '${row.price_amount}', '${row.price_currency}', 'https://shop.example/thanks?order=r0-0-' || :n::text,
  '${row.options}', null, '${row.finality}', 'OPEN', 1, now(), now() + interval '1 day');
`,
  )
  return path
}

function insertBare(url: string, insert: string, clients: number, i: number): Promise<number> {
  // Each run starts above the previous one, so that ids keep increasing.
  const first = 1_000_000_000 * (1 + i) + 100_000_000 * pgbenchClients.indexOf(clients as 16 | 64)
  return runPgbench(url, insert, { clients, seconds, define: `n=${first}` })
}

/** Every acknowledged checkout is stored with its event and its answer, and the server answered nothing but 201. */
async function verify(db: Database, serving: readonly Server[], acknowledged: number): Promise<void> {
  const [counts] = await db.query<{ checkouts: number; events: number; answers: number }>(
    `select (select count(*) from checkouts)::int as checkouts,
            (select count(*) from events where type = 'checkout.created')::int as events,
            (select count(*) from idempotency_keys)::int as answers`,
  )
  assert(counts && counts.checkouts >= acknowledged, `${counts?.checkouts} of ${acknowledged} are stored`)
  assert.deepEqual([counts.events, counts.answers], [counts.checkouts, counts.checkouts])
  for (const { operationsPort } of serving) {
    const metrics = await (await fetch(`http://127.0.0.1:${operationsPort}/metrics`)).text()
    const statuses = [...metrics.matchAll(/request_duration_seconds_count\{.*status="(\d+)"\}/g)].map(
      ([, s]) => s,
    )
    assert.deepEqual(statuses, ['201'])
  }
}
