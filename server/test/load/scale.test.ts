import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { blockAt, fill } from '../../../bench/fill.ts'
import { filled } from '../../../bench/fill-functions.ts'
import { cancelCheckout } from '../../src/checkouts/cancel.ts'
import {
  checkoutExists,
  deleteOldAnswers,
  insertCheckouts,
  readStoredAnswer,
} from '../../src/checkouts/create.ts'
import { expireCheckouts } from '../../src/checkouts/expire.ts'
import { readPayViews } from '../../src/checkouts/pay-view.ts'
import { listPayments } from '../../src/checkouts/payments/list.ts'
import { listCheckouts, readCheckout } from '../../src/checkouts/read.ts'
import { listProcessing } from '../../src/checkouts/update-status.ts'
import { findChangedPages, readView } from '../../src/checkouts/view.ts'
import { readConfig } from '../../src/config/read.ts'
import type { Context } from '../../src/context.ts'
import { type Database, openDatabase } from '../../src/database/db.ts'
import { migrate } from '../../src/database/migrate.ts'
import { startCluster } from '../../src/dev/postgres.ts'
import { assignWaitingSequences } from '../../src/events/assign-sequence.ts'
import { readEvents } from '../../src/events/read.ts'
import type { CheckoutId, StoreId } from '../../src/ids.ts'
import { openLog } from '../../src/log.ts'
import { openMetrics } from '../../src/metrics.ts'
import {
  advanceCredits,
  findReach,
  listOrphanedTransfers,
  listUnannounced,
} from '../../src/payments/credits/rows.ts'
import { listPerhapsDead } from '../../src/payments/evm/bury-dead.ts'
import { adoptUnmatched, forgetSpentAbove } from '../../src/payments/evm/credit-blocks.ts'
import { listClaimed, readInFlight, readSentUnits } from '../../src/payments/rows.ts'
import { claimByAmount } from '../../src/payments/transfers/match.ts'
import { listPasted } from '../../src/payments/transfers/paste.ts'
import { freeAmounts } from '../../src/payments/transfers/reserve.ts'
import { operator } from '../support/operator.ts'
import { newCheckouts } from './support/new-checkouts.ts'

/**
 * Behaviour with many rows: every statement still uses an index, and a create costs as much as on an empty database.
 * This file starts its own PostgreSQL, because checkpoints and WAL are shared by a whole server.
 */
const checkoutCount = process.env.FULL === '1' ? 1_000_000 : 200_000
const storeCount = 200
const batchRows = 32
/**
 * The first change of a page after a checkpoint writes the whole page to the WAL. Keys and order ids are random, so
 * creates hit such pages until nearly every page of their two indexes has changed once. That cost is per page and
 * checkpoint, not per create. The cost of a create itself shows only after enough creates since the checkpoint.
 */
const warmUpBatches = (checkoutCount * 0.05) / batchRows
const measuredBatches = 100
const ratioMax = 1.3
/** Buffers of 8 KB. A page of 100 events occupies about 55. */
const readBuffersMax = 150
/** A page of payments looks up the owners of unmatched ones; freeing looks at every reserved amount. */
const moreBuffers: Readonly<Record<string, number>> = {
  'list payments': 180,
  'free reserved amounts': 250,
  ...Object.fromEntries(
    ['payments', 'payments of a payer', 'unmatched payments', 'checkouts', 'checkouts by status'].map(
      (what) => [`look through ${what}`, 300],
    ),
  ),
}
/**
 * Work that may touch more buffers. Events of a rare type or actor are found by reading through the store's log until there are
 * enough. Numbering passes once over events that were numbered since the last vacuum. Forgetting answers, creating
 * checkouts and expiring those whose time has passed touch many rows.
 */
const longWorks = [
  'expire',
  'read events by type',
  'read events by actor',
  'number events',
  'forget answers',
  'create',
]
const bigTables = ['checkouts', 'events', 'idempotency_keys', 'authorizations', 'credits']

const folder = await mkdtemp(join(tmpdir(), 'farthing-scale-'))
const cluster = await startCluster(folder, [
  'cluster_name=farthing_scale',
  'shared_buffers=512MB',
  'max_wal_size=16GB',
  'checkpoint_timeout=1h',
  'autovacuum=off',
])
const opened: { end(): Promise<void> }[] = []
after(async () => {
  for (const connection of opened) await connection.end()
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
})
const now = new Date()
const metrics = openMetrics()
const big = await open('big', checkoutCount)
const empty = await open('empty', 0)

