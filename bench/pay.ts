/**
 * Settled payments, compared with the stock x402 packages: `npm run bench:pay`, or `-- --short` for a one-minute run.
 * With `-- --beside FOLDER` another version of Farthing takes its turn too.
 *
 * Our side is one `serve` and one `work` process on a private PostgreSQL (fsync on), settling from one key. The
 * reference (`pay-reference.ts`) keeps nothing on disk: it verifies, sends and waits for the receipt. Both settle on
 * one anvil with 2-second blocks and Base's chain id, token and domain, one after the other, and share the machine with
 * it and with the load. Payments are signed beforehand, each by its own funded payer, and count once the answer was 200
 * and the money has moved.
 *
 * - throughputRatio: payments per second at the largest number in flight, ours divided by the reference's.
 * - gasRatio: gas per payment in our batches of 25 or more, divided by that of a single transferWithAuthorization.
 * - calldataBytesPerPayment: calldata of those batches per payment; calldataRatio: divided by what Multicall3 would need
 *   for the same payments. On Base, most of the fee for L1 data is for these bytes.
 * - latencyRatio: median time of a single payment; both sides start at the same points between two blocks.
 * - rpcCallsPerPayment, cpuMsPerPayment: at the largest number in flight; cpu is user and system time of serve and
 *   work. PostgreSQL's is reported separately.
 * - walBytesPerPayment, statementsPerPayment, commitsPerPayment: PostgreSQL's work from the request until the payment
 *   is final and its events are numbered, without the checkout's creation.
 * - with another version beside: throughput, processor time (ours and PostgreSQL's), WAL and statements, each divided by
 *   the other version's.
 * Absolute figures from different runs, or from a busy machine, are not comparable; ratios within a run are.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Hex } from 'viem'
import type { Database } from '../server/src/database/db.ts'
import { median, quantile, round, say, whole } from './figures.ts'
import { addUse, meterSettings, readUse, subtract, type Use, watchSteal } from './meter.ts'
import { type Calldata, measureCalldata } from './pay-calldata.ts'
import { type Chain, onChain, type Payer, units } from './pay-chain.ts'
import { historySettler, makeHistory } from './pay-history.ts'
import { cpuMs, findChild, pay } from './pay-load.ts'
import { openOurs, openReference, type Side } from './pay-sides.ts'
import { onStand, type Stand } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    /** The folder of another version of Farthing, with its dependencies installed. */
    beside: { type: 'string' },
    /** Only one stage, with this many in flight. */
    'in-flight': { type: 'string' },
  },
})
const only = options['in-flight'] === undefined ? null : whole('in-flight', options['in-flight'], 1, 2_000)
const samples = options.short ? 6 : only ? 10 : 30
/** How many payments are in flight, how many there are in total, and how long each side may take. */
const stages = only
  ? [{ inFlight: only, payments: 3 * only, limitMs: 60_000 }]
  : options.short
    ? [
        { inFlight: 50, payments: 100, limitMs: 10_000 },
        { inFlight: 200, payments: 600, limitMs: 15_000 },
      ]
    : [
        { inFlight: 100, payments: 400, limitMs: 30_000 },
        { inFlight: 500, payments: 2_000, limitMs: 40_000 },
        { inFlight: 2_000, payments: 6_000, limitMs: 60_000 },
        { inFlight: 2_000, payments: 6_000, limitMs: 60_000 },
      ]
const warmPayments = 25
/** Copies, dated the day before, of each payment of the first warm-up. */
const historyCopies = options.short ? 100 : 400
const blockMs = 2_000
const sampleLimitMs = 20_000
const warmLimitMs = 60_000
const batchMin = 25
const singles = 5
const none: Use = { walBytes: 0, commits: 0, statements: 0 }

type Name = Side['name']
/** The results of one side in one stage, or in several. */
type Measured = {
  readonly completed: number
  readonly elapsedMs: number
  readonly latenciesMs: readonly number[]
  readonly cpuMs: number
  readonly databaseCpuMs: number
  readonly nodeCpuMs: number
  readonly calls: number
  /** Zero for the reference, which has no database. */
  readonly use: Use
}

