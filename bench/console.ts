/**
 * The cost of the console's screens for the browser and PostgreSQL: `npm run bench:console`, `-- --short` as in CI, or
 * `-- --live` for screens that stay open.
 *
 * Opens the screens of one store in a database with ten million checkouts (`--checkouts`), and weighs them as sent.
 * Opens the heaviest in Chromium under the conditions of bench:page, alternating with a payment page.
 *
 * - brotliBytes: the heaviest screen, with its style inlined, plus its script; requests and thirdPartyRequests until it
 *   is quiet, with its live stream; paintRatio: its median first contentful paint divided by the payment page's.
 * - buffersMax: for Home, Payments with each filter, and search by each kind of key, the blocks that one statement
 *   touches at most, as the console's role sends it; screenBuffersMax: all statements of one screen together. sortedMax:
 *   none may sort more rows than a screen shows.
 * - liveCores (`--live`): processor time of serve and PostgreSQL while 500 members have the list of payments open and
 *   something happens in the store five times a second; liveCoresAlone is the same without an open screen.
 * Fails if a budget is exceeded. The paint and the cores are only reported, because a busy machine changes them.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Browser, chromium } from 'playwright-core'
import { readConfig } from '../server/src/config/read.ts'
import type { Context } from '../server/src/context.ts'
import { type Database, openDatabase } from '../server/src/database/db.ts'
import { operatorActor } from '../server/src/events/append.ts'
import { buildApp } from '../server/src/http/app.ts'
import { buildConsole } from '../server/src/http/console/app.ts'
import { newId, type StoreId } from '../server/src/ids.ts'
import { openLog } from '../server/src/log.ts'
import { insertMember, insertMembership } from '../server/src/members/rows.ts'
import { openSession } from '../server/src/members/session.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { createKey } from '../server/src/stores/api-keys.ts'
import { watchScreens } from './console-live.ts'
import { type Cost, explain, openRecorder, type Recorder } from './console-plans.ts'
import { median, round, say, whole } from './figures.ts'
import { fill } from './fill.ts'
import { analyze } from './fill-rows.ts'
import { watchSteal } from './meter.ts'
import { cpuMs } from './pay-load.ts'
import { cpuSlowdown, freePort, line } from './slow-line.ts'
import { makeDatabase, onStand, type Stand, settingsFor, startServer } from './stand.ts'

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    live: { type: 'boolean', default: false },
    checkouts: { type: 'string' },
    /** A database that bench/fill.ts has filled, whose roles may log in. The run adds a member. */
    database: { type: 'string' },
    screens: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '20' },
  },
})
const defaultCheckouts = options.short ? '40000' : options.live ? '100000' : '10000000'
const checkouts = whole('checkouts', options.checkouts ?? defaultCheckouts, 1_000, 100_000_000)
/** Enough stores that each is a small part, as in a service in use. */
const stores = options.short ? 20 : 200
const rounds = options.short ? 1 : 9
const changesPerSecond = 5
const budget = { brotliBytes: 60 * 1024, requests: 6, thirdPartyRequests: 0, buffersMax: 300, sortedMax: 100 }
const patienceMs = 60_000

type Place = {
  readonly ctx: Context
  readonly db: Database
  readonly storeId: StoreId
  readonly environment: Record<string, string>
  /** Where the console is. */
  readonly origin: string
}

if (options.database === undefined)
  await onStand('1GB', async (stand) => {
    const { url, db } = await makeDatabase(stand.cluster, 'farthing')
    const started = performance.now()
    await fill(db, {
      stores,
      checkouts,
      seed: 'console',
      until: new Date(),
      onProgress: (done) => {
        if (done % 1_000_000 === 0) say(`${done} checkouts`)
      },
    })
    await analyze(db)
    say(`filled with ${checkouts} checkouts in ${Math.round((performance.now() - started) / 1_000)} s`)
    const place = await openPlace(url, db)
    await (options.live ? measureLive(stand, place) : measureScreens(place))
    await db.close()
  })
