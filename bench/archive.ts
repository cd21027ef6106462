/**
 * What old checkouts cost: `npm run bench:archive -- --checkouts 10000000`, or `-- --short` for a few seconds.
 *
 * One database gets 10,000 checkouts of the last month, the other as many as asked, spread over 1,000 days, nine tenths of
 * which `work`'s mover archives, as they get old enough, while the fill goes on. Then the same work is done in both by
 * turns: checkouts are created, as `serve` does it, and paid ones are credited, completed, made final and numbered, as
 * `work` does it. Buffers and WAL are those of PostgreSQL's statements; full-page images are off, because how many there
 * are depends on when the last checkpoint was. Autovacuum is off by then: it would still be busy with the fill.
 *
 * `--straight` writes what is older than 120 days straight to the archive, as the mover would have left it (a test
 * compares), and has it move the rest: several times as fast, and with many millions the difference is hours.
 *
 * - createBuffersRatio, createWalRatio, createCpuRatio, and the same for pay: big by small. At most 1.2.
 * - hotRatio: the size of the tables that are written to at the end, divided by that in the middle of the time in which
 *   checkouts were moved.
 * - readMs: reading one archived checkout by its id: median, 99th percentile (at most 20) and slowest. `Warm` leaves out the
 *   first reads on each connection.
 * - dropWalBytes: WAL of dropping the oldest month. Less than 1 MB.
 * The exit code is 1 if one of them is missed; a short run has too few rows for ratios and does not judge those.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { archivedTables } from '../server/src/archive/archive.ts'
import { dropMonth, listMonths } from '../server/src/archive/month-rows.ts'
import { archiveEnded, firstPass } from '../server/src/archive/move.ts'
import { readCheckout } from '../server/src/checkouts/read.ts'
import { insertCheckouts, type NewCheckout } from '../server/src/checkouts/rows.ts'
import { updateStatus } from '../server/src/checkouts/update-status.ts'
import { readConfig } from '../server/src/config.ts'
import type { Context } from '../server/src/context.ts'
import { type Database, openDatabase } from '../server/src/database/db.ts'
import { assignWaitingSequences } from '../server/src/events/assign-sequence.ts'
import type { StoreId } from '../server/src/ids.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { advanceCredits } from '../server/src/payments/credits/finality-rows.ts'
import { writeCredits } from '../server/src/payments/credits/write.ts'
import { findConcerns } from '../server/src/payments/evm/rows.ts'
import { newCheckouts } from '../server/test/load/support/new-checkouts.ts'
import { median, quantile, round, say, whole } from './figures.ts'
import { fill } from './fill.ts'
import { filled } from './fill-functions.ts'
import { meterSettings, watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import { makeDatabase, onStand, type Stand, settingsFor } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    straight: { type: 'boolean', default: false },
    checkouts: { type: 'string' },
  },
})
const checkouts = whole(
  'checkouts',
  options.checkouts ?? (options.short ? '5000' : '100000'),
  1_000,
  100_000_000,
)
const checkoutsSmall = options.short ? 1_000 : 10_000
const days = 1_000
const archiveAfterDays = 90
/** The last days of the fill, of which every row goes through the tables that are written to. */
const daysHot = options.straight ? archiveAfterDays + 30 : days
/** The last of these, when there is something to move. */
const daysMoved = daysHot - archiveAfterDays
/** How many times the mover runs. Each run looks again at everything that may not move, which is a lot in a long fill. */
const moves = options.straight ? 5 : 50
const dayMs = 86_400_000
const stores = options.short ? 10 : 200
const rounds = options.short ? 1 : 10
/** As many as under load: a batch of creates, and a full block's payments. */
const createsPerBatch = 64
const paysPerBatch = 160
const batchesPerRound = options.short ? 2 : 8
const reads = options.short ? 50 : 500
/**
 * Six on each of two connections: with the first, PostgreSQL loads what it must know about the tables; with the sixth, it
 * tries a plan for all months.
 */
const readsToWarmUp = 12
const ratioMax = 1.2
const readMsMax = 20
const dropWalBytesMax = 1_000_000
/** A worker of autovacuum ends at the next page that it looks at. */
const settleMs = 60_000
const lookAgainMs = 100
const network = filled.network

type Side = {
  readonly name: 'small' | 'big'
  readonly ctx: Context
  /** One connection on which a statement may take as long as it takes. */
  readonly patient: Database
  readonly storeIds: readonly StoreId[]
}
type Cost = {
  readonly buffers: number
  readonly walBytes: number
  readonly cpuMs: number
  readonly count: number
}

