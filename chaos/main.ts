/**
 * Injects faults into a deployment under load, then checks the invariants: `npm run chaos`. Options:
 *
 *   --short           90 seconds of all faults, for every commit; with `--plan liar`, 20 seconds of lies; with
 *                     `--plan cell`, two episodes; with `--plan solana`, one episode of each kind
 *   --seconds N       how long to inject faults (default 300)
 *   --seed N          repeats the same faults and buyers in the same order; their timing depends on the machine
 *   --plan A,B        only these kinds of fault; `failover`, `upgrade`, `restore` and `liar` run only if named here
 *   --providers N     for the plans `liar` and `solana`, which run alone: 2, 3 or 4 (default: by the seed)
 *   --episodes N      for the plan `liar`: ends after about N lies instead of after a time; for the plan `solana`: after
 *                     N faults; for the plan `cell`, which runs alone too: how many kills (default 20)
 *   --points REGEXP   for the plan `points`: only crash points whose names match
 *   --after FOLDER    first arm the crash points that the runs stored there reached least often
 *   --together        all kinds of fault all the time; by default they take turns
 *   --buyers N        default 50; with `--plan cell` 10 in each cell, or 5 if it is short; with `--plan solana` 12
 *   --out FOLDER      where the result and the plot are stored
 *
 * The last line is JSON. The exit code is 1 if an invariant is broken, or if the run did too little to prove anything.
 *
 * Words used here: a plan is a kind of fault; the stand is the deployment under test with its database, chain, nodes
 * and buyers; the fleet is its processes, each of them a member; an injector repeats one plan's faults; the tally
 * counts what the harness did.
 */
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { strikeCells } from './harness/cells.ts'
import { complaintsOf, countsOf, unwanted } from './harness/counts.ts'
import { type Fault, faults, type Plan, plans } from './harness/faults.ts'
import { compareTimes } from './harness/lies.ts'
import { armable, commonPoints } from './harness/points.ts'
import { type Random, seededRandom } from './harness/random.ts'
import { isCounted, keep, type Result, readKept, type Second, toLine, toTable } from './harness/report.ts'
import { openStand, type Stand } from './harness/stand.ts'
import { openTally, type Tally } from './harness/tally.ts'
import { strikeSolana } from './svm/plan.ts'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    seconds: { type: 'string' },
    seed: { type: 'string' },
    plan: { type: 'string' },
    providers: { type: 'string' },
    episodes: { type: 'string' },
    points: { type: 'string', default: '' },
    after: { type: 'string' },
    together: { type: 'boolean', default: false },
    buyers: { type: 'string' },
    out: { type: 'string', default: 'chaos/results' },
  },
})
const isLiar = values.plan === 'liar'
const isCell = values.plan === 'cell'
const isSolana = values.plan === 'solana'
const buyers = Number.parseInt(values.buyers ?? (isCell ? (values.short ? '5' : '10') : '50'), 10)
const episodesMax = values.episodes ? Number.parseInt(values.episodes, 10) : Infinity
/** Longer than any number of lies takes. */
const secondsOfEpisodes = '86400'
const seconds = Number.parseInt(
  values.seconds ??
    (values.episodes ? secondsOfEpisodes : values.short ? (isLiar ? '20' : isSolana ? '25' : '90') : '300'),
  10,
)
const seed = Number.parseInt(values.seed ?? `${Date.now() % 1_000_000}`, 10)
const chosen: readonly Plan[] = values.plan ? (values.plan.split(',') as Plan[]) : plans
/** A run with fewer completed payments per second than this proves little. */
const paymentsPerSecondMin = 0.5
/** The same for refunds. There are fewer, because each waits until its payment is finalized. */
const refundsPerSecondMin = 0.02

/** Long enough for payments to get through between two faults of a kind. */
const phaseMsMax = 15_000
const injectorsPerTurn = 3
/** These plans have a single injector, so one fault at a time. */
const lonePlans: readonly Plan[] = ['failover', 'upgrade', 'restore', 'liar']
/** The gate runs a plan with every fourth commit and takes the commits' number as the seed, so all get their turns. */
const providers = ['a', 'b', 'c', 'd'].slice(
  0,
  Number.parseInt(values.providers ?? `${2 + (Math.floor(seed / 4) % 3)}`, 10),
)
/** How much slower honest payers may be while one of more than two providers lies. */
const slowdownMax = 3
/** With fewer payments than this, a 99th percentile says nothing. */
const samplesMin = 100
/** The longest time until payments must get through again after one of two providers has lied. */
const recoveryMsMax = 30_000

