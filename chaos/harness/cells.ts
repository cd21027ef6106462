import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { check } from '../checker/check.ts'
import type { History, Violation } from '../checker/history.ts'
import { openChain } from './chain.ts'
import { complaintsOf, countsOf, unwanted } from './counts.ts'
import { openProgram, type Program } from './fleet.ts'
import { allLeased, endLeases } from './leases.ts'
import type { Random } from './random.ts'
import type { Second } from './report.ts'
import { restore, startAll } from './restore.ts'
import { openStand, type Stand } from './stand.ts'
import { openTally, type Tally } from './tally.ts'

/** A restore keeps the books before and after it, so a long run is divided into rounds, each with cells of its own. */
const episodesPerRound = 20
/** A restarted cell must complete a payment within this time, which is what I14 allows. */
const aliveMs = 120_000
/** Then it must serve all requests again within this time, which is what I14 allows after a restore. */
const healthyMs = 420_000
/** A cell that completed a payment and failed no request for this long is healthy. */
const calmMs = 3_000
const tags = ['00', '01']

export type CellsOptions = {
  readonly episodes: number
  /** The number of buyers in each cell. */
  readonly buyers: number
  /**
   * The share of signatures that are valid for less than half a minute. A payment that a restore leaves unsent waits
   * until its signature expires.
   */
  readonly briefShare: number
  readonly say: (line: string) => void
}

export type CellsOutcome = {
  readonly violations: readonly Violation[]
  readonly quietSeconds: number
  readonly counts: Readonly<Record<string, number>>
  readonly shortcomings: readonly string[]
  readonly timeline: readonly Second[]
}

/**
 * The plan `cell`. Two cells share only a chain. The harness repeatedly kills one of them under load, with its
 * processes and its PostgreSQL. It brings the cell back from its own write-ahead log, or every other time from an
 * earlier copy with `reconcile`. No request to the other cell may fail meanwhile. Afterwards both cells are checked.
 */