const hotBytes = new Map<Side['name'], number[]>()
let block = 1_000_000_000

const settings = [
  ...meterSettings,
  'full_page_writes=off',
  'checkpoint_timeout=1h',
  'max_wal_size=4GB',
  'synchronous_commit=off',
]
/** A quarter of the memory, as PostgreSQL's manual advises. */
const sharedBuffers = `${Math.floor(totalmem() / 4 / 2 ** 20)}MB`
await onStand(options.short ? '256MB' : sharedBuffers, measure, settings)
process.exit()

async function measure(stand: Stand): Promise<void> {
  const readSteal = watchSteal()
  const startedAt = performance.now()
  const small = await open(stand, 'small', checkoutsSmall)
  const big = await open(stand, 'big', checkouts)
  const filledSeconds = (performance.now() - startedAt) / 1_000
  await settle(big.patient)

  const costs: { side: Side; what: 'create' | 'pay'; cost: Cost }[] = []
  for (let round = 0; round <= rounds; round++)
    for (const side of round % 2 === 0 ? [small, big] : [big, small]) {
      const created = await meter(stand, side, () => create(side))
      const paid = await meter(stand, side, () => pay(side))
      // The first round fills caches.
      if (round > 0) costs.push({ side, what: 'create', cost: created }, { side, what: 'pay', cost: paid })
    }
  const readMs = await readArchived(big)
  const dropWalBytes = await drop(big)

  const of = (side: Side, what: string) => {
    const some = costs.filter((one) => one.side === side && one.what === what).map(({ cost }) => cost)
    const each = (total: (cost: Cost) => number) =>
      some.reduce((sum, cost) => sum + total(cost), 0) / some.reduce((sum, { count }) => sum + count, 0)
    return {
      buffers: each(({ buffers }) => buffers),
      walBytes: each(({ walBytes }) => walBytes),
      cpuMs: each((cost) => cost.cpuMs),
    }
  }
  say(['what', 'side', 'buffers', 'WAL bytes', 'cpu ms'].map((cell) => cell.padStart(11)).join(''))
  const ratios: Record<string, number> = {}
  for (const what of ['create', 'pay'] as const) {
    const [few, many] = [of(small, what), of(big, what)]
    for (const [side, cost] of [
      ['small', few],
      ['big', many],
    ] as const)
      say(
        [what, side, round(cost.buffers, 1), Math.round(cost.walBytes), round(cost.cpuMs, 3)]
          .map((cell) => String(cell).padStart(11))
          .join(''),
      )
    ratios[`${what}BuffersRatio`] = round(many.buffers / few.buffers, 2)
    ratios[`${what}WalRatio`] = round(many.walBytes / few.walBytes, 2)
    ratios[`${what}CpuRatio`] = round(many.cpuMs / Math.max(few.cpuMs, 0.001), 2)
  }
  const { stealPercent, warning } = readSteal()
  if (warning) tell(warning)
  const sizes = grown(big)
  const slowest = round(Math.max(...readMs), 1)
  say(
    JSON.stringify({
      checkouts,
      archived: await count(big.patient, 'archived_checkouts'),
      ...ratios,
      ...sizes,
      readMs: round(median(readMs), 1),
      readMsP99: round(quantile(readMs, 0.99), 1),
      readMsMax: slowest,
      readMsP99Warm: round(quantile(readMs.slice(readsToWarmUp), 0.99), 1),
      dropWalBytes,
      filledSeconds: Math.round(filledSeconds),
      hours: round((performance.now() - startedAt) / 3_600_000, 2),
      stealPercent,
      loadAverage: round(loadavg()[0] ?? 0, 1),
    }),
  )
  const isMissed = Object.values(ratios).some((ratio) => ratio > ratioMax) || sizes.hotRatio > ratioMax
  if (dropWalBytes > dropWalBytesMax || (!options.short && (isMissed || quantile(readMs, 0.99) > readMsMax)))
    process.exitCode = 1
  for (const { ctx, patient } of [small, big]) await Promise.all([ctx.db.close(), patient.close()])
}

/** How the tables that are written to grew in the second half of the time in which the mover had something to do. */
function grown({ name }: Side): { hotBytes: number; hotRatio: number } {
  const seen = hotBytes.get(name) ?? []
  const end = seen.at(-1) ?? 0
  return { hotBytes: end, hotRatio: round(end / Math.max(1, seen[seen.length >> 1] ?? 1), 2) }
}

