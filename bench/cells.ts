/**
 * Two cells behind one proxy: `npm run bench:cells`, or `-- --short` as in CI.
 *
 * Each cell has its own PostgreSQL (fsync on), two `serve`, one `work`, a settler and a store; both are on one anvil
 * with 2-second blocks, behind HAProxy with the configuration of ops/haproxy. All of it shares this machine with the
 * load. One cell's PostgreSQL is killed and started again several times, while both cells get the same steady load of
 * creates, reads, lists and payment pages. Equal numbers of buyers pay in the other cell before and after each kill,
 * and in this cell once it is back.
 *
 * - survivorErrors: requests to the other cell that were not served, from the first to the last. Must be 0.
 * - p99Ratio: the 99th percentile of the other cell's answers from a kill until its neighbour is back, divided by that of
 *   the seconds before; the median of all kills. At most 1.5.
 * - cpuRatio: creates per second of processor time with both cells under load, divided by that of each alone, at the
 *   same rate per cell. At least 0.9; anything that cells share would lower it.
 * - proxyMsPerRequest: the proxy's processor time per request at full load. proxyLatencyMs: what it adds to the median of
 *   single requests.
 * - completed: payments that were paid, of `payments`, in both cells. Each store's wallet must hold exactly that.
 * - backMs: from PostgreSQL's start until its cell served a request again, the longest.
 *
 * With `--roll` both cells are upgraded under load instead, one after the other (cells-roll.ts).
 *
 * A short run is too short to judge ratios. A full run does not judge them either if other machines take more than 10 %
 * of the processors' time.
 */
import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { openProxy } from '../server/test/support/proxy.ts'
import { isServed, type Seen, startLoad } from './cells-load.ts'
import { rollCells } from './cells-roll.ts'
import {
  type Cell,
  cellCpuMs,
  cellWallets,
  killDatabase,
  openCell,
  pack,
  startDatabase,
} from './cells-stand.ts'
import { createMany } from './create-load.ts'
import { median, quantile, round, say } from './figures.ts'
import { watchSteal } from './meter.ts'
import { type Chain, onChain, units } from './pay-chain.ts'
import { cpuMs, pay, type Ready } from './pay-load.ts'
import { openTill } from './pay-till.ts'
import { onStands, type Stand } from './stand.ts'

const { values: options } = parseArgs({
  options: { short: { type: 'boolean', default: false }, roll: { type: 'boolean', default: false } },
})
const isShort = options.short
const tags = ['00', '01'] as const
const kills = isShort ? 1 : 5
const beforeSeconds = isShort ? 3 : 15
const outageSeconds = isShort ? 2 : 15
/** Requests per second to each cell while one is killed. */
const perSecond = isShort ? 20 : 50
const paymentsPerKill = isShort ? 5 : 30
/** Payments are evenly spaced, because a burst would cause the slowest answers and hide the effect of the kill. */
const paymentsAtOnce = 5
const payLimitMs = 120_000
/** Creates per second in each cell while processor time is counted: far below the machine's limit. */
const createsPerSecond = isShort ? 60 : 150
const cpuSeconds = isShort ? 2 : 10
const cpuRounds = isShort ? 1 : 3
const fullLoadSeconds = isShort ? 1 : 5
const singleRequests = isShort ? 100 : 1_000
const backMsMax = 60_000
const warmUpSeconds = isShort ? 1 : 10
const p99RatioMax = 1.5
const cpuRatioMin = 0.9

await onStands(tags.length, '256MB', (stands) =>
  onChain(async (chain) => {
    if (options.roll) say(JSON.stringify(await rollCells(chain, stands, isShort)))
    else await measure(chain, stands)
  }),
)
// Sockets of killed processes may still be closing.
process.exit()

type Pair = {
  readonly cells: readonly Cell[]
  readonly proxy: { readonly url: string; readonly pid: number }
}

