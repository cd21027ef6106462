/**
 * Payments settled, beside the stock x402 packages: `npm run bench:pay`, or `-- --short` for a minute's worth.
 *
 * Ours is one `serve` and one `work` process on a private PostgreSQL (fsync on), settling from one key. The reference
 * (`pay-reference.ts`) keeps nothing on disk: it verifies, sends and waits for the receipt. Both settle on one anvil
 * with 2-second blocks and the number, token and domain of Base, one after the other, and share the machine with it
 * and with the load. Payments are signed beforehand, each by a payer of its own with money, and count when the answer
 * was 200 and the money has moved.
 *
 * - throughputRatio: payments a second at the largest number in flight, ours to the reference's.
 * - gasRatio: gas a payment in our batches of 25 or more, to that of one transferWithAuthorization sent by itself.
 * - latencyRatio: median time of one payment alone; both start at the same points between two blocks.
 * - rpcCallsPerPayment, cpuMsPerPayment: at the largest number in flight; cpu is user and system time of serve and
 *   work. PostgreSQL's is given beside it.
 * Figures of different runs, or of a busy machine, cannot be compared; ratios within a run can.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Hex } from 'viem'
import type { Database } from '../server/src/db.ts'
import { startCluster } from '../server/src/postgres.ts'
import { type Chain, openChain, type Payer } from './pay-chain.ts'
import { historySettler, makeHistory } from './pay-history.ts'
import { cpuMs, findChild, pay } from './pay-load.ts'
import { killAll, openOurs, openReference, type Side } from './pay-sides.ts'

const { values: options } = parseArgs({ options: { short: { type: 'boolean', default: false } } })
const samples = options.short ? 6 : 30
/** How many are in flight, how many are paid in all, and how long each side may take for them. */
const stages = options.short
  ? [
      { inFlight: 50, payments: 100, limitMs: 10_000 },
      { inFlight: 200, payments: 600, limitMs: 10_000 },
    ]
  : [
      { inFlight: 100, payments: 400, limitMs: 30_000 },
      { inFlight: 500, payments: 2_000, limitMs: 40_000 },
      { inFlight: 2_000, payments: 6_000, limitMs: 60_000 },
    ]
const warmPayments = 25
/** Of each payment of the first warm-up, made the day before. */
const historyCopies = options.short ? 100 : 400
const blockMs = 2_000
const sampleLimitMs = 20_000
const batchMin = 25
const singles = 5

type Figures = {
  readonly completed: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMsPerPayment: number
  readonly databaseCpuMsPerPayment: number
  readonly nodeCpuMsPerPayment: number
  readonly rpcCallsPerPayment: number
}

const folder = await mkdtemp(join(tmpdir(), 'farthing-bench-'))
const cluster = await startCluster(folder, [
  'cluster_name=farthing_bench',
  'shared_buffers=1GB',
  'max_wal_size=4GB',
  'fsync=on',
  'synchronous_commit=on',
])
const chain = await openChain()
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => reject(new Error(`ended by ${signal}`)))
})
try {
  await Promise.race([measure(), interrupted])
} finally {
  killAll()
  await chain.close()
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
}
// Sockets of what was killed may still be closing.
process.exit()

async function measure(): Promise<void> {
  const ours = await openOurs(chain, cluster, folder)
  const reference = await openReference(chain)
  const perSide = samples + stages.reduce((sum, { payments }) => sum + payments + warmPayments, warmPayments)
  const payers = await chain.fundedPayers(perSide * 2 + singles + 2)
  const take = (count: number) => payers.splice(0, count)
  tell(`${payers.length} payers have money`)
  for (const side of [ours, reference]) await warmUp(side, take(warmPayments))
  await chain.ask('anvil_setNonce', [historySettler, `0x${(historyCopies + 1).toString(16)}`])
  await makeHistory(ours.db, historyCopies)
  tell(`${historyCopies * warmPayments} payments of yesterday are in the books`)

  const latency = await measureLatency([ours, reference], take)
  const table: string[][] = [
    row('1', 'ours', { p50Ms: median(latency.ours) }),
    row('1', 'reference', { p50Ms: median(latency.reference) }),
  ]
  let last: Record<Side['name'], Figures> | null = null
  for (const [i, stage] of stages.entries()) {
    const figures = new Map<Side['name'], Figures>()
    // Whoever goes first in one stage goes last in the next.
    for (const side of i % 2 === 0 ? [ours, reference] : [reference, ours]) {
      if (i > 0 && (await side.renew())) await warmUp(side, take(warmPayments))
      figures.set(side.name, await measureStage(side, stage, take(stage.payments)))
    }
    const [mine, theirs] = [figures.get('ours'), figures.get('reference')]
    assert(mine && theirs)
    last = { ours: mine, reference: theirs }
    table.push(row(`${stage.inFlight}`, 'ours', mine), row(`${stage.inFlight}`, 'reference', theirs))
  }
  const gas = await readGas(chain, ours.db, take(singles), ours.payTo)
  await ours.db.close()
  assert(last)
  report(table, latency, last, gas)
}

