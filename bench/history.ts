/**
 * The cost of a long history: `npm run bench:history -- --checkouts 10000000`, or `-- --short` for a few seconds.
 *
 * One database gets 10,000 checkouts of the last month, the other the requested number, spread over 1,000 days. Nothing
 * is deleted. Then both do the same work in turns. Checkouts are created, as `serve` does it. Paid ones are credited,
 * completed, made final and numbered, as `work` does it. Checkouts by id, lists and the console's Home are read.
 * Buffers and WAL are those of PostgreSQL's statements. Full-page images are off, because their number depends on the
 * time since the last checkpoint. Autovacuum is off, because it would still be busy with the fill.
 *
 * For each kind of work: buffersRatio, walRatio and cpuRatio, which divide the big database's figure by the small
 * one's, and readMs of the reads in the big database. The exit code is 1 if a create or a payment touches more than 1.3
 * times the buffers, or a read more than twice; a short run has too few rows for ratios and does not judge them.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { insertCheckouts, type NewCheckout } from '../server/src/checkouts/create.ts'
import { listPayments } from '../server/src/checkouts/payments/list.ts'
import { listCheckouts, readCheckout } from '../server/src/checkouts/read.ts'
import { updateStatus } from '../server/src/checkouts/update-status.ts'
import { readConfig } from '../server/src/config/read.ts'
import type { Context } from '../server/src/context.ts'
import { type Database, openDatabase } from '../server/src/database/db.ts'
import { assignWaitingSequences } from '../server/src/events/assign-sequence.ts'
import { readHome } from '../server/src/http/console/home/routes.ts'
import type { CheckoutId, StoreId } from '../server/src/ids.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { advanceCredits } from '../server/src/payments/credits/rows.ts'
import { writeCredits } from '../server/src/payments/credits/write.ts'
import { findConcerns } from '../server/src/payments/evm/credit-blocks.ts'
import { newCheckouts } from '../server/test/load/support/new-checkouts.ts'
import { round, say, whole } from './figures.ts'
import { fill } from './fill.ts'
import { filled } from './fill-functions.ts'
import { meterSettings, watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import { makeDatabase, onStand, type Stand, settingsFor } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
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
const stores = options.short ? 10 : 200
const rounds = options.short ? 1 : 10
/** The sizes under load: a batch of creates, and a full block's payments. */
const createsPerBatch = 64
const paysPerBatch = 160
const batchesPerRound = options.short ? 2 : 8
const readsPerRound = options.short ? 20 : 100
/** A create and a payment go down a few more levels of their indexes. A list may skip rows that are no longer current. */
const ratioMax = { create: 1.3, pay: 1.3, read: 2, list: 2, home: 2 }
/** An autovacuum worker ends at the next page that it reads. */
const settleMs = 60_000
const lookAgainMs = 100
const network = filled.network

type Side = {
  readonly name: 'small' | 'big'
  readonly ctx: Context
  /** One connection without a time limit for statements. */
  readonly patient: Database
  readonly storeIds: readonly StoreId[]
  /** Checkouts drawn at random from the whole time. */
  readonly old: readonly { readonly id: CheckoutId; readonly storeId: StoreId }[]
}
type Work = keyof typeof ratioMax
type Cost = {
  readonly buffers: number
  readonly walBytes: number
  readonly cpuMs: number
  readonly ms: number
  readonly count: number
}

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

  const works: Record<Work, (side: Side) => Promise<number>> = { create, pay, read, list, home }
  const costs: { side: Side; what: Work; cost: Cost }[] = []
  for (let round = 0; round <= rounds; round++)
    for (const side of round % 2 === 0 ? [small, big] : [big, small])
      for (const what of Object.keys(works) as Work[]) {
        const cost = await meter(stand, side, () => works[what](side))
        // The first round fills caches.
        if (round > 0) costs.push({ side, what, cost })
      }

  const of = (side: Side, what: Work) => {
    const some = costs.filter((one) => one.side === side && one.what === what).map(({ cost }) => cost)
    const each = (total: (cost: Cost) => number) =>
      some.reduce((sum, cost) => sum + total(cost), 0) / some.reduce((sum, { count }) => sum + count, 0)
    return {
      buffers: round(
        each(({ buffers }) => buffers),
        1,
      ),
      walBytes: Math.round(each(({ walBytes }) => walBytes)),
      cpuMs: round(
        each((cost) => cost.cpuMs),
        3,
      ),
      ms: round(
        each(({ ms }) => ms),
        2,
      ),
    }
  }
  const row = (cells: readonly (string | number)[]) =>
    say(cells.map((cell) => `${cell}`.padStart(11)).join(''))
  row(['what', 'side', 'buffers', 'WAL bytes', 'cpu ms', 'ms'])
  const ratios: Record<string, number> = {}
  for (const what of Object.keys(works) as Work[]) {
    const [few, many] = [of(small, what), of(big, what)]
    for (const [side, { buffers, walBytes, cpuMs, ms }] of [
      ['small', few],
      ['big', many],
    ] as const)
      row([what, side, buffers, walBytes, cpuMs, ms])
    ratios[`${what}BuffersRatio`] = round(many.buffers / few.buffers, 2)
    if (few.walBytes > 0) ratios[`${what}WalRatio`] = round(many.walBytes / few.walBytes, 2)
    ratios[`${what}CpuRatio`] = round(many.cpuMs / Math.max(few.cpuMs, 0.001), 2)
    if (!options.short && many.buffers > ratioMax[what] * few.buffers) process.exitCode = 1
  }
  const { stealPercent, warning } = readSteal()
  if (warning) tell(warning)
  say(
    JSON.stringify({
      checkouts,
      databaseBytes: await readBytes(big.patient),
      ...ratios,
      filledSeconds: Math.round(filledSeconds),
      hours: round((performance.now() - startedAt) / 3_600_000, 2),
      stealPercent,
      loadAverage: round(loadavg()[0] ?? 0, 1),
    }),
  )
  for (const { ctx, patient } of [small, big]) await Promise.all([ctx.db.close(), patient.close()])
}