async function measure(chain: Chain, stands: readonly Stand[]): Promise<void> {
  const program = await pack(stands[0]?.folder ?? assert.fail())
  const [payers, cells] = await Promise.all([
    chain.fundedPayers(paymentsPerKill * kills * 3),
    Promise.all(
      stands.map((stand, i) =>
        openCell(chain, stand, {
          tag: tags[i] ?? '',
          payTo: cellWallets[i] ?? '',
          program,
          serves: 2,
          drainSeconds: 0,
        }),
      ),
    ),
  ])
  const proxy = await openProxy({
    cells: cells.map(({ tag, serves }) => ({ tag, servers: serves.map(({ address }) => address) })),
  })
  try {
    const pair = { cells, proxy }
    const warm = startLoad(proxy.url, cells, perSecond)
    await wait(warmUpSeconds * 1_000)
    await warm.stop()
    const stolen = watchSteal()
    const proxied = await measureProxy(pair)
    const cpuRatio = await compareCpu(pair)
    const tills = cells.map(({ apiKey }) => openTill(proxy.url, apiKey))
    const outages: Outage[] = []
    for (let i = 0; i < kills; i++) {
      const prepare = (till = tills[0]) => till?.(payers.splice(0, paymentsPerKill)) ?? assert.fail()
      const ready = { before: await prepare(), during: await prepare(), after: await prepare(tills[1]) }
      outages.push(await endure(pair, ready))
    }
    const { stealPercent, warning } = stolen()
    const survivor = outages.flatMap(({ seen }) => seen)
    const errors = survivor.filter((one) => !isServed(one))
    const p99 = (isDuring: boolean) => outages.map(({ seen }) => p99Of(seen, isDuring))
    const [before, during] = [p99(false), p99(true)]
    const completed = outages.flatMap((outage) => outage.completed)
    const result = {
      survivorErrors: errors.length,
      p99Ratio: round(median(during.map((ms, i) => ms / (before[i] ?? 0))), 2),
      cpuRatio,
      ...proxied,
      completed: completed.reduce((sum, count) => sum + count, 0),
      payments: paymentsPerKill * kills * 3,
      survivorRequests: survivor.length,
      p99BeforeMs: before.map((ms) => round(ms, 1)),
      p99DuringMs: during.map((ms) => round(ms, 1)),
      backMs: Math.round(Math.max(...outages.map(({ backMs }) => backMs))),
      kills,
      stealPercent,
    }
    say(JSON.stringify(result))
    assert.equal(result.survivorErrors, 0, JSON.stringify(errors[0]))
    assert.equal(result.completed, result.payments)
    for (const [i, { payTo }] of cells.entries())
      assert.equal(
        await chain.balance(payTo),
        units * BigInt(paymentsPerKill * kills * (i === 0 ? 2 : 1)),
        `wallet of cell ${tags[i]}`,
      )
    if (warning) process.stderr.write(`${warning}; ratios are not judged\n`)
    if (warning || isShort) return
    assert(result.p99Ratio <= p99RatioMax, `p99Ratio ${result.p99Ratio} is above ${p99RatioMax}`)
    assert(result.cpuRatio >= cpuRatioMin, `cpuRatio ${result.cpuRatio} is below ${cpuRatioMin}`)
  } finally {
    await proxy.close()
  }
}

/**
 * The proxy's processor time at full load, and the time that it adds to single requests. Requests with and without it
 * alternate.
 */
async function measureProxy({ cells, proxy }: Pair): Promise<{
  readonly proxyMsPerRequest: number
  readonly proxyLatencyMs: number
}> {
  const [cell] = cells
  const [serve] = cell?.serves ?? []
  assert(cell && serve)
  const before = cpuMs(proxy.pid)
  const { requests } = await createMany([{ address: proxy.url }], cell.apiKey, 'full', fullLoadSeconds)
  const proxyMsPerRequest = round((cpuMs(proxy.pid) - before) / requests, 3)
  const timeOne = async (address: string): Promise<number> => {
    const sentAt = performance.now()
    const answer = await fetch(`${address}/api/v1/store`, { headers: { 'x-api-key': cell.apiKey } })
    const text = await answer.text()
    assert(answer.status === 200, text)
    return performance.now() - sentAt
  }
  const direct: number[] = []
  const through: number[] = []
  for (let i = 0; i < singleRequests; i++) {
    direct.push(await timeOne(serve.address))
    through.push(await timeOne(proxy.url))
  }
  return { proxyMsPerRequest, proxyLatencyMs: round(median(through) - median(direct), 2) }
}