function report(
  table: readonly string[][],
  latency: Record<Side['name'], number[]>,
  last: Record<Side['name'], Figures>,
  gas: Gas,
): void {
  const heads = [
    'in flight',
    'side',
    'paid',
    'a second',
    'p50 ms',
    'p99 ms',
    'rpc',
    'cpu ms',
    'database',
    'node',
  ]
  for (const cells of [heads, ...table]) say(cells.map((cell) => cell.padStart(10)).join(''))
  say(
    `gas a payment: ${gas.batched} in ${gas.batches} batches of ${batchMin} to ${gas.largest}, ${gas.single} alone`,
  )
  const { ours: mine, reference: theirs } = last
  say(
    JSON.stringify({
      throughputRatio: round(mine.perSecond / theirs.perSecond, 2),
      gasRatio: round(gas.batched / gas.single, 3),
      latencyRatio: round(median(latency.ours) / median(latency.reference), 3),
      rpcCallsPerPayment: mine.rpcCallsPerPayment,
      cpuMsPerPayment: mine.cpuMsPerPayment,
      referenceRpcCallsPerPayment: theirs.rpcCallsPerPayment,
      referenceCpuMsPerPayment: theirs.cpuMsPerPayment,
      databaseCpuMsPerPayment: mine.databaseCpuMsPerPayment,
      perSecond: mine.perSecond,
      referencePerSecond: theirs.perSecond,
      completed: mine.completed,
      referenceCompleted: theirs.completed,
      latencyMs: Math.round(median(latency.ours)),
      referenceLatencyMs: Math.round(median(latency.reference)),
      gasPerPayment: gas.batched,
      singleGas: gas.single,
      inFlight: stages.at(-1)?.inFlight,
      samples,
    }),
  )
}

/** Compiles the code, opens connections, and gives the recipient its first money: not measured. */
async function warmUp(side: Side, payers: readonly Payer[]): Promise<void> {
  const { paid, answers } = await pay(await side.prepare(payers), payers.length, sampleLimitMs)
  assert.equal(paid.length, payers.length, `${side.name}: ${describe(answers)}`)
}

/**
 * One payment at a time. A sample starts at its own point between two blocks, the same for both sides: the points are
 * spread evenly, in an order that looks random.
 */
async function measureLatency(
  sides: readonly Side[],
  take: (count: number) => Payer[],
): Promise<Record<Side['name'], number[]>> {
  const found: Record<Side['name'], number[]> = { ours: [], reference: [] }
  for (let i = 0; i < samples; i++) {
    const phaseMs = ((0.5 + i * 0.618034) % 1) * blockMs
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) {
      const payments = await side.prepare(take(1))
      await waitForPhase(phaseMs)
      const { latenciesMs, answers } = await pay(payments, 1, sampleLimitMs)
      assert(latenciesMs[0] !== undefined, `${side.name}: ${describe(answers)}`)
      found[side.name].push(latenciesMs[0])
    }
    const [mine, theirs] = [found.ours.at(-1) ?? 0, found.reference.at(-1) ?? 0]
    tell(
      `alone, ${Math.round(phaseMs)} ms after a block: ours ${Math.round(mine)}, reference ${Math.round(theirs)} ms`,
    )
  }
  return found
}

async function waitForPhase(phaseMs: number): Promise<void> {
  if (performance.now() > chain.blocks.lastAt() + phaseMs) await chain.blocks.next()
  await wait(Math.max(0, chain.blocks.lastAt() + phaseMs - performance.now()))
}

