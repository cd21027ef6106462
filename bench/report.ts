/**
 * How fast the books are exported, beside PostgreSQL alone: `npm run bench:report`, `-- --lines 100000` for fewer.
 *
 * One store has a million lines. By turns, `GET /api/v1/movements` as CSV is written to a file through `serve`, `psql`
 * writes the same lines with a bare `copy … to stdout` of the same query, and the plain columns of the table. A reader that shares no code with the product then
 * adds up every amount and every value of the file, with exact fractions, and compares the sums with PostgreSQL's.
 *
 * - ratio: lines per second of the export divided by those of `copy`, the median of the rounds; at least 0.5.
 * - plainRatio: the same, beside the table's columns as they are stored, which need no formatting.
 * - rowsPerSecond: of the export. peakRssMb: how much `serve` grows over its size before; at most 50.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs, promisify } from 'node:util'
import type { Database } from '../server/src/database/db.ts'
import { clockOf, parametersOf, selectLines } from '../server/src/movements/written-lines.ts'
import { median, round, say, whole } from './figures.ts'
import { watchSteal } from './meter.ts'
import { makeDatabase, makeStore, onStand, type Stand, settingsFor, startServer } from './stand.ts'

const { values: options } = parseArgs({ options: { lines: { type: 'string', default: '1000000' } } })
const lines = whole('lines', options.lines, 1_000, 10_000_000)
const rounds = 3
const token = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const budget = { ratio: 0.5, peakRssMb: 50 }
const rssEveryMs = 50
const execute = promisify(execFile)

await onStand('1GB', async (stand) => {
  const { url, db } = await makeDatabase(stand.cluster, 'farthing')
  const settings = settingsFor(url)
  const wallet = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
  const key = await makeStore(db, settings, wallet)
  const [{ id: storeId } = assert.fail()] = await db.query<{ id: string }>('select id from stores')
  await fillBooks(db, storeId, wallet.toLowerCase())
  const serve = await startServer(stand, 'serve', settings)
  const pid = serve.child.pid ?? assert.fail()
  const stealSince = watchSteal()
  const file = join(stand.folder, 'books.csv')
  const rates: { export: number; copy: number; plain: number }[] = []
  const before = await rssMb(pid)
  let peak = before
  const watch = setInterval(async () => {
    peak = Math.max(peak, await rssMb(pid).catch(() => 0))
  }, rssEveryMs)
  for (let turn = 1; turn <= rounds; turn++) {
    const exported = await perSecond(async () => {
      const address = `${serve.address}/api/v1/movements`
      await execute('curl', [
        '-sSf',
        '-o',
        file,
        address,
        '-H',
        `X-API-Key: ${key}`,
        '-H',
        'Accept: text/csv',
      ])
    })
    const copied = await perSecond(() => copy(stand, url, selectInline(storeId, wallet.toLowerCase())))
    const plain = await perSecond(() =>
      copy(stand, url, `select * from movements where store_id = '${storeId}' order by number`),
    )
    rates.push({ export: exported, copy: copied, plain })
    const shown = [exported, copied, plain].map((each) => Math.round(each))
    say(`round ${turn}: ${shown[0]} lines per second, copy ${shown[1]}, of the plain columns ${shown[2]}`)
  }
  clearInterval(watch)
  await compareSums(db, storeId, file)
  const { stealPercent, warning } = stealSince()
  if (warning) say(warning)
  const result = {
    ratio: round(median(rates.map((each) => each.export / each.copy)), 2),
    plainRatio: round(median(rates.map((each) => each.export / each.plain)), 2),
    rowsPerSecond: Math.round(median(rates.map((each) => each.export))),
    peakRssMb: Math.round(peak - before),
    lines,
    stealPercent,
  }
  await db.close()
  say(JSON.stringify(result))
  assert(result.ratio >= budget.ratio, `ratio ${result.ratio} is below ${budget.ratio}`)
  assert(result.peakRssMb <= budget.peakRssMb, `serve grew by ${result.peakRssMb} MB`)
})

/** The query of the export as one statement without parameters. */
function selectInline(storeId: string, wallet: string): string {
  const known = { tokens: new Set([`eip155:8453 ${token}`]), wallets: new Set([`eip155:8453 ${wallet}`]) }
  const parameters = [...parametersOf(storeId, { after: 0n, last: BigInt(lines) }, known), ...clockOf('UTC')]
  return selectLines('csv').replaceAll(
    /\$([1-7])/g,
    (_, place) => `'${parameters[Number.parseInt(place, 10) - 1]}'`,
  )
}

