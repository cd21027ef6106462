/**
 * The cost of the payment page for a buyer, compared with the paywall of the x402 packages: `npm run bench:page`, or
 * `-- --short`.
 *
 * Both pages are served from this machine, compressed, and opened in Chromium without a cache, under the conditions of
 * a slow phone: 1.6 Mbit/s down, 0.75 up, 150 ms round trip, a processor four times slower. Each round opens both.
 *
 * - brotliBytes: the page, with its style inlined, plus its script, as sent; jsGzipBytes: the script alone with gzip.
 * - requests, thirdPartyRequests: made by our page until it is quiet; the live feed is one of them.
 * - lcpMs, lcpRatio: median largest contentful paint; ours divided by the paywall's.
 * Fails if a budget is exceeded. The ratio has a goal (0.2) but is only reported, because a busy machine changes it.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { brotliCompressSync } from 'node:zlib'
import { type Browser, chromium } from 'playwright-core'
import { readConfig } from '../server/src/config/read.ts'
import type { Context } from '../server/src/context.ts'
import { startCluster } from '../server/src/dev/postgres.ts'
import { operatorActor } from '../server/src/events/append.ts'
import { buildApp } from '../server/src/http/app.ts'
import { openLog } from '../server/src/log.ts'
import { openMetrics } from '../server/src/metrics.ts'
import { createKey } from '../server/src/stores/api-keys.ts'
import { createStore } from '../server/src/stores/create.ts'
import { registerWallet } from '../server/src/stores/wallets.ts'
import { median } from './figures.ts'
import { cpuSlowdown, freePort, line } from './slow-line.ts'
import { makeDatabase } from './stand.ts'

const { values: options } = parseArgs({ options: { short: { type: 'boolean', default: false } } })
const rounds = options.short ? 1 : 9
const budget = { brotliBytes: 20 * 1024, jsGzipBytes: 8 * 1024, requests: 4, thirdPartyRequests: 0 }
/** A page is quiet when its largest paint has not changed for this long. */
const quietMs = 2_000
const patienceMs = 60_000
const execute = promisify(execFile)
const root = new URL('../', import.meta.url).pathname

const folder = await mkdtemp(join(tmpdir(), 'farthing-bench-'))
const cluster = await startCluster(folder, ['cluster_name=farthing_bench'])
const closing: (() => unknown)[] = [
  async () => {
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  },
]
try {
  const ours = await openOurs()
  const paywall = await openPaywall(ours.terms)
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  closing.push(() => browser.close())
  const [mine, theirs]: [Visit[], Visit[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    mine.push(await visit(browser, ours.url))
    theirs.push(await visit(browser, paywall.url))
  }
  const lcpMs = median(mine.map(({ lcp }) => lcp))
  const paywallLcpMs = median(theirs.map(({ lcp }) => lcp))
  const urls = mine.at(-1)?.urls ?? []
  const figures = {
    ...(await weigh(ours.url)),
    requests: urls.length,
    thirdPartyRequests: urls.filter((url) => new URL(url).origin !== new URL(ours.url).origin).length,
    lcpMs: Math.round(lcpMs),
    lcpRatio: Math.round((lcpMs / paywallLcpMs) * 1_000) / 1_000,
    paywallLcpMs: Math.round(paywallLcpMs),
    paywallBytes: paywall.bytes,
    rounds,
  }
  process.stdout.write(`${urls.map((url) => `  ${url}`).join('\n')}\n${JSON.stringify(figures)}\n`)
  for (const [name, most] of Object.entries(budget)) {
    const figure = figures[name as keyof typeof budget]
    assert(figure <= most, `${name} is ${figure}, over its budget of ${most}`)
  }
} finally {
  for (const close of closing.toReversed()) await close()
}

/** Our page, with an open checkout. */
async function openOurs(): Promise<{ url: string; terms: object }> {
  const { url: database, db } = await makeDatabase(cluster, 'farthing')
  closing.push(() => db.close())
  const origin = `http://127.0.0.1:${await freePort()}`
  const config = readConfig({ DATABASE_URL: database, BASE_URL: origin, ADDRESS_REQUESTS_PER_SECOND: '1000' })
  const ctx: Context = { config, db, log: openLog('silent'), metrics: openMetrics(), now: () => new Date() }
  const app = buildApp(ctx, { isDraining: false })
  closing.push(() => app.close())
  await app.listen({ host: '127.0.0.1', port: Number.parseInt(new URL(origin).port, 10) })
  const actor = operatorActor('bench')
  const store = await createStore(ctx, { name: 'Juniper & Pine', mode: 'live' }, ctx.now())
  const wallet = {
    walletAddress: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    custodialType: 'NON_CUSTODIAL',
  } as const
  await registerWallet(ctx, store.id, actor, { family: 'EVM', ...wallet }, ctx.now())
  const { text } = await createKey(ctx, store.id, { actor, limit: null }, {}, ctx.now())
  const made = await fetch(`${origin}/api/v1/checkouts`, {
    method: 'POST',
    headers: { 'x-api-key': text, 'content-type': 'application/json' },
    body: JSON.stringify({ orderId: 'Order 2041', priceAmount: '48.00', priceCurrency: 'USD' }),
  })
  const { checkoutUrl } = (await made.json()) as { checkoutUrl: string }
  return { url: checkoutUrl, terms: (await (await fetch(checkoutUrl)).json()) as object }
}

/** The stock paywall for the same terms, unpacked into a temporary folder because it is not a dependency. */
async function openPaywall(terms: object): Promise<{ url: string; bytes: number }> {
  const unpacked = join(folder, 'paywall')
  await mkdir(unpacked)
  await execute('npm', ['pack', '@x402/paywall@2.12.0', '--silent'], { cwd: unpacked })
  await execute('tar', ['xzf', 'x402-paywall-2.12.0.tgz'], { cwd: unpacked })
  // It depends on viem, which is installed here.
  await symlink(join(root, 'node_modules'), join(unpacked, 'node_modules'))
  const { evmPaywall } = (await import(join(unpacked, 'package/dist/esm/evm/index.js'))) as {
    evmPaywall: { generateHtml(accepted: unknown, required: object, config: object): string }
  }
  const { accepts } = terms as { accepts: unknown[] }
  const page = brotliCompressSync(
    evmPaywall.generateHtml(accepts[0], terms, { testnet: false, appName: 'Juniper' }),
  )
  const server = createServer((_request, response) =>
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-encoding': 'br' })
      .end(page),
  )
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
  )
  return { url: `http://127.0.0.1:${await listen(server)}/`, bytes: page.length }
}

