/**
 * The number of payments that one follower can credit: `npm run bench:follower`, or `-- --short` for blocks of 300
 * payments. With `-- --beside FOLDER` another version of Farthing reads the same blocks by turns.
 *
 * The follower runs in this process, alone, against a private PostgreSQL (fsync on) and two providers, which are two
 * proxies to one anvil. The checkouts are PROCESSING and their authorizations were sent; each block carries 2,000 of
 * them in batches of 160, mined on request. The measurement covers only the follower: reading, judging, crediting,
 * finality.
 *
 * - block: single blocks, each read as soon as it is mined, from the request for the head to the commit.
 * - safe, final: the same payments become safe, and then final, all at once, as they do on Base.
 * - catch-up: five more blocks after a pause, with their finality, until nothing is left to do.
 * - creditsPerSecond: the payments per second that one follower can handle, if each costs its share of a block, a safe
 *   and a final step.
 * - longestStepMs: the longest time during which the follower did not check for a new block.
 * Absolute figures from a busy machine are not comparable; ratios within one run are.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { median, round, say, whole } from './figures.ts'
import { blocksToSafe, mineBlock, mineEmpty, openSide, type Side } from './follower-side.ts'
import { addUse, meterSettings, readUse, subtract, type Use, watchSteal } from './meter.ts'
import { type Chain, onChain } from './pay-chain.ts'
import { cpuMs } from './pay-load.ts'
import { onStand, type Stand } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    /** The folder of another version of Farthing, with its dependencies installed. */
    beside: { type: 'string' },
    /** Payments in a block. */
    credits: { type: 'string' },
    /** Prints the statements that took PostgreSQL the longest. */
    statements: { type: 'boolean', default: false },
  },
})
const creditsPerBlock = whole('credits', options.credits ?? (options.short ? '300' : '2000'), 1, 4_000)
const blocksAlone = 3
const blocksLate = options.short ? 2 : 5
const root = new URL('..', import.meta.url).pathname

type Figures = {
  readonly credits: number
  readonly elapsedMs: number
  readonly stepsMs: readonly number[]
  readonly cpuMs: number
  readonly databaseCpuMs: number
  readonly calls: number
  readonly use: Use
}
type Phase = 'block' | 'safe' | 'final' | 'catch-up'

await onStand('1GB', (stand) => onChain((chain) => measure(chain, stand)), meterSettings)
// Sockets of the proxies may still be closing.
process.exit()

async function measure(chain: Chain, stand: Stand): Promise<void> {
  const readSteal = watchSteal()
  const loadBefore = loadavg()[0] ?? 0
  const sides = [await openSide(chain, stand, 'ours', root)]
  if (options.beside !== undefined) sides.push(await openSide(chain, stand, 'other', resolve(options.beside)))
  // Each payer pays once per block, and is funded for nine payments.
  const payers = await chain.fundedPayers(creditsPerBlock)
  await chain.ask('evm_setIntervalMining', [0])
  for (const side of sides) await side.follow()
  tell(`${payers.length} payers are funded, and the chain is read up to here`)

  const measured: { side: Side; phase: Phase; figures: Figures }[] = []
  let turn = 0
  const each = async (phase: Phase, blocks: number) => {
    for (const side of turn++ % 2 === 0 ? sides : sides.toReversed()) {
      const figures = await meter(stand, side, blocks * creditsPerBlock)
      measured.push({ side, phase, figures })
      tell(`${phase}, ${side.name}: ${blocks * creditsPerBlock} in ${Math.round(figures.elapsedMs)} ms`)
    }
  }
  for (let i = 0; i < blocksAlone; i++) {
    await mineBlock(chain, sides, payers)
    await each('block', 1)
  }
  await mineEmpty(chain, blocksToSafe)
  await each('safe', blocksAlone)
  await mineEmpty(chain, blocksToSafe)
  await each('final', blocksAlone)
  for (let i = 0; i < blocksLate; i++) await mineBlock(chain, sides, payers)
  await mineEmpty(chain, 2 * blocksToSafe)
  await each('catch-up', blocksLate)

  for (const side of sides) await judge(side, (blocksAlone + blocksLate) * creditsPerBlock)
  if (options.statements) for (const side of sides) await tellStatements(side)
  report(sides, measured, readSteal(), loadBefore)
  for (const side of sides) await side.db.close()
}

async function meter({ folder }: Stand, side: Side, credits: number): Promise<Figures> {
  const postgres = Number.parseInt(await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  const usedBefore = await readUse(side.db)
  const callsBefore = side.calls()
  const databaseBefore = cpuMs(postgres)
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  const stepsMs = await side.follow()
  const elapsedMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    credits,
    elapsedMs,
    stepsMs,
    cpuMs: (user + system) / 1_000,
    databaseCpuMs: cpuMs(postgres) - databaseBefore,
    calls: side.calls() - callsBefore,
    use: subtract(await readUse(side.db), usedBefore),
  }
}