else {
  const db = openDatabase({ url: options.database, connections: 4, name: 'bench' })
  await measureScreens(await openPlace(options.database, db))
  await db.close()
}

async function openPlace(url: string, db: Database): Promise<Place> {
  const origin = `http://localhost:${await freePort()}`
  const environment = {
    ...settingsFor(url),
    BASE_URL: 'http://127.0.0.1:8402',
    CONSOLE_URL: origin,
    CONSOLE_PORT: new URL(origin).port,
    CONSOLE_DATABASE_URL: Object.assign(new URL(url), { username: 'farthing_console' }).href,
  }
  const ctx: Context = {
    config: readConfig(environment),
    db,
    log: openLog('silent'),
    metrics: openMetrics(),
    now: () => new Date(),
  }
  const [first] = await db.query<{ id: StoreId }>('select id from stores order by created_at, id limit 1')
  assert(first)
  return { ctx, db, storeId: first.id, environment, origin }
}

async function signIn({ ctx, storeId }: Place): Promise<string> {
  const now = ctx.now()
  const id = newId('mem', ctx.config.cell, now)
  const browser = { token: '', userAgent: 'bench', address: '127.0.0.1', network: '127.0' }
  const token = await ctx.db.transaction(async (tx) => {
    await insertMember(tx, { id, name: 'Bench' }, now)
    await insertMembership(tx, storeId, id, 'owner', now)
    return await openSession(ctx, tx, { memberId: id, passkeyId: null, browser, now })
  })
  return `farthing=${token}`
}

async function measureScreens(place: Place): Promise<void> {
  const { ctx, storeId, origin } = place
  const recorder = openRecorder(
    openDatabase({ url: ctx.config.consoleDatabaseUrl, connections: 8, name: 'bench' }),
  )
  const consoleApp = buildConsole(
    { ...ctx, db: recorder },
    { isDraining: false },
    { ctx, examine: async () => [] },
  )
  await consoleApp.listen({ host: '127.0.0.1', port: Number.parseInt(new URL(origin).port, 10) })
  const pages = buildApp(ctx, { isDraining: false })
  await pages.listen({ host: '127.0.0.1', port: 0 })
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  try {
    const cookie = await signIn(place)
    const costs = await costOf(place, recorder, cookie)
    const weights = await weigh(origin, cookie, `/stores/${storeId}`)
    const [heaviest = assert.fail('no screen')] = weights.toSorted((a, b) => b.bytes - a.bytes)
    for (const { path, bytes } of weights) say(`  ${bytes} bytes ${path.replace(storeId, '…')}`)
    const [open] = await ctx.db.query<{ id: string }>(
      `select id from checkouts where store_id = $1 and status = 'OPEN' order by expires_at desc limit 1`,
      [storeId],
    )
    assert(open)
    const page = `http://127.0.0.1:${(pages.server.address() as AddressInfo).port}/pay/${open.id}`
    const [ours, theirs]: [Visit[], Visit[]] = [[], []]
    for (let i = 0; i < rounds; i++) {
      ours.push(await visit(browser, `${origin}${heaviest.path}`, cookie))
      theirs.push(await visit(browser, page, ''))
    }
    const urls = ours.at(-1)?.urls ?? []
    const figures = {
      brotliBytes: heaviest.bytes,
      requests: urls.length,
      thirdPartyRequests: urls.filter((each) => new URL(each).origin !== origin).length,
      paintRatio: round(median(ours.map(({ paint }) => paint)) / median(theirs.map(({ paint }) => paint)), 2),
      paintMs: Math.round(median(ours.map(({ paint }) => paint))),
      buffersMax: Math.max(...costs.map(({ buffersOfOne }) => buffersOfOne)),
      screenBuffersMax: Math.max(...costs.map(({ buffers }) => buffers)),
      sortedMax: Math.max(...costs.map(({ sorted }) => sorted)),
      checkouts,
      rounds,
    }
    say(JSON.stringify(figures))
    for (const [name, most] of Object.entries(budget)) {
      const figure = figures[name as keyof typeof budget]
      assert(figure <= most, `${name} is ${figure}, over its budget of ${most}`)
    }
  } finally {
    await browser.close()
    await consoleApp.close()
    await pages.close()
    await recorder.close()
  }
}