type Filled = { readonly db: Database; readonly client: pg.Client; readonly storeIds: readonly StoreId[] }

async function open(name: string, checkouts: number): Promise<Filled> {
  const admin = openDatabase({ url: cluster.url('postgres'), connections: 4, name: 'test-scale' })
  await admin.query(`create database ${name}`)
  await admin.close()
  const db = openDatabase({ url: cluster.url(name), connections: 4, name: 'test-scale' })
  await migrate(db)
  const storeIds = await fill(db, {
    stores: storeCount,
    checkouts,
    seed: 'scale',
    until: now,
    answersHours: 30 * 24,
  })
  const client = new pg.Client({ connectionString: cluster.url(name) })
  await client.connect()
  await client.query('vacuum analyze')
  opened.push(client, { end: () => db.close() })
  return { db, client, storeIds }
}

test('a create costs about as many buffers and bytes of WAL on a big table as on an empty one', async (t) => {
  const before = await measureCreates(empty)
  const after = await measureCreates(big)
  t.diagnostic(`with no checkouts stored: ${JSON.stringify(before)}`)
  t.diagnostic(`with ${checkoutCount} stored: ${JSON.stringify(after)}`)
  const ratios = {
    buffers: after.warm.buffers / before.warm.buffers,
    wal: after.warm.walBytes / before.warm.walBytes,
  }
  t.diagnostic(`ratios: buffers ${ratios.buffers.toFixed(2)}, WAL ${ratios.wal.toFixed(2)}`)
  assert(ratios.buffers <= ratioMax && ratios.wal <= ratioMax, JSON.stringify(ratios))
})

test('every statement uses an index, and reads touch few buffers beyond the rows they return', async () => {
  // Includes the events that the creates above left to be numbered.
  await big.client.query('analyze')
  for (const [work, run] of Object.entries(works(await someCheckout()))) {
    for (const statement of await overhear(run)) {
      for (const mode of ['force_custom_plan', 'force_generic_plan']) {
        const plan = await explain(statement, mode)
        const scanned = nodesOf(plan).filter(
          (node) => node['Node Type'] === 'Seq Scan' && bigTables.includes(node['Relation Name'] ?? ''),
        )
        assert.deepEqual(scanned, [], `${work}, ${mode}`)
        if (!longWorks.includes(work))
          assert(
            buffersOf(plan) <= (moreBuffers[work] ?? readBuffersMax),
            `${work}, ${mode}: ${buffersOf(plan)}`,
          )
      }
    }
  }
})

type Known = {
  readonly id: CheckoutId
  readonly storeId: StoreId
  readonly orderId: string
  readonly key: string
  readonly transaction: string
}

async function someCheckout(): Promise<Known> {
  const { rows } = await big.client.query(
    `select c.id, c.store_id as "storeId", c.order_id as "orderId", k.key,
       (select p.transaction_hash from credits p where p.store_id = c.store_id limit 1) as transaction
     from checkouts c join idempotency_keys k on k.resource_id = c.id
     where c.status = 'OPEN' and c.expires_at > clock() + interval '1 hour' limit 1`,
  )
  return rows[0]
}