type Visit = { readonly lcp: number; readonly urls: readonly string[] }

async function visit(browser: Browser, url: string): Promise<Visit> {
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  })
  const page = await context.newPage()
  const urls: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith('data:')) urls.push(request.url())
  })
  await page.addInitScript(
    `lcp = { at: 0, seen: 0 }; new PerformanceObserver((list) => { for (const entry of list.getEntries()) lcp = { at: entry.startTime, seen: performance.now() } }).observe({ type: 'largest-contentful-paint', buffered: true })`,
  )
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', line)
  await session.send('Emulation.setCPUThrottlingRate', { rate: cpuSlowdown })
  // Requests to other hosts fail at once, as on a machine without internet access.
  await page.route(
    (address) => address.origin !== new URL(url).origin,
    (route) => route.abort(),
  )
  await page.goto(url, { waitUntil: 'load', timeout: patienceMs })
  const end = Date.now() + patienceMs
  let lcp = { at: 0, quiet: 0 }
  while (lcp.at === 0 || lcp.quiet < quietMs) {
    assert(Date.now() < end, `${url} painted nothing`)
    await wait(200)
    lcp = (await page.evaluate('({ at: lcp.at, quiet: performance.now() - lcp.seen })')) as typeof lcp
  }
  await context.close()
  return { lcp: lcp.at, urls }
}

/** The bytes sent to a browser that accepts brotli, and to one that accepts gzip. */
async function weigh(url: string): Promise<{ brotliBytes: number; jsGzipBytes: number }> {
  const size = async (address: string, encoding: string) => {
    const answer = await fetch(address, { headers: { accept: 'text/html', 'accept-encoding': encoding } })
    return {
      length: Number.parseInt(answer.headers.get('content-length') ?? '', 10),
      text: await answer.text(),
    }
  }
  const html = await size(url, 'br')
  const [, path = assert.fail('no script')] = /src="([^"]*\/assets\/[^"]+)"/.exec(html.text) ?? []
  const script = new URL(path, url).toString()
  return {
    brotliBytes: html.length + (await size(script, 'br')).length,
    jsGzipBytes: (await size(script, 'gzip')).length,
  }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