/** Creates per second of processor time: of all cells together, divided by each alone. */
async function compareCpu({ cells, proxy }: Pair): Promise<number> {
  const used = async (some: readonly Cell[]) => {
    const total = () => some.reduce((sum, cell) => sum + cellCpuMs(cell), 0)
    const before = total()
    const load = startLoad(proxy.url, some, createsPerSecond, ['create'])
    await wait(cpuSeconds * 1_000)
    const seen = await load.stop()
    assert(seen.every(isServed), JSON.stringify(seen.find((one) => !isServed(one))))
    return { creates: seen.length, ms: total() - before }
  }
  const alone = { creates: 0, ms: 0 }
  const together = { creates: 0, ms: 0 }
  for (let i = 0; i < cpuRounds; i++) {
    // Measures both together between the single ones, because processes that have just started become faster every
    // second.
    const [first, second] = cells
    assert(first && second)
    for (const some of [[first], cells, [second]]) {
      const { creates, ms } = await used(some)
      const sum = some.length === 1 ? alone : together
      sum.creates += creates
      sum.ms += ms
    }
  }
  return round(together.creates / together.ms / (alone.creates / alone.ms), 2)
}

type Outage = {
  /** The requests to the survivor; `isDuring`: while its neighbour was away. */
  readonly seen: readonly (Seen & { readonly isDuring: boolean })[]
  /** Payments before, during and after it. */
  readonly completed: readonly number[]
  readonly backMs: number
}

function p99Of(seen: Outage['seen'], isDuring: boolean): number {
  const times = seen.filter((one) => one.isDuring === isDuring).map(({ tookMs }) => tookMs)
  return quantile(times, 0.99)
}

/** Kills the last cell's PostgreSQL under load, starts it again, and has both cells paid. */
async function endure(
  { cells, proxy }: Pair,
  ready: {
    readonly before: readonly Ready[]
    readonly during: readonly Ready[]
    readonly after: readonly Ready[]
  },
): Promise<Outage> {
  const [survivor, victim] = cells
  assert(survivor && victim)
  const load = startLoad(proxy.url, cells, perSecond)
  const paidBefore = pay(ready.before, paymentsAtOnce, payLimitMs)
  await wait(beforeSeconds * 1_000)
  const killedAt = performance.now()
  killDatabase(victim)
  const paidDuring = pay(ready.during, paymentsAtOnce, payLimitMs)
  await wait(outageSeconds * 1_000)
  await startDatabase(victim)
  const startedAt = performance.now()
  const isBack = () =>
    load.seen.some((one) => one.tag === victim.tag && one.sentAt > startedAt && isServed(one))
  while (!isBack()) {
    assert(performance.now() - startedAt < backMsMax, `cell ${victim.tag} does not serve again`)
    await wait(10)
  }
  const backAt = performance.now()
  const payments = [await paidBefore, await paidDuring, await pay(ready.after, paymentsAtOnce, payLimitMs)]
  const seen = await load.stop()
  for (const { answers } of payments)
    assert.deepEqual([...answers.keys()], ['200'], JSON.stringify([...answers]))
  return {
    seen: seen
      .filter(({ tag, sentAt }) => tag === survivor.tag && sentAt < backAt)
      .map((one) => ({ ...one, isDuring: one.sentAt >= killedAt })),
    completed: payments.map(({ paid }) => paid.length),
    backMs: backAt - startedAt,
  }
}