async function open(stand: Stand, name: Side['name'], wanted: number): Promise<Side> {
  const { url, db } = await makeDatabase(stand.cluster, name)
  const patient = openDatabase({ url, connections: 2, name: 'bench' })
  await patient.query('set statement_timeout = 0')
  const config = { ...readConfig(settingsFor(url)), archiveAfterDays }
  const ctx: Context = {
    config,
    db: openDatabase({ url, connections: 4, name: 'bench' }),
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => new Date(),
  }
  const until = new Date()
  const span = name === 'small' ? 30 : days
  const spacingMs = Math.floor((span * dayMs) / wanted)
  const chunk = Math.min(20_000, Math.ceil(wanted / 10))
  const every = Math.max(1, Math.floor((wanted * daysMoved) / days / chunk / moves))
  const sizes: number[] = []
  hotBytes.set(name, sizes)
  let turns = 0
  // Beside the fill, on connections of its own. As the mover would have, had it run at that time.
  let moving: Promise<void> = Promise.resolve()
  const daysBefore = (date: Date, count: number) => new Date(date.getTime() - count * dayMs)
  const isStraight = options.straight && name === 'big'
  const move = async (done: number) => {
    const now = daysBefore(until, (spacingMs * (wanted - done)) / dayMs)
    await archiveUpTo(ctx, now)
    await vacuum(patient)
    sizes.push(await readHotBytes(db))
  }
  const storeIds = await fill(db, {
    stores,
    checkouts: wanted,
    seed: name,
    until,
    days: span,
    chunk,
    hasRollups: false,
    ...(isStraight && { archivedBefore: daysBefore(until, daysHot) }),
    onProgress: async (done) => {
      turns++
      if (turns % 10 === 0 || done === wanted) tell(`${name}: ${done} of ${wanted} checkouts`)
      if (name === 'small' || wanted - done > (wanted * daysMoved) / days) return
      if (turns % every !== 0 && done < wanted) return
      await moving
      moving = move(done)
      if (done === wanted) await moving
    },
  })
  await vacuum(patient)
  await db.query(
    `insert into followers (network, head_number, head_time, head_seen_at, witnesses) values ($1, 0, clock(), clock(), 2)`,
    [network],
  )
  await db.close()
  return { name, ctx, patient, storeIds }
}

/** Stops the work that PostgreSQL still does in the background on what was just filled. */
async function settle(db: Database): Promise<void> {
  await db.query('alter system set autovacuum = off')
  await db.query('select pg_reload_conf()')
  const deadline = performance.now() + settleMs
  const endWorkers = `select pg_terminate_backend(pid) from pg_stat_activity where backend_type like 'autovacuum%'`
  while ((await db.query(endWorkers)).length > 0) {
    assert(performance.now() < deadline, 'autovacuum goes on')
    await wait(lookAgainMs)
  }
  await db.query('checkpoint')
}

async function archiveUpTo(ctx: Context, now: Date): Promise<void> {
  const pass = firstPass()
  while (pass.notBefore <= now) await archiveEnded(ctx, pass, now)
}

/** Vacuum runs in no transaction, so through another way than `script`. */
async function vacuum(db: Database): Promise<void> {
  for (const table of archivedTables) await db.query(`vacuum (analyze) ${table}`)
}

async function readHotBytes(db: Database): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    'select sum(pg_total_relation_size(t::regclass))::float8 as bytes from unnest($1::text[]) as t',
    [[...archivedTables]],
  )
  return row?.bytes ?? 0
}