await onStand('1GB', run, meterSettings)
// Sockets of killed processes may still be closing.
process.exit()

async function run(stand: Stand): Promise<void> {
  // Versions from before Base capped the gas of a transaction send larger batches.
  await onChain((chain) => measure(chain, stand), options.beside === undefined)
}

async function measure(chain: Chain, stand: Stand): Promise<void> {
  const readSteal = watchSteal()
  const ours = await openOurs(chain, stand)
  const other = options.beside === undefined ? null : await openOurs(chain, stand, { tree: options.beside })
  const reference = await openReference(chain, stand)
  const sides = [ours, ...(other ? [other] : []), reference]
  const perSide = samples + stages.reduce((sum, { payments }) => sum + payments + warmPayments, warmPayments)
  const payers = await chain.fundedPayers(perSide * sides.length + singles)
  const take = (count: number) => payers.splice(0, count)
  tell(`${payers.length} payers are funded`)
  for (const side of sides) await warmUp(side, take(warmPayments))
  await chain.ask('anvil_setNonce', [historySettler, `0x${(historyCopies + 1).toString(16)}`])
  for (const { db } of [ours, ...(other ? [other] : [])]) await makeHistory(db, historyCopies)
  tell(`${historyCopies * warmPayments} payments dated yesterday are in the database`)

  const latency = await measureLatency(chain, sides, take)
  const measured: { inFlight: number; name: Name; figures: Measured }[] = []
  for (const [i, stage] of stages.entries()) {
    // The order is reversed in every other stage.
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) {
      const { figures, isRestarted } = await measureStage(chain, stand, side, stage, take(stage.payments))
      measured.push({ inFlight: stage.inFlight, name: side.name, figures })
      if (isRestarted && i + 1 < stages.length) await warmUp(side, take(warmPayments))
    }
  }
  const gas = await readGas(chain, ours.db, take(singles), ours.payTo)
  await ours.db.close()
  await other?.db.close()
  const levels = [...Map.groupBy(measured, ({ inFlight }) => inFlight)].map(([inFlight, stages]) => {
    const of = (name: Name) =>
      add(stages.filter((stage) => stage.name === name).map((stage) => stage.figures))
    return { inFlight, ours: of('ours'), other: other && of('other'), reference: of('reference') }
  })
  const steal = readSteal()
  if (steal.warning) tell(steal.warning)
  report(levels, latency, gas, steal.stealPercent)
}

type Level = {
  readonly inFlight: number
  readonly ours: Measured
  readonly other: Measured | null
  readonly reference: Measured
}

function report(
  levels: readonly Level[],
  latency: Record<Name, number[]>,
  gas: Gas,
  stealPercent: number,
): void {
  const heads = [
    'in flight',
    'side',
    'paid',
    'per s',
    'p50 ms',
    'p99 ms',
    'rpc',
    'cpu ms',
    'database',
    'node',
    'statements',
    'commits',
    'WAL bytes',
  ]
  const names = (['ours', 'other', 'reference'] as const).filter((name) => levels[0]?.[name])
  const rows = [
    ...names.map((name) => ['1', name, `${samples}`, '', `${Math.round(median(latency[name]))}`]),
    ...levels.flatMap((level) =>
      names.map((name) => {
        const figures = level[name]
        return [`${level.inFlight}`, name, ...(figures ? cells(figures) : [])]
      }),
    ),
  ]
  for (const row of [heads, ...rows]) say(row.map((cell) => cell.padStart(11)).join(''))
  say(
    `gas per payment: ${gas.batched} in ${gas.batches} batches of ${batchMin} to ${gas.largest}, ${gas.single} alone`,
  )
  const top = levels.at(-1)
  assert(top)
  const { ours: mine, other, reference: theirs, inFlight } = top
  say(
    JSON.stringify({
      // If the reference completed no payment, count one.
      throughputRatio: round(perSecond(mine) / (perSecond(theirs) || 1_000 / theirs.elapsedMs), 2),
      gasRatio: round(gas.batched / gas.single, 3),
      calldataBytesPerPayment: round(gas.calldata.perPayment, 1),
      calldataRatio: round(gas.calldata.ratio, 3),
      latencyRatio: round(median(latency.ours) / median(latency.reference), 3),
      rpcCallsPerPayment: each(mine, mine.calls),
      cpuMsPerPayment: each(mine, mine.cpuMs),
      referenceRpcCallsPerPayment: each(theirs, theirs.calls),
      referenceCpuMsPerPayment: each(theirs, theirs.cpuMs),
      databaseCpuMsPerPayment: each(mine, mine.databaseCpuMs),
      walBytesPerPayment: each(mine, mine.use.walBytes),
      statementsPerPayment: each(mine, mine.use.statements),
      commitsPerPayment: each(mine, mine.use.commits),
      ...(other && {
        besideThroughputRatio: round(perSecond(mine) / perSecond(other), 2),
        besideCpuRatio: ratioOf(mine, other, ({ cpuMs, databaseCpuMs }) => cpuMs + databaseCpuMs),
        besideWalRatio: ratioOf(mine, other, ({ use }) => use.walBytes),
        besideStatementsRatio: ratioOf(mine, other, ({ use }) => use.statements),
      }),
      stealPercent,
      perSecond: perSecond(mine),
      referencePerSecond: perSecond(theirs),
      completed: mine.completed,
      referenceCompleted: theirs.completed,
      latencyMs: Math.round(median(latency.ours)),
      referenceLatencyMs: Math.round(median(latency.reference)),
      gasPerPayment: gas.batched,
      singleGas: gas.single,
      inFlight,
      samples,
    }),
  )
}