async function measureStage(
  side: Side,
  { inFlight, limitMs }: { inFlight: number; limitMs: number },
  payers: readonly Payer[],
): Promise<Figures> {
  const payments = await side.prepare(payers)
  const [postgres, anvil] = [await postmaster(), findChild('anvil')]
  const use = () => ({
    own: side.pids().reduce((sum, pid) => sum + cpuMs(pid), 0),
    database: cpuMs(postgres),
    node: cpuMs(anvil),
    calls: side.calls(),
  })
  const received = await chain.balance(side.payTo)
  await chain.blocks.next()
  const before = use()
  const load = await pay(payments, inFlight, limitMs)
  const after = use()
  const completed = await chain.countPaid(load.paid)
  assert.equal(completed, load.paid.length, `${side.name} said paid, and the money has not moved`)
  assert((await chain.balance(side.payTo)) - received >= BigInt(completed))
  const each = (total: number) => round(total / Math.max(1, completed), 2)
  const calls = [...after.calls].map(([method, n]) => [method, n - (before.calls.get(method) ?? 0)] as const)
  const figures = {
    completed,
    perSecond: round((completed * 1_000) / load.elapsedMs, 1),
    p50Ms: Math.round(median(load.latenciesMs)),
    p99Ms: Math.round(quantile(load.latenciesMs, 0.99)),
    cpuMsPerPayment: each(after.own - before.own),
    databaseCpuMsPerPayment: each(after.database - before.database),
    nodeCpuMsPerPayment: each(after.node - before.node),
    rpcCallsPerPayment: each(calls.reduce((sum, [, n]) => sum + n, 0)),
  }
  tell(
    `${inFlight} in flight, ${side.name}: ${figures.perSecond} a second, ${Math.round(load.elapsedMs)} ms, ` +
      `${describe(load.answers)}; ${calls.map(([method, n]) => `${method} ${n}`).join(', ')}`,
  )
  return figures
}

type Gas = { batched: number; batches: number; largest: number; single: number }

/** What our batches used on the chain, and what a transfer alone uses. */
async function readGas(on: Chain, db: Database, payers: readonly Payer[], to: string): Promise<Gas> {
  const sent = await db.query<{ hash: Hex; calls: number }>(
    `select b.hash, count(*)::int as calls from broadcasts b
     join transaction_calls c on c.network = b.network and c.settler = b.settler and c.settler_nonce = b.nonce
     where b.settler <> '${historySettler}'
     group by b.hash having count(*) >= ${batchMin}`,
  )
  let gas = 0n
  let payments = 0
  for (const { hash } of sent) {
    const receipt = await on.receipt(hash)
    gas += receipt?.gasUsed ?? 0n
    // Each payment leaves AuthorizationUsed and Transfer.
    payments += (receipt?.logs ?? 0) / 2
  }
  const alone: number[] = []
  for (const payer of payers) alone.push(Number(await on.singleGas(payer, to)))
  return {
    batched: Math.round(Number(gas) / payments),
    batches: sent.length,
    largest: Math.max(...sent.map(({ calls }) => calls)),
    single: median(alone),
  }
}

async function postmaster(): Promise<number> {
  return Number.parseInt(await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
}

function row(inFlight: string, side: string, figures: Partial<Figures>): string[] {
  const { completed, perSecond, p50Ms, p99Ms, rpcCallsPerPayment, cpuMsPerPayment } = figures
  const numbers = [
    completed,
    perSecond,
    p50Ms && Math.round(p50Ms),
    p99Ms,
    rpcCallsPerPayment,
    cpuMsPerPayment,
  ]
  const costs = [figures.databaseCpuMsPerPayment, figures.nodeCpuMsPerPayment]
  return [
    inFlight,
    side,
    ...[...numbers, ...costs].map((number) => (number === undefined ? '' : `${number}`)),
  ]
}

function describe(answers: ReadonlyMap<string, number>): string {
  return [...answers].map(([answer, count]) => `${count} x ${answer}`).join(', ')
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
}

function quantile(numbers: readonly number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * share)] ?? 0
}

function round(number: number, digits: number): number {
  return Math.round(number * 10 ** digits) / 10 ** digits
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