/** Everything that stores, payers and the worker do with the big tables, by name. */
function works({
  id,
  storeId,
  orderId,
  key,
  transaction,
}: Known): Record<string, (ctx: Context) => Promise<unknown>> {
  const page = { limit: 20 }
  const payments = { limit: 20 }
  const log = { after: null, type: null, checkoutId: null, actor: null, limit: 100 }
  const monthAgo = new Date(now.getTime() - 20 * 86_400_000)
  const route = 'POST /api/v1/checkouts'
  const { network, asset, oftenBy } = filled
  const head = { time: now, number: blockAt(now) }
  // Nothing matches, so that a page reads as much as it may.
  const rare = { network: 'eip155:1', minAmount: '1' }
  const dear = { priceCurrency: 'USD', minPrice: '1000000' }
  return {
    create: ({ db }) => insertCheckouts(db, newCheckouts(batchRows, big.storeIds), 1_000),
    'answer a repeat': ({ db }) => readStoredAnswer(db, storeId, route, key),
    'find the row just created': ({ db }) => checkoutExists(db, id),
    'read by id': ({ db }) => readPayViews(db, [{ checkoutId: id, payment: null }]),
    'read by store and id': (ctx) => readCheckout(ctx, storeId, id),
    list: (ctx) => listCheckouts(ctx, storeId, page),
    'list from a cursor': (ctx) => listCheckouts(ctx, storeId, { ...page, cursor: id }),
    'list by status': (ctx) => listCheckouts(ctx, storeId, { ...page, status: 'OPEN' }),
    'list by order': (ctx) => listCheckouts(ctx, storeId, { ...page, orderId }),
    'list by status and order': (ctx) => listCheckouts(ctx, storeId, { ...page, status: 'OPEN', orderId }),
    'list by time': (ctx) =>
      listCheckouts(ctx, storeId, {
        ...page,
        createdFrom: monthAgo,
        createdBefore: new Date(monthAgo.getTime() + 86_400_000),
      }),
    cancel: (ctx) => cancelCheckout(ctx, storeId, operator, id, now),
    'read events': (ctx) => readEvents(ctx, storeId, log),
    'read events from a cursor': (ctx) => readEvents(ctx, storeId, { ...log, after: '1-500' }),
    'read events by actor': (ctx) => readEvents(ctx, storeId, { ...log, actor: 'nobody' }),
    'read events by type': (ctx) => readEvents(ctx, storeId, { ...log, type: 'checkout.canceled' }),
    'read events of a checkout': (ctx) => readEvents(ctx, storeId, { ...log, checkoutId: id }),
    'number events': (ctx) => assignWaitingSequences(ctx),
    expire: (ctx) => expireCheckouts(ctx, now),
    review: ({ db }) => listProcessing(db, '', 500),
    'list payments that wait for a lane': ({ db }) => listClaimed(db, network, now, 150),
    'sum what a payer has in flight': ({ db }) => readInFlight(db, network, asset, oftenBy),
    'sum what payers have sent': ({ db }) => readSentUnits(db, network, [asset], [oftenBy]),
    'list payments that may be dead': ({ db }) => listPerhapsDead(db, network, head, 200),
    'forget nonces spent in orphaned blocks': ({ db }) =>
      db.transaction((tx) => forgetSpentAbove(tx, network, head.number)),
    'advance finality': ({ db }) =>
      db.transaction((tx) =>
        advanceCredits(
          tx,
          network,
          { safe: head.number, finalized: head.number },
          { above: -1, upTo: head.number },
        ),
      ),
    'find how far finality reaches in one step': ({ db }) =>
      findReach(db, network, { above: -1, upTo: head.number }, 10),
    'match credits with later claims': ({ db }) => db.transaction((tx) => adoptUnmatched(tx, network)),
    'list unannounced credits': ({ db }) => db.transaction((tx) => listUnannounced(tx, network)),
    'list payments': (ctx) => listPayments(ctx, storeId, payments),
    'list payments of a checkout': (ctx) => listPayments(ctx, storeId, { ...payments, checkoutId: id }),
    'list payments by disposition': (ctx) =>
      listPayments(ctx, storeId, { ...payments, disposition: 'unmatched' }),
    'list payments by payer': (ctx) => listPayments(ctx, storeId, { ...payments, payer: oftenBy }),
    'list payments by transaction': (ctx) => listPayments(ctx, storeId, { ...payments, transaction }),
    'look through payments': (ctx) => listPayments(ctx, storeId, { ...payments, ...rare }),
    'look through payments of a payer': (ctx) =>
      listPayments(ctx, storeId, { ...payments, ...rare, payer: oftenBy, disposition: 'late' }),
    'look through unmatched payments': (ctx) =>
      listPayments(ctx, storeId, { ...payments, ...rare, disposition: 'unmatched', createdFrom: monthAgo }),
    'look through checkouts': (ctx) => listCheckouts(ctx, storeId, { ...page, ...dear }),
    'look through checkouts by status': (ctx) =>
      listCheckouts(ctx, storeId, { ...page, ...dear, status: 'COMPLETED', createdBefore: monthAgo }),
    'claim transfers by amount': ({ db }) => db.transaction((tx) => claimByAmount(tx, network, 'x%')),
    'list transfers in orphaned blocks': ({ db }) => listOrphanedTransfers(db, network, 30, 50),
    'list pasted transactions': ({ db }) => listPasted(db, network, 30, 3, 20),
    'free reserved amounts': freeAmounts,
    'find changed pages': ({ db }) => findChangedPages(db, [{ checkoutId: id, stamp: '' }]),
    'read a page': (ctx) => readView(ctx, id),
    'forget answers': ({ db }) => deleteOldAnswers(db, 24 * 29, 100),
  }
}