async function meter({ folder }: Stand, { ctx: { db } }: Side, work: () => Promise<number>): Promise<Cost> {
  const postgres = Number.parseInt(await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  await db.query('create extension if not exists pg_stat_statements')
  const use = async () => {
    const [row] = await db.query<{ buffers: number; walBytes: number }>(
      `select sum(shared_blks_hit + shared_blks_read)::float8 as buffers, sum(wal_bytes)::float8 as "walBytes"
       from pg_stat_statements s join pg_database d on d.oid = s.dbid
       where d.datname = current_database() and toplevel and query !~ 'pg_stat_statements'`,
    )
    assert(row)
    return { ...row, cpuMs: cpuMs(postgres) }
  }
  const before = await use()
  const done = await work()
  const after = await use()
  return {
    buffers: after.buffers - before.buffers,
    walBytes: after.walBytes - before.walBytes,
    cpuMs: after.cpuMs - before.cpuMs,
    count: done,
  }
}

async function create({ ctx, storeIds }: Side): Promise<number> {
  for (let i = 0; i < batchesPerRound; i++) {
    const made = await insertCheckouts(ctx.db, newCheckouts(createsPerBatch, storeIds), 1_000)
    assert.equal(made.size, createsPerBatch)
  }
  return batchesPerRound * createsPerBatch
}

/** Checkouts whose payment is on its way, and what `work` does when it lands and when it is final. */
async function pay(side: Side): Promise<number> {
  const { ctx, storeIds } = side
  for (let i = 0; i < batchesPerRound; i++) {
    const paid = newCheckouts(paysPerBatch, storeIds)
    const seen = await insertSent(ctx.db, paid)
    const place = { hash: `0x${randomBytes(32).toString('hex')}`, number: ++block, time: new Date() }
    const ids = paid.map(({ checkout }) => checkout.id)
    await ctx.db.transaction(async (tx) => {
      const { found: concerns } = await findConcerns(tx, network, place.time, seen)
      assert.equal((await writeCredits(ctx, tx, network, place, concerns)).length, ids.length)
      await updateStatus(ctx, tx, ids, ctx.now())
    })
    await ctx.db.transaction(async (tx) => {
      await tx.query('update followers set finalized_number = $2, safe_number = $2 where network = $1', [
        network,
        block,
      ])
      const range = { above: block - 1, upTo: block }
      const { checkoutIds } = await advanceCredits(tx, network, { safe: block, finalized: block }, range)
      assert.equal(checkoutIds.length, ids.length)
      await updateStatus(ctx, tx, checkoutIds, ctx.now())
    })
  }
  while ((await assignWaitingSequences(ctx)) > 0);
  return batchesPerRound * paysPerBatch
}

async function insertSent(db: Database, paid: readonly NewCheckout[]) {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const seen = paid.map(({ checkout }, i) => ({
    checkout,
    asset: filled.asset,
    payer: `0x${randomBytes(20).toString('hex')}`,
    nonce: `0x${randomBytes(32).toString('hex')}`,
    to: checkout.options[0]?.payTo.toLowerCase() ?? '',
    value: BigInt(checkout.options[0]?.amount ?? '0'),
    transactionHash: hash,
    logIndex: i,
    position: 0,
  }))
  await insertCheckouts(db, paid, 1_000)
  await db.query(
    `with input as (
       select * from json_to_recordset($1) as i (id text, payer text, nonce text)
     ), moved as (
       update checkouts c set status = 'PROCESSING', version = 2 from input i where c.id = i.id
     )
     insert into authorizations (network, asset, payer, nonce, checkout_id, store_id, state, pay_to, amount, valid_after,
       valid_before, signature, claimed_at, sends)
     select $2, $3, i.payer, i.nonce, c.id, c.store_id, 'sent', $4, $5, 0, 9999999999, decode(repeat('00', 65), 'hex'), clock(), 1
     from input i join checkouts c on c.id = i.id`,
    [
      JSON.stringify(seen.map(({ checkout, payer, nonce }) => ({ id: checkout.id, payer, nonce }))),
      network,
      filled.asset,
      seen[0]?.to,
      `${seen[0]?.value}`,
    ],
  )
  return seen
}

/** Reads archived checkouts of all months by their ids. */
async function readArchived({ ctx, patient }: Side): Promise<number[]> {
  const rows = await patient.query<{ id: string; store_id: StoreId }>(
    'select id, store_id from archived_checkouts tablesample bernoulli (least(100, $1::float8)) limit $2',
    [(100 * 4 * reads) / (0.9 * checkouts), reads],
  )
  assert(rows.length > reads / 4, 'too few checkouts are in the archive')
  const tookMs: number[] = []
  for (const { id, store_id } of rows) {
    const startedAt = performance.now()
    assert.equal((await readCheckout(ctx, store_id, id)).id, id)
    tookMs.push(performance.now() - startedAt)
  }
  return tookMs
}

async function drop({ ctx: { db } }: Side): Promise<number> {
  const [oldest] = await listMonths(db)
  assert(oldest)
  const read = async () => {
    const [row] = await db.query<{ bytes: number }>(
      `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`,
    )
    return row?.bytes ?? 0
  }
  const before = await read()
  assert(await dropMonth(db, oldest.month, { isExportRequired: false }))
  const walBytes = (await read()) - before
  tell(`dropped ${oldest.month} of ${BigInt(oldest.bytes) / 1_000_000n} MB`)
  return walBytes
}

async function count(db: Database, table: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(`select count(*)::float8 as count from ${table}`)
  return row?.count ?? 0
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