/** Home, the list with each filter, and search by each kind of key. */
async function costOf({ ctx, storeId, origin }: Place, recorder: Recorder, cookie: string): Promise<Cost[]> {
  const [some] = await ctx.db.query<
    Record<'order' | 'checkout' | 'payment' | 'payer' | 'transaction', string>
  >(
    `select c.order_id as order, c.id as checkout, k.payment_id as payment, k.payer, k.transaction_hash as transaction
     from credits k join checkouts c on c.id = k.checkout_id
     where k.store_id = $1 and k.disposition = 'exact' order by k.included_at limit 1 offset 20`,
    [storeId],
  )
  assert(some)
  const day = (back: number) => new Date(ctx.now().getTime() - back * 86_400_000).toISOString().slice(0, 10)
  const lists = [
    ...['', 'status=OPEN', 'status=PROCESSING', 'status=COMPLETED', 'status=EXPIRED', 'status=CANCELED'],
    ...[`from=${day(9)}&to=${day(8)}`, `status=COMPLETED&from=${day(9)}&to=${day(8)}`, 'show=money'],
    ...['exact', 'late', 'underpaid', 'overpaid', 'unmatched'].map((kind) => `show=money&kind=${kind}`),
    ...['show=money&network=eip155:8453', 'show=money&least=20&most=21', 'show=money&least=999999'],
    `show=money&from=${day(9)}&to=${day(8)}`,
    ...Object.values(some).map((key) => `q=${encodeURIComponent(key)}`),
    `q=${encodeURIComponent('no such order')}`,
  ]
  const costs: Cost[] = []
  for (const path of [null, ...lists.map((query) => `/payments?${query}`)]) {
    // A member who signs in starts at Home.
    const full = path === null ? '/' : `/stores/${storeId}${path}`
    // Opens it once before, to fill what is cached between requests.
    await read(origin, full, cookie)
    recorder.sent.length = 0
    const { status, location } = await read(origin, full, cookie)
    if (location) await read(origin, location, cookie)
    else assert.equal(status, 200, full)
    const cost = await explain(recorder, storeId, [...recorder.sent])
    say(
      `  ${cost.buffers} buffers by ${cost.statements} statements, at most ${cost.buffersOfOne}, ${cost.sorted} sorted: ${path ?? 'Home'}`,
    )
    if (cost.buffersOfOne > budget.buffersMax || cost.sorted > budget.sortedMax) say(`    ${cost.worst}`)
    costs.push(cost)
  }
  return costs
}

/** Every screen of the navigation, and the first payment of the list. */
async function weigh(origin: string, cookie: string, base: string) {
  const linksIn = (text: string) =>
    [...text.matchAll(/href="(\/[^"#?]+)"/g)].flatMap(([, path]) => path ?? [])
  const first = await read(origin, `${base}/payments`, cookie)
  const one = linksIn(first.text).find((path) => path.includes('/checkouts/'))
  const screens = new Set(linksIn(first.text).filter((path) => /^\/stores\/\w+(\/[a-z]+)?$/.test(path)))
  const weights = []
  for (const path of [...screens, ...(one ? [one] : [])]) {
    const { status, bytes, text } = await read(origin, path, cookie, 'br')
    if (status !== 200) continue
    const [, script = assert.fail('no script')] = /src="(\/assets\/[^"]+)"/.exec(text || first.text) ?? []
    weights.push({ path, bytes: bytes + (await read(origin, script, cookie, 'br')).bytes })
  }
  return weights
}