/** Runs some work and returns the statements that it sent. */
async function overhear(work: (ctx: Context) => Promise<unknown>): Promise<Statement[]> {
  const statements: Statement[] = []
  const note = (text: string, values: readonly unknown[] = []) => void statements.push({ text, values })
  const db: Database = {
    ...big.db,
    query: (text, values) => {
      note(text, values)
      return big.db.query(text, values)
    },
    transaction: (inner) =>
      big.db.transaction((tx) =>
        inner({
          ...tx,
          query: (text, values) => {
            note(text, values)
            return tx.query(text, values)
          },
        }),
      ),
  }
  const config = readConfig({ DATABASE_URL: cluster.url('big'), BASE_URL: 'https://farthing.example' })
  await work({ config, db, log: openLog('silent'), metrics, now: () => now })
  return statements
}

/** Runs a statement with a plan for these values (custom) or with one for any values (generic), and returns the plan. */
async function explain({ text, values }: Statement, mode: string): Promise<PlanNode> {
  await big.client.query(`set plan_cache_mode = ${mode}`)
  await big.client.query(`prepare explained as ${text}`)
  const execute = `execute explained ${values.length > 0 ? `(${values.map(literal).join(', ')})` : ''}`
  // Run it to count its buffers, then roll back.
  await big.client.query('begin')
  const { rows } = await big.client.query(`explain (analyze, buffers, format json) ${execute}`)
  await big.client.query('rollback')
  await big.client.query('deallocate explained')
  return rows[0]['QUERY PLAN'][0].Plan
}

function literal(value: unknown): string {
  if (value === null) return 'null'
  if (value instanceof Date) return pg.escapeLiteral(value.toISOString())
  if (Array.isArray(value))
    return pg.escapeLiteral(`{${value.map((item) => JSON.stringify(item)).join(',')}}`)
  assert(['string', 'number', 'bigint'].includes(typeof value))
  return pg.escapeLiteral(String(value))
}

function buffersOf(node: PlanNode): number {
  return (node['Shared Hit Blocks'] ?? 0) + (node['Shared Read Blocks'] ?? 0)
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

async function measureCreates({ db, client, storeIds }: Filled) {
  await client.query('checkpoint')
  const cold = await explainCreates(client, storeIds, 1)
  for (let i = 0; i < warmUpBatches; i++) {
    const made = await insertCheckouts(db, newCheckouts(batchRows, storeIds), 1_000)
    assert.equal(made.size, batchRows, 'what is measured writes nothing')
  }
  return { cold, warm: await explainCreates(client, storeIds, measuredBatches) }
}

async function explainCreates(client: pg.Client, storeIds: readonly StoreId[], batches: number) {
  const total = { buffers: 0, walBytes: 0, fullPages: 0 }
  for (let i = 0; i < batches; i++) {
    const [create] = await capture((db) => insertCheckouts(db, newCheckouts(batchRows, storeIds), 1_000))
    assert(create)
    const { rows } = await client.query(
      `explain (analyze, buffers, wal, timing off, format json) ${create.text}`,
      [...create.values],
    )
    const plan: PlanNode = rows[0]['QUERY PLAN'][0].Plan
    // No other node reads the event's insert, so it runs after the rest of the plan and is not in its totals.
    for (const node of [
      plan,
      ...(plan.Plans ?? []).filter((child) => child['Subplan Name'] === 'CTE told'),
    ]) {
      total.buffers += buffersOf(node)
      total.walBytes += node['WAL Bytes'] ?? 0
      total.fullPages += node['WAL FPI'] ?? 0
    }
  }
  const each = (sum: number) => Math.round((10 * sum) / (batches * batchRows)) / 10
  return { buffers: each(total.buffers), walBytes: each(total.walBytes), fullPages: each(total.fullPages) }
}

type PlanNode = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Subplan Name'?: string
  readonly 'Shared Hit Blocks'?: number
  readonly 'Shared Read Blocks'?: number
  readonly 'WAL Bytes'?: number
  readonly 'WAL FPI'?: number
  readonly Plans?: readonly PlanNode[]
}

type Statement = { readonly text: string; readonly values: readonly unknown[] }

/** The statements that some work would send, without running them. */
async function capture(work: (db: Database) => Promise<unknown>): Promise<Statement[]> {
  const statements: Statement[] = []
  const query = async (text: string, values: readonly unknown[] = []) => {
    statements.push({ text, values })
    return []
  }
  await work({ ...big.db, query })
  return statements
}
