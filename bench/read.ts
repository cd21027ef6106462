/**
 * The read rate of one `serve` process, compared with a process that only sends the same bytes: `npm run bench:read`,
 * or `-- --short` as in CI.
 *
 * Three reads: the 402 of a checkout (`POST /api/v1/checkouts/{id}` without a payment), its payment page, compressed as
 * for a browser, and the store's own read with its key. Each is also answered by bare `node:http` and by Fastify, which
 * send the same status, headers and body from memory. The three sides take turns within a round, in reverse order in
 * every other one, with one wrk and 64 connections, which ask for several checkouts in turn. A ratio is the median over
 * the rounds of our rate divided by theirs. On a shared machine, the processor time per request says more.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { readConfig } from '../server/src/config/read.ts'
import type { Database } from '../server/src/database/db.ts'
import { operatorActor } from '../server/src/events/append.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { createKey } from '../server/src/stores/api-keys.ts'
import { median, round, say, whole } from './figures.ts'
import { fill } from './fill.ts'
import { watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import type { Sample } from './read-floor.ts'
import { makeDatabase, onStand, type Stand, settingsFor, startServer } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    /** Length of each measurement. A round has nine: three sides for each of three reads. */
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '5' },
    short: { type: 'boolean', default: false },
  },
})
const seconds = options.short ? 1 : whole('seconds', options.seconds, 1, 60)
const rounds = options.short ? 2 : whole('rounds', options.rounds, 1, 20)
const warmUpSeconds = options.short ? 1 : 5

const connections = 64
const checkoutsAsked = 32
const script = new URL('read.lua', import.meta.url).pathname
const floor = new URL('read-floor.ts', import.meta.url).pathname
const execute = promisify(execFile)

const reads = ['402', 'Page', 'Read'] as const
type Read = (typeof reads)[number]
type Side = { readonly name: 'ours' | 'bare' | 'fastify'; readonly address: string; readonly pid: number }
type Asked = Pick<Sample, 'method' | 'path'> & { readonly headers: Readonly<Record<string, string>> }
type Load = { perSecond: number; cpuMs: number; postgresMs: number }

await onStand('256MB', measure)

async function measure(stand: Stand): Promise<void> {
  const { url, db } = await makeDatabase(stand.cluster, 'farthing')
  const environment = settingsFor(url)
  const { ids, key } = await prepare(db, environment)
  const asked: Readonly<Record<Read, Asked>> = {
    402: { method: 'POST', path: '/api/v1/checkouts/:checkoutId', headers: {} },
    Page: {
      method: 'GET',
      path: '/pay/:checkoutId',
      headers: { accept: 'text/html,application/xhtml+xml', 'accept-encoding': 'gzip, deflate, br' },
    },
    Read: { method: 'GET', path: '/api/v1/checkouts/:checkoutId', headers: { 'x-api-key': key } },
  }
  const serve = await startServer(stand, 'serve', environment)
  const samples = await Promise.all(reads.map((read) => sample(serve.address, asked[read], ids[0] ?? '')))
  assert.deepEqual(
    samples.map(({ status }) => status),
    [402, 200, 200],
  )
  const file = join(stand.folder, 'samples.json')
  await writeFile(file, JSON.stringify(samples))
  const sides: readonly Side[] = [
    { name: 'ours', address: serve.address, pid: serve.child.pid ?? 0 },
    await startFloor(stand, 'bare', file),
    await startFloor(stand, 'fastify', file),
  ]
  const postgres = Number.parseInt(readFileSync(join(stand.folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  const ask = (side: Side, read: Read, length: number) =>
    load(side, asked[read], ids, length, { postgres, isRefused: read === '402' })

  // Measure processes that have been up for a while, with their code compiled and their statements prepared.
  for (const side of sides)
    for (const read of side.name === 'ours' ? reads : reads.slice(0, options.short ? 1 : reads.length))
      await ask(side, read, side.name === 'ours' ? warmUpSeconds : 1)

  const steal = watchSteal()
  const loads = new Map<string, Load[]>()
  for (let i = 0; i < rounds; i++)
    for (const read of reads) {
      for (const side of i % 2 === 0 ? sides : sides.toReversed()) {
        const each = loads.get(`${side.name} ${read}`) ?? []
        each.push(await ask(side, read, seconds))
        loads.set(`${side.name} ${read}`, each)
      }
      const last = sides.map(({ name }) => {
        const one = loads.get(`${name} ${read}`)?.at(-1)
        return `${name} ${Math.round(one?.perSecond ?? 0)}/s, ${round(one?.cpuMs ?? 0, 3)} ms`
      })
      say(`round ${i + 1}, ${read}: ${last.join('; ')}`)
    }
  const { stealPercent, warning } = steal()
  if (warning) say(warning)
  await db.close()
  report((side, read) => loads.get(`${side} ${read}`) ?? [], stealPercent)
}

/** A store with history, its key, and some of its checkouts that can be paid. */
async function prepare(db: Database, environment: Readonly<Record<string, string>>) {
  const now = new Date()
  const ctx = {
    config: readConfig(environment),
    db,
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => now,
  }
  const [storeId] = await fill(db, { stores: 5, checkouts: 20_000, seed: 'read', until: now })
  assert(storeId)
  await db.query('analyze')
  const rows = await db.query<{ id: string }>(
    `select id from checkouts where store_id = $1 and status = 'OPEN' order by expires_at desc limit $2`,
    [storeId, checkoutsAsked],
  )
  assert.equal(rows.length, checkoutsAsked)
  return {
    ids: rows.map(({ id }) => id),
    key: (await createKey(ctx, storeId, { actor: operatorActor('bench'), limit: null }, {}, now)).text,
  }
}

/** One of our answers, without the headers that Node adds by itself. */
async function sample(address: string, { method, path, headers }: Asked, id: string): Promise<Sample> {
  const own = ['connection', 'date', 'keep-alive', 'transfer-encoding']
  return await new Promise((resolve, reject) => {
    const asking = request(
      `${address}${path.replace(':checkoutId', id)}`,
      { method, headers },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            method,
            path,
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(
              Object.entries(response.headers).flatMap(([name, value]) =>
                own.includes(name) ? [] : [[name, String(value)]],
              ),
            ),
            body: Buffer.concat(chunks).toString('base64'),
          }),
        )
      },
    )
    asking.on('error', reject).end()
  })
}