type Answer = {
  readonly status: number
  readonly location: string | undefined
  readonly bytes: number
  /** Empty if it is compressed. */
  readonly text: string
}

function read(origin: string, path: string, cookie: string, encoding = 'identity'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get(`${origin}${path}`, { headers: { cookie, 'accept-encoding': encoding } }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const body = Buffer.concat(chunks)
        resolve({
          status: response.statusCode ?? 0,
          location: response.headers.location,
          bytes: body.length,
          text: response.headers['content-encoding'] === undefined ? String(body) : '',
        })
      })
    }).on('error', reject)
  })
}

type Visit = { readonly paint: number; readonly urls: readonly string[] }

async function visit(browser: Browser, url: string, cookie: string): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  })
  const [name = '', value = ''] = cookie.split('=')
  if (cookie) await context.addCookies([{ name, value, url }])
  const page = await context.newPage()
  const urls: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) urls.push(request.url())
  })
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', line)
  await session.send('Emulation.setCPUThrottlingRate', { rate: cpuSlowdown })
  await page.goto(url, { waitUntil: 'load', timeout: patienceMs })
  const end = Date.now() + patienceMs
  let paint = 0
  while (paint === 0) {
    assert(Date.now() < end, `${url} painted nothing`)
    await wait(200)
    paint = (await page.evaluate(
      "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0",
    )) as number
  }
  // The script's requests come after the paint.
  await wait(1_000)
  await context.close()
  return { paint, urls }
}

async function measureLive(stand: Stand, place: Place): Promise<void> {
  const { ctx, storeId, environment, origin } = place
  const seconds = whole('seconds', options.seconds, 1, 600)
  const cookies: string[] = []
  for (let i = 0; i < whole('screens', options.screens, 1, 1_000); i++) cookies.push(await signIn(place))
  const by = { actor: operatorActor('bench'), limit: null }
  const { text: key } = await createKey(ctx, storeId, by, {}, ctx.now())
  const serve = await startServer(stand, 'serve', environment)
  await startServer(stand, 'work', environment)
  const postgres = Number.parseInt(readFileSync(join(stand.folder, 'data', 'postmaster.pid'), 'utf8'), 10)
  let made = 0
  const change = async () => {
    const answer = await fetch(`${serve.address}/api/v1/checkouts`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ orderId: `live-${made++}`, priceAmount: '10', priceCurrency: 'USD' }),
    })
    assert.equal(answer.status, 201)
  }
  const measure = async (open: readonly string[]) => {
    const times: { at: number; serve: number; postgres: number }[] = []
    const base = `/stores/${storeId}`
    const watched = await watchScreens(
      {
        origin,
        screen: `${base}/payments`,
        stream: `${base}/live`,
        cookies: open,
        changesPerSecond,
        seconds,
      },
      change,
      () =>
        times.push({
          at: performance.now(),
          serve: cpuMs(serve.child.pid ?? 0),
          postgres: cpuMs(postgres),
        }),
    )
    const [a = assert.fail(), b = assert.fail()] = times
    const share = (ms: number) => round(ms / (b.at - a.at), 3)
    return { ...watched, serve: share(b.serve - a.serve), postgres: share(b.postgres - a.postgres) }
  }
  // With their code compiled and their statements prepared.
  await measure(cookies.slice(0, 20))
  const steal = watchSteal()
  const alone = await measure([])
  const watched = await measure(cookies)
  say(JSON.stringify({ alone, watched }))
  assert.equal(watched.failures, 0)
  assert(watched.refreshes > 0, 'no screen was told anything')
  say(
    JSON.stringify({
      liveCores: round(watched.serve + watched.postgres, 3),
      liveCoresAlone: round(alone.serve + alone.postgres, 3),
      refreshesPerSecond: round(watched.refreshes / seconds, 1),
      screens: cookies.length,
      changesPerSecond,
      seconds,
      stealPercent: steal().stealPercent,
    }),
  )
}