/** The names under which each plan's faults are counted. */
const traces: Readonly<Record<Plan, RegExp>> = {
  kills: /^kill -9/,
  points: /^crash /,
  database: /^PostgreSQL killed/,
  disk: /^disk full/,
  node: /^RPC faults/,
  chain: /^reorganisation/,
  freeze: /^freeze/,
  skew: /^clock skew/,
  failover: /^failover/,
  upgrade: /^rolled/,
  restore: /^restore/,
  liar: /^lie: /,
}

if (isCell) await playCells()
if (isSolana) await playSolana()
if (chosen.includes('liar') && !isLiar) {
  say('the plan liar needs a live network, so it runs alone')
  process.exit(1)
}
const unknown = chosen.filter((plan) => !faults.some((fault) => fault.plan === plan))
if (unknown.length > 0) {
  say(`unknown plan: ${unknown.join(', ')}`)
  process.exit(1)
}
const commit = commitOf()
const random = seededRandom(seed)
say(
  `seed ${seed}, ${values.episodes ? `${episodesMax} episodes` : `${seconds} s`} of ${chosen.join(', ')}${isLiar ? `, ${providers.length} providers` : ''}`,
)
const stand = await openStand(random, {
  buyers,
  isCluster: chosen.includes('failover'),
  points: new RegExp(values.points),
  metBefore: values.after ? pointsMet(values.after) : new Map(),
  providers: isLiar ? providers : null,
})
let isKept = true
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stand.close(true).then(() => process.exit(1)))
process.once('unhandledRejection', (error) => {
  say(`${error instanceof Error ? error.stack : error}`)
  void stand.close(true).then(() => process.exit(1))
})
try {
  const tally = openTally()
  const timeline = await injectFaults(stand, random.fork('faults'), tally)
  say('no more faults; waiting for the work to finish')
  const { violations, quietSeconds, history } = await stand.judge()
  const counts = {
    ...Object.fromEntries(tally.counts),
    ...countsOf(stand),
    ...(isLiar && countsOfLies(stand)),
  }
  const complaints = complaintsOf(stand)
  const result: Result = {
    commit,
    seed,
    plans: chosen,
    seconds: values.episodes ? timeline.length : seconds,
    quietSeconds,
    violations,
    counts: { ...counts, ...complaints },
    timeline,
    shortcomings: [
      ...shortcomingsOf(stand, counts, timeline.length),
      ...(isLiar ? shortcomingsOfLies(counts) : []),
      ...unwanted.filter((what) => complaints[what]).map((what) => `${what}: ${complaints[what]}`),
    ],
  }
  isKept = violations.length > 0 || result.shortcomings.length > 0
  process.exitCode = isKept ? 1 : 0
  await keep(values.out, result)
  say(`\n${toTable(result)}\n`)
  if (isKept) {
    say(`the history and all logs are in ${stand.folder}`)
    const text = JSON.stringify(history, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
    await writeFile(join(stand.folder, 'history.json'), text)
  }
  say(toLine(result))
} finally {
  await stand.close(isKept)
}
// Sockets of killed processes may still be open.
process.exit()

/** The plan `cell` has two stands, and faults that concern whole cells. */
async function playCells(): Promise<never> {
  const episodes = Number.parseInt(values.episodes ?? (values.short ? '2' : '20'), 10)
  say(`seed ${seed}, ${episodes} episodes of cell`)
  const outcome = await strikeCells(seededRandom(seed), {
    episodes,
    buyers,
    briefShare: values.short ? 1 : 0.1,
    say,
  })
  const { timeline } = outcome
  return await report({ commit: commitOf(), seed, plans: ['cell'], seconds: timeline.length, ...outcome })
}

/** The plan `solana` has a ledger beside the chain, and faults that concern the ledger. */
async function playSolana(): Promise<never> {
  say(
    `seed ${seed}, ${values.episodes ? `${episodesMax} episodes` : `${seconds} s`} of solana, ${providers.length} providers`,
  )
  const outcome = await strikeSolana(seededRandom(seed), {
    seconds,
    episodes: episodesMax,
    providers,
    buyers: Number.parseInt(values.buyers ?? '12', 10),
    evmBuyers: 3,
    say,
  })
  return await report({
    commit: commitOf(),
    seed,
    plans: ['solana'],
    seconds: outcome.timeline.length,
    ...outcome,
  })
}

/** Stores and prints the result of a plan that runs alone. */
async function report(result: Result): Promise<never> {
  await keep(values.out, result)
  say(`\n${toTable(result)}\n`)
  say(toLine(result))
  process.exit(result.violations.length + result.shortcomings.length > 0 ? 1 : 0)
}

/**
 * Injects faults until the time is up. Plans take turns, occasionally two at once, unless --together is set, because
 * most plans at once would leave nothing running to disturb. Returns the payments and faults of each second.
 */
async function injectFaults(on: Stand, draw: Random, tally: Tally): Promise<Second[]> {
  const timeline: Second[] = []
  let begun = 0
  let before = { paid: 0, begun: 0 }
  const ticking = setInterval(() => {
    const { paid } = on.load.counts
    timeline.push({ paid: paid - before.paid, faults: begun - before.begun })
    before = { paid, begun }
    if (timeline.length % 5 === 0) say(`${timeline.length} s: ${progressOf(on, tally)}`)
  }, 1_000)
  const endAt = Date.now() + seconds * 1_000
  const isOnePhase = values.together || chosen.length === 1
  const phaseMs = isOnePhase ? seconds * 1_000 : Math.min(phaseMsMax, (seconds * 1_000) / chosen.length)
  // A phase may overrun, but every plan still gets its turn.
  const phasesMin = isOnePhase ? 1 : chosen.length
  const isTimeLeft = () => Date.now() < endAt && on.episodes.length < episodesMax
  for (let phase = 0; phase < phasesMin || isTimeLeft(); phase++) {
    const phaseEndAt = phase < phasesMin ? Date.now() + phaseMs : Math.min(endAt, Date.now() + phaseMs)
    const turns = turnsOf(phase, draw)
    // Plans that run together share the injectors: three times as many would leave nothing running to disturb.
    const injectorsPerPlan = Math.max(1, Math.floor(injectorsPerTurn / turns.length))
    const injectors = turns.flatMap((turn) => {
      const possible = faults.filter(({ plan }) => turn.includes(plan))
      const isLone = turn.some((plan) => lonePlans.includes(plan))
      return Array.from({ length: isLone ? 1 : injectorsPerPlan }, async (_, i) => {
        const own = draw.fork(`phase ${phase}, ${turn.join(' ')}, hand ${i}`)
        for (let times = 0; Date.now() < phaseEndAt && on.episodes.length < episodesMax; times++) {
          const fault = drawFault(possible, own)
          begun++
          await fault.inject(on, own.fork(`${fault.name} ${times}`), tally, phaseEndAt)
          await wait(own.between(0, 400))
        }
      })
    })
    await Promise.all(injectors)
  }
  clearInterval(ticking)
  for (const member of on.fleet.members) if (!on.fleet.isAlive(member)) on.fleet.start(member)
  return timeline
}

/** The plans of a phase. The plans of one list share their injectors. */
function turnsOf(phase: number, draw: Random): (readonly Plan[])[] {
  if (values.together) return chosen.map((plan) => [plan])
  const first = chosen[phase % chosen.length] as Plan
  // Armed crash points must be reached undisturbed, so `points` is never combined with another plan.
  const others = first === 'points' ? [] : chosen.filter((plan) => plan !== 'points')
  return [[first, ...(others.length > 0 && draw.isLucky(0.3) ? [draw.pick(others)] : [])]]
}

function drawFault(possible: readonly Fault[], draw: Random): Fault {
  let at = draw.next() * possible.reduce((sum, { weight }) => sum + weight, 0)
  for (const fault of possible) {
    at -= fault.weight
    if (at <= 0) return fault
  }
  return possible[0] as Fault
}

/** How the lies affected honest payers. */
function countsOfLies(on: Stand): Record<string, number> {
  const { lied, quiet } = compareTimes(on)
  const recoveries = on.episodes.flatMap(({ recoveredMs }) => recoveredMs ?? []).toSorted((a, b) => a - b)
  return {
    providers: providers.length,
    episodes: on.episodes.length,
    'false answers': on.nodes.falsehoods,
    'honest payers refused': on.load.counts.wronged,
    'payments during lies': lied.count,
    'payments without lies': quiet.count,
    'p99 ms during lies': lied.p99Ms,
    'p99 ms without lies': quiet.p99Ms,
    ...(recoveries.length > 0 && {
      'ms until paid after a lie, median': recoveries[Math.floor(recoveries.length / 2)] ?? 0,
      'ms until paid after a lie, p95': recoveries[Math.floor(recoveries.length * 0.95)] ?? 0,
      'ms until paid after a lie, longest': recoveries.at(-1) ?? 0,
    }),
  }
}

function shortcomingsOfLies(counts: Readonly<Record<string, number>>): string[] {
  const of = (what: string) => counts[what] ?? 0
  const isMeasured = Math.min(of('payments during lies'), of('payments without lies')) >= samplesMin
  const slowdown = of('p99 ms during lies') / of('p99 ms without lies')
  const longest = of('ms until paid after a lie, longest')
  return [
    ...(of('honest payers refused') > 0 ? [`${of('honest payers refused')} honest payers were refused`] : []),
    ...(providers.length > 2 && isMeasured && slowdown > slowdownMax
      ? [
          `while one of more than two providers lies, the p99 of payments is ${slowdown.toFixed(1)} times as high`,
        ]
      : []),
    ...(longest > recoveryMsMax ? [`after a lie no payment got through for ${longest} ms`] : []),
  ]
}

function shortcomingsOf(
  { load, points }: Stand,
  counts: Readonly<Record<string, number>>,
  lasted: number,
): string[] {
  // Every common point that was armed must be reached, and so must every point requested by name.
  const wantedPoints = armable.filter((point) =>
    values.points ? points.test(point) : counts[`not reached ${point}`] && commonPoints.includes(point),
  )
  const missed = wantedPoints.filter((point) => !counts[`crash ${point}`])
  const done = Object.keys(counts).filter((what) => counts[what])
  const wanted = Math.ceil(Math.min(seconds, lasted) * paymentsPerSecondMin)
  const wantedRefunds = Math.floor(Math.min(seconds, lasted) * refundsPerSecondMin)
  return [
    ...(load.counts.paid < wanted
      ? [`only ${load.counts.paid} payments were completed; at least ${wanted} are required`]
      : []),
    ...(load.counts.refunded < wantedRefunds
      ? [`only ${load.counts.refunded} refunds were completed; at least ${wantedRefunds} are required`]
      : []),
    ...missed.map((point) => `the crash point ${point} was not reached`),
    ...chosen
      .filter((plan) => !done.some((what) => traces[plan].test(what)))
      .map((plan) => `no fault of the plan ${plan} was injected`),
  ]
}

function progressOf(on: Stand, tally: Tally): string {
  const done = [...tally.counts].filter(([what]) => !/^(crash|not reached|leases) /.test(what))
  const crashes = [...tally.counts].reduce((sum, [what, n]) => (what.startsWith('crash ') ? sum + n : sum), 0)
  return [
    `${on.load.counts.paid} paid`,
    `${on.load.counts.refunded} refunded`,
    ...done.map(([what, times]) => `${times} ${what}`),
    ...(crashes > 0 ? [`${crashes} crash points`] : []),
    `${on.databaseProxy.lostReplies} replies lost`,
    `${on.nodes.faults} RPC faults`,
  ].join(', ')
}

function pointsMet(folder: string): Map<string, number> {
  const met = openTally()
  for (const { counts } of readKept(folder).filter(isCounted))
    for (const point of armable) met.count(point, counts[`crash ${point}`] ?? 0)
  return met.counts
}

function commitOf(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
      encoding: 'utf8',
    }).trim()
  } catch {
    return 'unknown'
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