/** Every checkout is COMPLETED by one exact, final credit, and has one event for each. */
async function judge({ name, db }: Side, expected: number): Promise<void> {
  const [row] = await db.query<Record<string, number>>(
    `select (select count(*)::int from checkouts where status = 'COMPLETED') as completed,
       (select count(*)::int from credits where disposition = 'exact' and orphaned_at is null and finalized_at is not null
         and safe_at is not null and witnessed_at is not null and announced = 'finalized') as final,
       (select count(*)::int from credits) as credits,
       (select count(*)::int from authorizations where is_credited) as credited,
       (select count(*)::int from events where type = 'checkout.completed') as told,
       (select count(*)::int from events where type = 'payment.finalized') as told_final`,
  )
  for (const [what, count] of Object.entries(row ?? {}))
    assert.equal(count, expected, `${name}: ${what} is ${count}, not ${expected}`)
}

async function tellStatements({ name, db }: Side): Promise<void> {
  const rows = await db.query<{ ms: number; calls: number; query: string }>(
    `select total_exec_time as ms, calls::int, regexp_replace(left(query, 110), '\\s+', ' ', 'g') as query
     from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database()) and toplevel
     order by total_exec_time desc limit 14`,
  )
  tell(`${name}:`)
  for (const { ms, calls, query } of rows)
    tell(`${`${Math.round(ms)} ms`.padStart(10)}${`${calls}`.padStart(7)}  ${query}`)
}

type Measured = readonly { side: Side; phase: Phase; figures: Figures }[]

function report(
  sides: readonly Side[],
  measured: Measured,
  { stealPercent, warning }: ReturnType<ReturnType<typeof watchSteal>>,
  loadBefore: number,
): void {
  if (warning) tell(warning)
  const heads = [
    'phase',
    'side',
    'credits',
    'per s',
    'ms each',
    'cpu ms',
    'database',
    'statements',
    'WAL bytes',
    'rpc',
  ]
  const rows = (['block', 'safe', 'final', 'catch-up'] as const).flatMap((phase) =>
    sides.map((side) => {
      const figures = of(measured, side, phase)
      const { credits, elapsedMs, cpuMs: own, databaseCpuMs, use, calls } = figures
      return [
        phase,
        side.name,
        credits,
        Math.round((credits * 1_000) / elapsedMs),
        ...[elapsedMs, own, databaseCpuMs].map((ms) => round(ms / credits, 3)),
        round(use.statements / credits, 4),
        Math.round(use.walBytes / credits),
        calls,
      ].map(String)
    }),
  )
  for (const row of [heads, ...rows]) say(row.map((cell) => cell.padStart(11)).join(''))
  const [ours, other] = sides.map((side) => summarize(measured, side))
  assert(ours)
  say(
    JSON.stringify({
      creditsPerBlock,
      ...ours,
      ...(other && {
        besideCreditsPerSecondRatio: round(ours.creditsPerSecond / other.creditsPerSecond, 2),
        besideCpuRatio: round(
          (ours.cpuMsPerCredit + ours.databaseCpuMsPerCredit) /
            (other.cpuMsPerCredit + other.databaseCpuMsPerCredit),
          2,
        ),
        besideWalRatio: round(ours.walBytesPerCredit / other.walBytesPerCredit, 2),
        besideLongestStepRatio: round(ours.longestStepMs / other.longestStepMs, 2),
      }),
      stealPercent,
      loadAverage: [round(loadBefore, 1), round(loadavg()[0] ?? 0, 1)],
    }),
  )
}

/** The sum of one side's measurements in a phase. */
function of(measured: Measured, side: Side, phase: Phase): Figures {
  return measured
    .filter((one) => one.side === side && one.phase === phase)
    .map(({ figures }) => figures)
    .reduce((sum, next) => ({
      credits: sum.credits + next.credits,
      elapsedMs: sum.elapsedMs + next.elapsedMs,
      stepsMs: [...sum.stepsMs, ...next.stepsMs],
      cpuMs: sum.cpuMs + next.cpuMs,
      databaseCpuMs: sum.databaseCpuMs + next.databaseCpuMs,
      calls: sum.calls + next.calls,
      use: addUse(sum.use, next.use),
    }))
}

function summarize(measured: Measured, side: Side) {
  const phases = (['block', 'safe', 'final'] as const).map((phase) => of(measured, side, phase))
  const each = (cost: (figures: Figures) => number) =>
    phases.reduce((sum, figures) => sum + cost(figures) / figures.credits, 0)
  const blocksMs = measured
    .filter((one) => one.side === side && one.phase === 'block')
    .map(({ figures }) => figures.elapsedMs)
  const late = of(measured, side, 'catch-up')
  const steps = [...phases, late].flatMap(({ stepsMs }) => stepsMs)
  return {
    creditsPerSecond: Math.round(1_000 / each(({ elapsedMs }) => elapsedMs)),
    blockMs: Math.round(median(blocksMs)),
    catchUpPerSecond: Math.round((late.credits * 1_000) / late.elapsedMs),
    longestStepMs: Math.round(Math.max(...steps)),
    cpuMsPerCredit: round(
      each((figures) => figures.cpuMs),
      3,
    ),
    databaseCpuMsPerCredit: round(
      each((figures) => figures.databaseCpuMs),
      3,
    ),
    statementsPerCredit: round(
      each(({ use }) => use.statements),
      4,
    ),
    walBytesPerCredit: Math.round(each(({ use }) => use.walBytes)),
  }
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
