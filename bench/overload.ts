/**
 * Payments per second when more arrive than can be settled: `npm run bench:overload`, or `-- --short` as in CI.
 *
 * One `serve`, one `work`, one settler, a private PostgreSQL that is empty and has no statistics, and one anvil with
 * 2-second blocks, on the same machine as the load. A payer sends a payment and repeats it as its Retry-After says
 * until it is paid, then the next one. A small load comes first. Then each level keeps a number of payers busy. After
 * the largest level, the small load runs again, measured from ten seconds after the large one has ended.
 *
 * - ratio: payments per second at the largest level, divided by the best of all levels.
 * - recovered: payments per second of the small load after the large one, divided by its first rate.
 * - slowestMs: the longest that any request waited for its answer. A payer is promised one within 25 seconds.
 * - pagesPerPayment: the pages of 8 KB per payment that the most expensive statement has read. The rate collapses when
 *   a statement reads a whole table for each payment (server/src/database/db.ts).
 * - refused: how often payers were told to come back later, at the largest level; refusalMs: how long that took, median.
 *
 * If other machines take more than 10 % of the processors' time, rates of different seconds cannot be compared, and only
 * the answers are judged.
 *
 * With `--fault`, every level runs with a fault: `node` delays each answer of the nodes by 300 ms, `disk` makes each
 * commit wait for 50 ms, and `pause` stops all our processes and the database for 5 seconds.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { median, round, say, whole } from './figures.ts'
import { meterSettings, watchSteal } from './meter.ts'
import { type Chain, onChain } from './pay-chain.ts'
import { press, type Ready, type Timed } from './pay-load.ts'
import { type Ours, openOurs } from './pay-sides.ts'
import { onStand, type Stand } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    levels: { type: 'string' },
    seconds: { type: 'string' },
    fault: { type: 'string', default: 'none' },
  },
})
const levels = (options.levels ?? (options.short ? '1000,5000' : '500,1000,2000,5000'))
  .split(',')
  .map((level) => whole('levels', level, 1, 5_000))
/** Each level is measured for this long, after the time that it takes until the first payments are paid. */
const seconds = whole('seconds', options.seconds ?? (options.short ? '10' : '40'), 5, 120)
const { fault } = options
assert(['none', 'node', 'disk', 'pause'].includes(fault), '--fault must be node, disk or pause')
const rampSeconds = 6
const ratioMin = options.short ? 0.5 : 0.7
const smallLevel = 100
/** Payments come in blocks of two seconds: over a shorter time, one block more or less would decide. */
const smallSeconds = 14
/** How soon after the load has ended the rate must be back. */
const recoverySeconds = 10
/** 25 seconds, plus the time that a request may wait for its turn on an idle machine. */
const answerMsMax = 30_000
/** More payments per second than any machine that we have seen completes, so that a level does not run out of them. */
const perSecondMax = options.short ? 300 : 400
const warmPayments = 25
/** A payment's own rows and index entries are some fifty pages; a statement that walks through a table reads thousands. */
const pagesMax = 300
const pauseSeconds = 5

await onStand('1GB', (stand) => onChain((chain) => measure(chain, stand)), [
  ...meterSettings,
  // A database whose tables have just grown has no statistics yet.
  'autovacuum=off',
  ...(fault === 'disk' ? ['commit_delay=50000', 'commit_siblings=0'] : []),
])
// Sockets of killed processes may still be closing.
process.exit()

type Run = { readonly answers: readonly Timed[]; readonly perSecond: number }

