/**
 * A rolling upgrade of two cells under load: `npm run bench:cells -- --roll`, or with `--short` of one of them.
 *
 * The next release is this program with one more migration. Cell by cell, it migrates the database, then replaces
 * `work` and each `serve` in turn, as docs/cells.md describes. Before it stops, `serve` reports that on /readyz for
 * longer than the proxy needs to notice. Stores and pages send requests at a steady rate meanwhile, and buyers pay in
 * both cells.
 *
 * - requestsLost: how many of `requests` were not served. Must be 0 of 10,000.
 * - paymentsLost: payments that were refused, answered with "come back later", or not completed. Must be 0.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { makeNextVersion } from '../chaos/harness/upgrade.ts'
import { openProxy } from '../server/test/support/proxy.ts'
import { isServed, startLoad } from './cells-load.ts'
import { type Cell, cellWallets, openCell, operate, pack } from './cells-stand.ts'
import { type Chain, type Payer, units } from './pay-chain.ts'
import { type Load, pay } from './pay-load.ts'
import { openTill } from './pay-till.ts'
import type { Stand } from './stand.ts'

const tags = ['00', '01'] as const
/** Longer than the proxy's three checks, one second apart. */
const drainSeconds = 5
/** How long to wait after a process is ready before the next one is stopped. */
const noticeMs = 3_000
const payLimitMs = 60_000
const readyMsMax = 30_000

export async function rollCells(
  chain: Chain,
  stands: readonly Stand[],
  isShort: boolean,
): Promise<Readonly<Record<string, number>>> {
  const requestsMin = isShort ? 500 : 10_000
  /** To each cell. */
  const perSecond = isShort ? 15 : 100
  const paymentsAtOnce = isShort ? 3 : 10
  const next = makeNextVersion(stands[0]?.folder ?? assert.fail())
  next.addMigration()
  const program = await pack(stands[0]?.folder ?? '')
  const nextProgram = await pack(join(next.root, 'packed'), next.root)
  const [payers, cells] = await Promise.all([
    chain.fundedPayers(isShort ? 250 : 1_000),
    Promise.all(
      stands.map((stand, i) =>
        openCell(chain, stand, {
          tag: tags[i] ?? '',
          payTo: cellWallets[i] ?? '',
          program,
          serves: 2,
          drainSeconds,
        }),
      ),
    ),
  ])
  const proxy = await openProxy({
    cells: cells.map(({ tag, serves }) => ({ tag, servers: serves.map(({ address }) => address) })),
  })
  try {
    const startedAt = performance.now()
    const load = startLoad(proxy.url, cells, perSecond)
    const rolling = new AbortController()
    const paying = cells.map((cell) => payOnAndOn(proxy.url, cell, payers, paymentsAtOnce, rolling.signal))
    let trouble: unknown = null
    for (const one of paying)
      one.catch((error) => {
        trouble = error
      })
    const goOn = () => {
      if (trouble) throw trouble
      assert(payers.length > 0, 'there are no payers left')
    }
    for (const cell of isShort ? cells.slice(1) : cells) await upgrade(cell, nextProgram, goOn)
    for (; load.seen.length < requestsMin; goOn()) await wait(100)
    const seconds = Math.round((performance.now() - startedAt) / 1_000)
    rolling.abort()
    const loads = (await Promise.all(paying)).flat()
    const seen = await load.stop()
    const lost = seen.filter((one) => !isServed(one))
    const payments = loads.reduce((sum, one) => sum + sumOf(one.answers), 0)
    const completed = loads.reduce((sum, one) => sum + one.paid.length, 0)
    const unavailable = loads.reduce((sum, one) => sum + one.unavailable, 0)
    let received = 0n
    for (const { payTo } of cells) received += await chain.balance(payTo)
    const result = {
      requestsLost: lost.length,
      requests: seen.length,
      paymentsLost: payments - completed + unavailable,
      payments,
      seconds,
      drainSeconds,
    }
    assert.deepEqual(
      [lost.length, result.paymentsLost],
      [0, 0],
      JSON.stringify([result, lost.slice(0, 5), ...loads.map(({ answers }) => [...answers])]),
    )
    assert.equal(received, units * BigInt(completed))
    return result
  } finally {
    await proxy.close()
  }
}

/** Pays in one cell, some at a time, until told to stop. Payments that have begun are always finished. */
export async function payOnAndOn(
  url: string,
  { apiKey }: { readonly apiKey: string },
  payers: Payer[],
  atOnce: number,
  stopped: AbortSignal,
): Promise<Load[]> {
  const prepare = openTill(url, apiKey)
  const loads: Load[] = []
  while (!stopped.aborted && payers.length >= atOnce)
    loads.push(await pay(await prepare(payers.splice(0, atOnce)), atOnce, payLimitMs))
  return loads
}

/** Replaces a cell's processes by those of another release: `work`, then each `serve` once the one before it is ready. */
async function upgrade(cell: Cell, program: string, goOn: () => void): Promise<void> {
  await operate(cell, program, 'migrate')
  for (const unit of [cell.work, ...cell.serves]) {
    goOn()
    await unit.stop()
    await unit.start(program)
    if (unit.command === 'serve') {
      await untilReady(unit.address)
      await wait(noticeMs)
    }
    process.stderr.write(`cell ${cell.tag}: ${unit.command} is replaced\n`)
  }
}

async function untilReady(address: string): Promise<void> {
  const deadline = performance.now() + readyMsMax
  while ((await fetch(`${address}/readyz`)).status !== 200) {
    assert(performance.now() < deadline, `${address} is not ready`)
    await wait(100)
  }
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}