function cells(figures: Measured): string[] {
  const { completed, latenciesMs, calls, cpuMs, databaseCpuMs, nodeCpuMs, use } = figures
  return [
    completed,
    perSecond(figures),
    Math.round(median(latenciesMs)),
    Math.round(quantile(latenciesMs, 0.99)),
    ...[calls, cpuMs, databaseCpuMs, nodeCpuMs].map((total) => each(figures, total)),
    ...[use.statements, use.commits].map((total) => each(figures, total)),
    Math.round(use.walBytes / Math.max(1, completed)),
  ].map(String)
}

function perSecond({ completed, elapsedMs }: Measured): number {
  return round((completed * 1_000) / elapsedMs, 1)
}

/** A cost per payment, divided by the other version's. */
function ratioOf(mine: Measured, other: Measured, cost: (figures: Measured) => number): number {
  return round(cost(mine) / mine.completed / (cost(other) / Math.max(1, other.completed)), 2)
}

function each({ completed }: Measured, total: number): number {
  return round(total / Math.max(1, completed), 2)
}

function add(stages: readonly Measured[]): Measured {
  return stages.reduce((sum, next) => ({
    completed: sum.completed + next.completed,
    elapsedMs: sum.elapsedMs + next.elapsedMs,
    latenciesMs: [...sum.latenciesMs, ...next.latenciesMs],
    cpuMs: sum.cpuMs + next.cpuMs,
    databaseCpuMs: sum.databaseCpuMs + next.databaseCpuMs,
    nodeCpuMs: sum.nodeCpuMs + next.nodeCpuMs,
    calls: sum.calls + next.calls,
    use: addUse(sum.use, next.use),
  }))
}

/** Not measured: compiles the code, opens connections and gives the recipient its first money. */
async function warmUp(side: Side, payers: readonly Payer[]): Promise<void> {
  const { paid, answers } = await pay(await side.prepare(payers), payers.length, warmLimitMs)
  // The reference loses some of its concurrent payments, here as in the stages.
  const leastPaid = side.name === 'reference' ? 1 : payers.length
  assert(paid.length >= leastPaid, `${side.name}: ${describe(answers)}`)
}

/**
 * One payment at a time. Each sample starts at its own point between two blocks, the same point for both sides. The
 * points are spread evenly, in an order that looks random.
 */