export async function strikeCells(random: Random, options: CellsOptions): Promise<CellsOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-chaos-'))
  const outcomes: CellsOutcome[] = []
  try {
    const program = await openProgram(folder)
    for (let done = 0; done < options.episodes; done += episodesPerRound) {
      const round = { ...options, episodes: Math.min(episodesPerRound, options.episodes - done) }
      outcomes.push(await playRound(random.fork(`round ${done}`), folder, program, round))
      options.say(`${done + round.episodes} of ${options.episodes} episodes are judged`)
      if (isBroken(outcomes.at(-1))) break
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return {
    violations: outcomes.flatMap(({ violations }) => violations),
    quietSeconds: Math.max(...outcomes.map(({ quietSeconds }) => quietSeconds)),
    counts: sum(outcomes.map(({ counts }) => counts)),
    shortcomings: outcomes.flatMap(({ shortcomings }) => shortcomings),
    timeline: outcomes.flatMap(({ timeline }) => timeline),
  }
}

async function playRound(
  random: Random,
  folder: string,
  program: Program,
  { episodes, buyers, briefShare, say }: CellsOptions,
): Promise<CellsOutcome> {
  const place = await mkdtemp(join(folder, 'round-'))
  const chain = await openChain(place)
  const opened = await Promise.allSettled(
    tags.map((tag, i) =>
      openStand(random.fork(`cell ${tag}`), {
        buyers,
        isCluster: false,
        points: /^$/,
        metBefore: new Map(),
        providers: null,
        cell: { place: i, tag, chain, program, briefShare },
      }),
    ),
  )
  const cells = opened.flatMap((one) => (one.status === 'fulfilled' ? one.value : []))
  let isKept = true
  try {
    const failed = opened.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
    const tally = openTally()
    const timeline: Second[] = []
    const paid = () => cells.reduce((total, { load }) => total + load.counts.paid, 0)
    let before = { paid: 0, begun: 0 }
    let begun = 0
    const ticking = setInterval(() => {
      timeline.push({ paid: paid() - before.paid, faults: begun - before.begun })
      before = { paid: paid(), begun }
    }, 1_000)
    const shortcomings: string[] = []
    for (let i = 0; i < episodes; i++) {
      begun++
      const own = random.fork(`episode ${i}`)
      const [struck, other] = own.isLucky(0.5) ? cells : cells.toReversed()
      if (!struck || !other) throw new Error('there are no two cells')
      // The cell may have been killed before, and a restored cell refuses payments for a while.
      if (!(await untilHealthy(other)))
        shortcomings.push(`a cell was not healthy within ${healthyMs} ms after it came back`)
      shortcomings.push(...(await strike(struck, other, i % 2 === 0 ? killAndStart : restore, own, tally)))
      say(
        `episode ${i + 1}: ${paid()} paid, ${[...tally.counts].map((one) => one.reverse().join(' ')).join(', ')}`,
      )
    }
    clearInterval(ticking)
    const finished = await Promise.all(cells.map((cell) => cell.finish()))
    await chain.end()
    const histories = await Promise.all(cells.map((cell, i) => cell.readHistory(finished[i]?.undone ?? [])))
    const violations = judgeTogether(histories)
    const complaints = sum(cells.map(complaintsOf))
    const outcome: CellsOutcome = {
      violations,
      quietSeconds: Math.max(...finished.map(({ quietSeconds }) => quietSeconds)),
      counts: sum([Object.fromEntries(tally.counts), ...cells.map(countsOf), complaints]),
      shortcomings: [
        ...shortcomings,
        ...unwanted.filter((what) => complaints[what]).map((what) => `${what}: ${complaints[what]}`),
      ],
      timeline,
    }
    isKept = isBroken(outcome)
    if (isKept)
      for (const [i, cell] of cells.entries()) {
        say(`the history and all logs of cell ${tags[i]} are in ${cell.folder}`)
        const text = JSON.stringify(histories[i], (_, value) =>
          typeof value === 'bigint' ? `${value}` : value,
        )
        await writeFile(join(cell.folder, 'history.json'), text)
      }
    return outcome
  } finally {
    await Promise.all(cells.map((cell) => cell.close(isKept)))
    await chain.stop()
  }
}

/** Each cell's books are also compared with those of the cells before it, so that nothing is reported twice. */
function judgeTogether(histories: readonly History[]): Violation[] {
  return histories.flatMap((history, i) =>
    check({ ...history, neighbours: histories.slice(0, i).map(({ books }) => books) }),
  )
}

type Strike = (stand: Stand, random: Random, tally: Tally) => Promise<void>

/** Kills one cell. Returns how its neighbour was affected, and whether the cell came back. */
async function strike(
  struck: Stand,
  other: Stand,
  how: Strike,
  random: Random,
  tally: Tally,
): Promise<string[]> {
  const before = { answers: other.load.answers.length, ...other.load.counts }
  await how(struck, random, tally)
  struck.load.hesitateMsMax = 0
  const isAlive = await untilPaid(struck)
  const refused = other.load.answers.slice(before.answers).filter(({ status }) => status >= 500)
  const unanswered = other.load.counts.unanswered - before.unanswered
  tally.count('cell struck')
  tally.count('payments in the healthy cell meanwhile', other.load.counts.paid - before.paid)
  tally.count('requests to the healthy cell that failed', refused.length + unanswered)
  const [first] = refused
  return [
    ...(isAlive ? [] : [`no payment was completed within ${aliveMs} ms after a cell came back`]),
    ...(unanswered > 0 ? [`${unanswered} requests to the healthy cell were not answered`] : []),
    ...(first ? [`${refused.length} requests to the healthy cell failed, such as: ${first.body}`] : []),
  ]
}

/** Kills everything in a cell at once, as if its machine lost power. Then everything starts again from its disk. */
async function killAndStart(stand: Stand, random: Random, tally: Tally): Promise<void> {
  const { fleet, database } = stand
  await wait(random.between(500, 2_000))
  await Promise.all([
    ...fleet.members.map((member) => fleet.end(member, 'SIGKILL')),
    wait(random.between(0, 300)).then(() => database.killAndStart()),
  ])
  await wait(random.between(0, 2_000))
  if (random.isLucky(0.8)) await endLeases(stand, allLeased, tally)
  await startAll(stand)
  tally.count('cell killed and started')
}

async function untilPaid({ load }: Stand): Promise<boolean> {
  const before = load.counts.paid
  const giveUpAt = Date.now() + aliveMs
  while (load.counts.paid === before && Date.now() < giveUpAt) await wait(50)
  return load.counts.paid > before
}

async function untilHealthy({ load }: Stand): Promise<boolean> {
  const giveUpAt = Date.now() + healthyMs
  while (Date.now() < giveUpAt) {
    const before = {
      paid: load.counts.paid,
      answers: load.answers.length,
      unanswered: load.counts.unanswered,
    }
    await wait(calmMs)
    const hasFailed = load.answers.slice(before.answers).some(({ status }) => status >= 500)
    if (load.counts.paid > before.paid && !hasFailed && load.counts.unanswered === before.unanswered)
      return true
  }
  return false
}

function isBroken(outcome: CellsOutcome | undefined): boolean {
  return outcome === undefined || outcome.violations.length + outcome.shortcomings.length > 0
}

function sum(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = openTally()
  for (const [what, times] of all.flatMap((one) => Object.entries(one))) sums.count(what, times)
  return Object.fromEntries(sums.counts)
}