async function copy(stand: Stand, url: string, select: string): Promise<void> {
  const command = `\\copy (${select.replaceAll(/\s+/g, ' ')}) to '${join(stand.folder, 'copy')}'`
  await execute('psql', [url, '-qX', '-c', command])
}

async function perSecond(work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await work()
  return (lines * 1_000) / (performance.now() - started)
}

async function rssMb(pid: number): Promise<number> {
  const [, kilobytes = ''] = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number.parseInt(kilobytes, 10) / 1_024
}

/** A year of payments and refunds in euros, whose amounts and values have six decimals. */
async function fillBooks(db: Database, storeId: string, wallet: string): Promise<void> {
  const perStatement = 50_000
  for (let first = 1; first <= lines; first += perStatement)
    await db.query(
      `insert into movements (store_id, number, id, type, happened_at, booked_at, network, asset, amount, wallet,
         transaction_hash, place, payment_id, refund_id, checkout_id, order_id, price_amount, price_currency, rate,
         rate_source, rate_time, disposition, value, value_currency, value_rate, value_rate_source, value_rate_time)
       select $1, n, 'mov_' || lpad(n::text, 28, '0'), case when n % 10 = 0 then 'refund' else 'payment' end, at,
         at + interval '20 minutes', 'eip155:8453', '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913',
         units * case when n % 10 = 0 then -1 else 1 end, $2, '0x' || md5(n::text) || md5('t' || n), n % 300,
         'pay_' || lpad(n::text, 28, '0'), case when n % 10 = 0 then 'rf_' || lpad(n::text, 28, '0') end,
         'ch_' || lpad(n::text, 28, '0'), 'order-' || n, round(units * 0.9 / 1000000, 2)::text, 'EUR', '1.0836', 'ecb', at, 'exact',
         trunc(units * 0.92285 / 1000000, 6) * case when n % 10 = 0 then -1 else 1 end, 'EUR', 0.92285, 'ecb', at
       from (select n, 1000000 + (n::bigint * 7919) % 99000000 as units,
           now() - interval '1 year' + n * interval '365 days' / $3 as at
         from generate_series($4::integer, least($4::integer + $5::integer - 1, $3::integer)) n) g`,
      [storeId, wallet, lines, first, perStatement],
    )
  await db.query('analyze movements')
}

/** Adds up the columns by their names in the heading. No cell of these lines has a comma. */
async function compareSums(db: Database, storeId: string, file: string): Promise<void> {
  let head: readonly string[] | null = null
  let count = 0
  const sums = { amount: 0n, value: 0n }
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const cells = line.split(',')
    if (head === null) {
      head = cells
      continue
    }
    count++
    assert.equal(cells[head.indexOf('number')], String(count))
    for (const name of ['amount', 'value'] as const) {
      const cell = cells[head.indexOf(name)] ?? ''
      const [, sign = '', whole = '', fraction = ''] =
        /^(-?)(\d+)\.(\d{1,6})$/.exec(cell) ?? assert.fail(line)
      const units = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
      sums[name] += sign === '-' ? -units : units
    }
  }
  const [{ amount, value } = assert.fail()] = await db.query<Record<'amount' | 'value', string>>(
    `select sum(amount)::text as amount, trunc(sum(value) * 1000000)::text as value from movements where store_id = $1`,
    [storeId],
  )
  assert.equal(count, lines)
  assert.deepEqual([sums.amount, sums.value], [BigInt(amount), BigInt(value)])
}
