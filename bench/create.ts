/**
 * The speed of creating checkouts, compared with bare inserts in PostgreSQL: `npm run bench:create -- --seconds 5`.
 *
 * The numerator is durable creates per second over HTTP by one `serve` process, each with an API key to check, a fresh
 * Idempotency-Key, a stored answer and an event. There are two denominators, both `pgbench` on the same server and tables
 * like ours (see create-bare.ts): for `ratio` it inserts the same three rows in one transaction, for `ratioOneRow` only
 * the checkout. All commit to disk (fsync on) and share this machine with their load generator. The ratios are medians of
 * five rounds; rates from different runs are not comparable. The goals are 1.0 and 0.7.
 *
 * `cpuMsPerCreate` is the processor time of PostgreSQL and `serve` (and `work`, if there is one) for a create, without
 * wrk, which plays the stores. `bareCpuMsPerCreate` is that of PostgreSQL and pgbench for the three rows: pgbench
 * counts because it is the database's client there. Both exclude the kernel's work outside of processes.
 */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import type { Database } from '../server/src/database/db.ts'
import { type Bare, type BareRun, bareClients, findPostgres, prepareBare, runBare } from './create-bare.ts'
import { connections, createMany, type Load } from './create-load.ts'
import { median, round, say, whole } from './figures.ts'
import { watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import {
  makeDatabase,
  makeStore,
  onStand,
  type Server,
  type Stand,
  settingsFor,
  startServer,
} from './stand.ts'

const { values: options } = parseArgs({
  options: {
    /** Length of each measurement. A round has five: four with pgbench, one with creates. */
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

/** A short run warms up for less time, too. */
const warmUpSeconds = Math.min(15, 5 * seconds)

type Ours = Load & { perSecond: number; serveMs: number; postgresMs: number }
type Round = { ours: Ours; oneRow: BareRun; threeRows: BareRun }

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
  await createMany(serving, key, 'warm', warmUpSeconds)
  const scripts = await prepareBare(db, stand.folder)
  const postgres = await findPostgres(stand.folder)
  const serveCpu = () => [...stand.children].reduce((sum, { pid }) => sum + (pid ? cpuMs(pid) : 0), 0)
  const stolen = watchSteal()
  const results: Round[] = []
  let bareRuns = 0
  for (let i = 0; i < rounds; i++) {
    const bare: Record<Bare, BareRun[]> = { oneRow: [], threeRows: [] }
    let ours: Ours | null = null
    const steps = [
      ...(['oneRow', 'threeRows'] as const).flatMap((kind) =>
        bareClients.map((clients) => async () => {
          const base = 1_000_000_000 + 100_000_000 * bareRuns++
          bare[kind].push(await runBare(stand, url, scripts[kind], { clients, seconds, base }))
        }),
      ),
      async () => {
        const before = { serve: serveCpu(), postgres: cpuMs(postgres) }
        const load = await createMany(serving, key, `r${i}`, seconds)
        ours = {
          ...load,
          perSecond: load.requests / (load.microseconds / 1e6),
          serveMs: serveCpu() - before.serve,
          postgresMs: cpuMs(postgres) - before.postgres,
        }
      },
    ]
    // The order is reversed in every other round.
    for (const step of i % 2 === 0 ? steps : steps.toReversed()) {
      await db.query('checkpoint')
      await step()
    }
    const result: Round = {
      ours: ours as unknown as Ours,
      oneRow: fastest(bare.oneRow),
      threeRows: fastest(bare.threeRows),
    }
    results.push(result)
    say(
      `round ${i + 1}: ${Math.round(result.ours.perSecond)} creates/s, bare ${Math.round(result.threeRows.perSecond)}/s with three rows, ${Math.round(result.oneRow.perSecond)}/s with one`,
    )
  }
  const { stealPercent, warning } = stolen()
  const acknowledged = sum(results, ({ ours }) => ours.requests)
  await verify(db, serving, acknowledged)
  await Promise.all([...stand.children].map(stop))
  await db.close()
  if (warning) say(warning)
  const ratios = (kind: Bare) => results.map((one) => one.ours.perSecond / one[kind].perSecond)
  const each = (ms: (one: Ours) => number) => round(sum(results, ({ ours }) => ms(ours)) / acknowledged, 3)
  say(
    JSON.stringify({
      ratio: round(median(ratios('threeRows')), 2),
      ratios: ratios('threeRows').map((ratio) => round(ratio, 2)),
      ratioOneRow: round(median(ratios('oneRow')), 2),
      ratiosOneRow: ratios('oneRow').map((ratio) => round(ratio, 2)),
      createsPerSecond: Math.round(median(results.map(({ ours }) => ours.perSecond))),
      barePerSecond: Math.round(median(results.map(({ threeRows }) => threeRows.perSecond))),
      bareOneRowPerSecond: Math.round(median(results.map(({ oneRow }) => oneRow.perSecond))),
      p50Ms: round(median(results.map(({ ours }) => ours.p50Ms)), 1),
      p99Ms: round(median(results.map(({ ours }) => ours.p99Ms)), 1),
      cpuMsPerCreate: each(({ serveMs, postgresMs }) => serveMs + postgresMs),
      serveCpuMsPerCreate: each(({ serveMs }) => serveMs),
      postgresCpuMsPerCreate: each(({ postgresMs }) => postgresMs),
      bareCpuMsPerCreate: round(
        sum(results, ({ threeRows }) => threeRows.cpuMs) /
          sum(results, ({ threeRows }) => threeRows.transactions),
        3,
      ),
      stealPercent,
      serveProcesses: servers,
      workProcesses: workers,
      connections,
      seconds,
      rounds,
    }),
  )
}

function fastest(runs: readonly BareRun[]): BareRun {
  return runs.reduce((best, run) => (run.perSecond > best.perSecond ? run : best))
}

function sum<Item>(items: readonly Item[], amount: (item: Item) => number): number {
  return items.reduce((total, item) => total + amount(item), 0)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
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
    const statuses = [...metrics.matchAll(/request_duration_seconds_count\{.*status="(\d+)"[,}]/g)].map(
      ([, s]) => s,
    )
    assert.deepEqual(statuses, ['201'])
  }
}