async function measureLatency(
  chain: Chain,
  sides: readonly Side[],
  take: (count: number) => Payer[],
): Promise<Record<Name, number[]>> {
  const found: Record<Name, number[]> = { ours: [], other: [], reference: [] }
  for (let i = 0; i < samples; i++) {
    const phaseMs = ((0.5 + i * 0.618034) % 1) * blockMs
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) {
      const payments = await side.prepare(take(1))
      await waitForPhase(chain, phaseMs)
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

async function waitForPhase(chain: Chain, phaseMs: number): Promise<void> {
  if (performance.now() > chain.blocks.lastAt() + phaseMs) await chain.blocks.next()
  await wait(Math.max(0, chain.blocks.lastAt() + phaseMs - performance.now()))
}

async function measureStage(
  chain: Chain,
  { folder }: Stand,
  side: Side,
  { inFlight, limitMs }: { inFlight: number; limitMs: number },
  payers: readonly Payer[],
): Promise<{ figures: Measured; isRestarted: boolean }> {
  const payments = await side.prepare(payers)
  const useOf = () => ('db' in side ? readUse(side.db as Database) : none)
  const [postgres, anvil] = [await postmaster(folder), findChild('anvil')]
  const use = () => ({
    own: side.pids().reduce((sum, pid) => sum + cpuMs(pid), 0),
    database: cpuMs(postgres),
    node: cpuMs(anvil),
    calls: side.calls(),
  })
  const received = await chain.balance(side.payTo)
  await chain.blocks.next()
  const usedBefore = await useOf()
  const before = use()
  const load = await pay(payments, inFlight, limitMs)
  const after = use()
  const completed = await chain.countPaid(load.paid)
  assert.equal(completed, load.paid.length, `${side.name} answered 200 although the money has not moved`)
  assert((await chain.balance(side.payTo)) - received >= BigInt(completed) * units)
  const isRestarted = await side.settleDown()
  const calls = [...after.calls].map(([method, n]) => [method, n - (before.calls.get(method) ?? 0)] as const)
  const figures: Measured = {
    completed,
    elapsedMs: load.elapsedMs,
    latenciesMs: load.latenciesMs,
    cpuMs: after.own - before.own,
    databaseCpuMs: after.database - before.database,
    nodeCpuMs: after.node - before.node,
    calls: calls.reduce((sum, [, n]) => sum + n, 0),
    use: subtract(await useOf(), usedBefore),
  }
  tell(
    `${inFlight} in flight, ${side.name}: ${perSecond(figures)} per second, ${Math.round(load.elapsedMs)} ms, ` +
      `${describe(load.answers)}; ${calls.map(([method, n]) => `${method} ${n}`).join(', ')}`,
  )
  return { figures, isRestarted }
}

type Gas = { batched: number; batches: number; largest: number; single: number; calldata: Calldata }

/** The gas that our batches used on the chain, that of a single transfer, and the batches' calldata. */
async function readGas(chain: Chain, db: Database, payers: readonly Payer[], to: string): Promise<Gas> {
  const sent = await db.query<{ hash: Hex; bytes: Hex; calls: number }>(
    `select b.hash, '0x' || encode(b.bytes, 'hex') as bytes, count(*)::int as calls from broadcasts b
     join transaction_calls c on c.network = b.network and c.settler = b.settler and c.settler_nonce = b.nonce
     where b.settler <> '${historySettler}'
     group by b.hash having count(*) >= ${batchMin}`,
  )
  let gas = 0n
  let payments = 0
  for (const { hash } of sent) {
    const receipt = await chain.receipt(hash)
    gas += receipt?.gasUsed ?? 0n
    // Each payment logs AuthorizationUsed and Transfer.
    payments += (receipt?.logs ?? 0) / 2
  }
  const alone: number[] = []
  for (const payer of payers) alone.push(Number(await chain.singleGas(payer, to)))
  return {
    batched: Math.round(Number(gas) / payments),
    batches: sent.length,
    largest: Math.max(...sent.map(({ calls }) => calls)),
    single: median(alone),
    calldata: measureCalldata(sent.map(({ bytes }) => bytes)),
  }
}

async function postmaster(folder: string): Promise<number> {
  return Number.parseInt(await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
}

function describe(answers: ReadonlyMap<string, number>): string {
  return [...answers].map(([answer, count]) => `${count} x ${answer}`).join(', ')
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