async function startFloor({ children }: Stand, name: 'bare' | 'fastify', file: string): Promise<Side> {
  const child = spawn(process.execPath, [floor, name, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.add(child)
  const said = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk)))
    child.once('exit', (code) => reject(new Error(`${name} exited with ${code}`)))
  })
  return { name, address: said.trim(), pid: child.pid ?? 0 }
}

/** Every answer must have the status expected: wrk counts those above 399. */
async function load(
  side: Side,
  { method, path, headers }: Asked,
  ids: readonly string[],
  length: number,
  { postgres, isRefused }: { postgres: number; isRefused: boolean },
): Promise<Load> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}|`)
  const before = [cpuMs(side.pid), cpuMs(postgres)] as const
  const { stdout } = await execute('wrk', [
    ...['-t1', `-c${connections}`, `-d${length}s`, '--timeout', '10s', '-s', script, side.address, '--'],
    ...[method, lines.join(''), ...ids.map((id) => path.replace(':checkoutId', id))],
  ])
  const after = [cpuMs(side.pid), cpuMs(postgres)] as const
  const { requests, microseconds, refused, broken } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  assert.equal(refused, isRefused ? requests : 0, `${side.name} gave another answer`)
  assert.equal(broken, 0, `a connection to ${side.name} broke`)
  return {
    perSecond: requests / (microseconds / 1e6),
    cpuMs: (after[0] - before[0]) / requests,
    postgresMs: (after[1] - before[1]) / requests,
  }
}

function report(of: (side: Side['name'], read: Read) => readonly Load[], stealPercent: number): void {
  const middle = (loads: readonly Load[], field: keyof Load, digits: number) =>
    round(median(loads.map((load) => load[field])), digits)
  const ratio = (read: Read, other: 'bare' | 'fastify') =>
    round(
      median(of('ours', read).map(({ perSecond }, i) => perSecond / (of(other, read)[i]?.perSecond ?? 0))),
      2,
    )
  const each = <Value>(make: (read: Read) => Value) =>
    Object.fromEntries(reads.map((read) => [read, make(read)]))
  say(
    JSON.stringify({
      ...Object.fromEntries(reads.map((read) => [`ratio${read}`, ratio(read, 'bare')])),
      ...Object.fromEntries(reads.map((read) => [`ratio${read}Fastify`, ratio(read, 'fastify')])),
      cpuMs: each((read) => ({
        serve: middle(of('ours', read), 'cpuMs', 3),
        postgres: middle(of('ours', read), 'postgresMs', 3),
        bare: middle(of('bare', read), 'cpuMs', 3),
        fastify: middle(of('fastify', read), 'cpuMs', 3),
      })),
      perSecond: each((read) => ({
        ours: middle(of('ours', read), 'perSecond', 0),
        bare: middle(of('bare', read), 'perSecond', 0),
        fastify: middle(of('fastify', read), 'perSecond', 0),
      })),
      connections,
      seconds,
      rounds,
      stealPercent,
    }),
  )
}