async function measure(chain: Chain, stand: Stand): Promise<void> {
  const ours = await openOurs(chain, stand, { nodeDelayMs: fault === 'node' ? 300 : 0 })
  const loads = [
    { level: smallLevel, seconds: smallSeconds },
    ...levels.map((level) => ({ level, seconds: rampSeconds + seconds })),
    { level: smallLevel, seconds: recoverySeconds + smallSeconds },
  ]
  const counts = loads.map(({ level, seconds }) => level + seconds * Math.min(perSecondMax, level))
  await ours.db.query('create extension pg_stat_statements')
  const payers = await chain.fundedPayers(counts.reduce((sum, count) => sum + count, warmPayments))
  tell(`${payers.length} payers are funded`)
  await press(await ours.prepare(payers.splice(0, warmPayments)), warmPayments, smallSeconds, answerMsMax)
  const ready: Ready[][] = []
  for (const count of counts) ready.push(await ours.prepare(payers.splice(0, count)))
  tell('their checkouts are created')

  const run = async (place: number, fromSeconds: number): Promise<Run> => {
    const { level, seconds } = loads[place] ?? { level: 0, seconds: 0 }
    const pressing = press(ready[place] ?? [], level, seconds, answerMsMax)
    if (fault === 'pause' && level !== smallLevel) await pause(stand, ours, seconds / 2)
    const answers = await pressing
    const perSecond = rate(answers, fromSeconds, seconds)
    const kinds = [...Map.groupBy(answers, ({ reason }) => reason)]
    const list = kinds.map(([reason, { length }]) => `${length} x ${reason}`).join(', ')
    tell(`${level} payers: ${perSecond} per second; ${list}`)
    return { answers, perSecond }
  }
  const readSteal = watchSteal()
  const small = await run(0, 0)
  const runs: Run[] = []
  for (const [i] of levels.slice(0, -1).entries()) {
    runs.push(await run(1 + i, rampSeconds))
    await ours.settleDown()
  }
  const largestRun = run(levels.length, rampSeconds)
  // The last load begins while requests of the largest one are still being answered.
  await wait((rampSeconds + seconds) * 1_000)
  const smallAgain = await run(loads.length - 1, recoverySeconds)
  const largest = await largestRun
  await ours.settleDown()
  const reads = await readReads(ours)
  const steal = readSteal()

  const rates = [...runs, largest].map(({ perSecond }) => perSecond)
  const answers = [small, ...runs, largest, smallAgain].flatMap((one) => one.answers)
  const refused = largest.answers.filter(({ status }) => status === 503 || status === 429)
  const result = {
    ratio: round((rates.at(-1) ?? 0) / Math.max(...rates), 2),
    recovered: round(smallAgain.perSecond / small.perSecond, 2),
    slowestMs: Math.round(Math.max(...answers.map(({ tookMs }) => tookMs))),
    refused: refused.length,
    refusalMs: Math.round(median(refused.map(({ tookMs }) => tookMs))),
    pagesPerPayment: reads[0]?.pages ?? 0,
    perSecond: Object.fromEntries(levels.map((level, i) => [level, rates[i]])),
    stealPercent: steal.stealPercent,
    fault,
    seconds,
  }
  say(JSON.stringify(result))
  const unanswered = answers.filter(({ status }) => status === 0).length
  assert.equal(unanswered, 0, `${unanswered} requests were not answered, or their connection broke`)
  const odd = answers.filter(({ status }) => ![200, 202, 429, 503].includes(status))
  assert.equal(odd.length, 0, odd[0]?.reason)
  assert(
    refused.every(({ retryAfterSeconds }) => retryAfterSeconds > 0),
    'a refusal without Retry-After',
  )
  if (steal.warning) {
    tell(`${steal.warning}; rates are not judged`)
    return
  }
  assert(result.ratio >= ratioMin, `ratio ${result.ratio} is below ${ratioMin}`)
  assert(result.recovered >= ratioMin, `recovered ${result.recovered} is below ${ratioMin}`)
  assert(result.pagesPerPayment <= pagesMax, `a statement reads too much: ${JSON.stringify(reads[0])}`)
  assert(result.slowestMs <= answerMsMax, `a request took ${result.slowestMs} ms`)
}

/**
 * The pages of 8 KB that each statement has read per payment, most first. If it returned more rows than there are
 * payments, the figure is per row, because refused and waiting requests read too.
 */
async function readReads({
  db,
}: Ours): Promise<readonly { readonly pages: number; readonly query: string }[]> {
  return await db.query<{ pages: number; query: string }>(
    `select round((shared_blks_hit + shared_blks_read)::numeric
       / greatest(rows, (select count(*) from credits where disposition = 'exact')))::integer as pages,
       left(query, 200) as query
     from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
     order by pages desc limit 5`,
  )
}

/** Payments paid per second between two times, in seconds since the load began. */
function rate(answers: readonly Timed[], from: number, to: number): number {
  const paid = answers.filter(
    ({ status, atMs }) => status === 200 && atMs >= from * 1_000 && atMs < to * 1_000,
  )
  return round(paid.length / (to - from), 1)
}

/** Stops our processes and the database's at the given time, and resumes them after some seconds. */
async function pause({ folder }: Stand, ours: Ours, afterSeconds: number): Promise<void> {
  await wait(afterSeconds * 1_000)
  const postmaster = Number.parseInt(readFileSync(`${folder}/data/postmaster.pid`, 'utf8'), 10)
  const backends = readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      return Number.parseInt(stat.slice(stat.lastIndexOf(')') + 4), 10) === postmaster
    } catch {
      // It has exited in the meantime.
      return false
    }
  })
  const pids = [...ours.pids(), postmaster, ...backends.map(Number)]
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  await wait(pauseSeconds * 1_000)
  for (const pid of pids) process.kill(pid, 'SIGCONT')
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