async function open(stand: Stand, name: Side['name'], wanted: number): Promise<Side> {
  const { url, db } = await makeDatabase(stand.cluster, name)
  const patient = openDatabase({ url, connections: 2, name: 'bench' })
  await patient.query('set statement_timeout = 0')
  const ctx: Context = {
    config: readConfig(settingsFor(url)),
    db: openDatabase({ url, connections: 4, name: 'bench' }),
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => new Date(),
  }
  let turns = 0
  const storeIds = await fill(db, {
    stores,
    checkouts: wanted,
    seed: name,
    until: new Date(),
    days: name === 'small' ? 30 : days,
    chunk: Math.min(20_000, Math.ceil(wanted / 10)),
    onProgress: (done) => {
      if (++turns % 10 === 0 || done === wanted) tell(`${name}: ${done} of ${wanted} checkouts`)
    },
  })
  await patient.query('vacuum (analyze)')
  await db.query(
    `insert into followers (network, head_number, head_time, head_seen_at, witnesses) values ($1, 0, clock(), clock(), 2)`,
    [network],
  )
  const old = await patient.query<Side['old'][number]>(
    `select id, store_id as "storeId" from checkouts tablesample bernoulli (least(100, $1::float8)) limit $2`,
    [(100 * 4 * readsPerRound) / wanted, readsPerRound],
  )
  assert(old.length > readsPerRound / 4, 'too few checkouts were drawn')
  await db.close()
  return { name, ctx, patient, storeIds, old }
}

/** Stops PostgreSQL's background work on the rows that were just written. */
async function settle(db: Database): Promise<void> {
  await db.query('alter system set autovacuum = off')
  await db.query('select pg_reload_conf()')
  const deadline = performance.now() + settleMs
  const endWorkers = `select pg_terminate_backend(pid) from pg_stat_activity where backend_type like 'autovacuum%'`
  while ((await db.query(endWorkers)).length > 0) {
    assert(performance.now() < deadline, 'autovacuum does not stop')
    await wait(lookAgainMs)
  }
  await db.query('checkpoint')
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
  const startedAt = performance.now()
  const done = await work()
  const ms = performance.now() - startedAt
  const after = await use()
  return {
    buffers: after.buffers - before.buffers,
    walBytes: after.walBytes - before.walBytes,
    cpuMs: after.cpuMs - before.cpuMs,
    ms,
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

/** Checkouts with a payment in progress, and the work that `work` does when the payment lands and when it is final. */
async function pay(side: Side): Promise<number> {
  const { ctx, storeIds } = side
  for (let i = 0; i < batchesPerRound; i++) {
    const paid = newCheckouts(paysPerBatch, storeIds)
    const seen = await insertSent(ctx.db, paid)
    const place = { hash: `0x${randomBytes(32).toString('hex')}`, number: ++block, time: new Date() }
    const ids = paid.map(({ checkout }) => checkout.id)
    await ctx.db.transaction(async (tx) => {
      const { found: concerns } = await findConcerns(tx, network, place.time, seen)
      assert.equal((await writeCredits(ctx, tx, network, place, { concerns })).length, ids.length)
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

/** Checkouts of any age, by their ids. */
async function read({ ctx, old }: Side): Promise<number> {
  for (const { id, storeId } of old) assert.equal((await readCheckout(ctx, storeId, id)).id, id)
  return old.length
}

/** A page of checkouts and one of payments, the newest and those before a checkout of any age. */
async function list({ ctx, old }: Side): Promise<number> {
  for (const { id, storeId } of old)
    for (const cursor of [null, id]) {
      await listCheckouts(ctx, storeId, { cursor, limit: 20 })
      await listPayments(ctx, storeId, { cursor: cursor?.replace('ch_', 'pay_') ?? null, limit: 20 })
    }
  return old.length * 4
}

async function home({ ctx, storeIds }: Side): Promise<number> {
  const some = storeIds.slice(0, readsPerRound)
  for (const storeId of some)
    await readHome(ctx, storeId, 'month', { endpoints: true, refunds: true, findings: true, wallets: true })
  return some.length
}

async function readBytes(db: Database): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    'select pg_database_size(current_database())::float8 as bytes',
  )
  return row?.bytes ?? 0
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
