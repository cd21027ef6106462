import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { freshDatabase } from '../../test/support/database.ts'
import { readConfig } from '../config/read.ts'
import type { Context } from '../context.ts'
import { openLog } from '../log.ts'
import { openMetrics } from '../metrics.ts'
import { refreshRates } from './refresh.ts'
import { readAllRates, replaceRates } from './rows.ts'
import { sources } from './sources.ts'

const log = openLog('silent')

const now = new Date('2026-11-13T17:00:00Z')
const minuteMs = 60_000

let origin = ''
let answer: (response: ServerResponse) => void = (response) => response.end()
const server = createServer((_, response) => answer(response))

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

after(() => {
  server.close()
  server.closeAllConnections()
})

async function freshContext(): Promise<Context> {
  const { url, db } = await freshDatabase()
  const config = readConfig({
    DATABASE_URL: url,
    BASE_URL: 'https://pay.example',
    EXCHANGE_RATES_URL: `${origin}/v2/exchange-rates?currency=USD&key=hidden`,
    ECB_RATES_URL: `${origin}/eurofxref-daily.xml`,
  })
  return { config, db, log, metrics: openMetrics(), now: () => now }
}

function sourceNamed(name: string) {
  const source = sources.find((candidate) => candidate.name === name)
  assert(source)
  return source
}
const exchange = sourceNamed('exchange')
const ecb = sourceNamed('ecb')

type Rates = Readonly<Record<string, string>>
const usual: Rates = { EUR: '0.860363', GBP: '0.75894', JPY: '154.31', MXN: '18.3', BTC: '0.0000104731876' }

function exchangeFile(rates: Rates = usual): string {
  return JSON.stringify({ data: { currency: 'USD', rates } })
}

function ecbFile(date: string, rates: Rates): string {
  const cubes = Object.entries(rates).map(
    ([currency, rate]) => `<Cube currency='${currency}' rate='${rate}'/>`,
  )
  return `<gesmes:Envelope><Cube><Cube time='${date}'>${cubes.join('\n')}</Cube></Cube></gesmes:Envelope>\n`
}

function serve(text: string): void {
  answer = (response) => response.end(text)
}

async function stored(ctx: Context, source: string): Promise<Rates> {
  const rows = (await readAllRates(ctx.db)).filter((row) => row.source === source)
  return Object.fromEntries(rows.map(({ currency, perBase }) => [currency, perBase]))
}

async function rateAge(ctx: Context, source: string): Promise<number | undefined> {
  const { values } = await ctx.metrics.rateAge.get()
  return values.find(({ labels }) => labels.source === source)?.value
}

test('both sources are fetched and stored exactly, and their age is measured', async () => {
  const ctx = await freshContext()
  serve(exchangeFile())
  await refreshRates(ctx, exchange, now)
  serve(ecbFile('2026-11-13', { USD: '1.1623', JPY: '179.36', CHF: '0.9214', PLN: '4.2270' }))
  await refreshRates(ctx, ecb, now)

  const { BTC: _, ...kept } = usual
  assert.deepEqual(await stored(ctx, 'exchange'), { USD: '1', ...kept })
  assert.deepEqual(await stored(ctx, 'ecb'), {
    EUR: '1',
    USD: '1.1623',
    JPY: '179.36',
    CHF: '0.9214',
    PLN: '4.2270',
  })
  assert.equal(await rateAge(ctx, 'exchange'), 0)
  assert.equal(await rateAge(ctx, 'ecb'), 17 * 3_600)
  const times = new Set(
    (await readAllRates(ctx.db)).map(({ source, asOf }) => `${source} ${asOf.toISOString()}`),
  )
  const readAt = '2026-11-13T17:00:00.000Z'
  const baselines = [`exchange baseline ${readAt}`, `ecb baseline ${readAt}`]
  assert.deepEqual(times, new Set([`exchange ${readAt}`, 'ecb 2026-11-13T00:00:00.000Z', ...baselines]))
})

test('a newer file replaces every rate and removes currencies that it no longer lists', async () => {
  const ctx = await freshContext()
  serve(exchangeFile())
  await refreshRates(ctx, exchange, now)
  const fewer = { EUR: '0.87', GBP: '0.75894', JPY: '154.31', CHF: '0.79' }
  serve(exchangeFile(fewer))
  await refreshRates(ctx, exchange, new Date(now.getTime() + minuteMs))
  assert.deepEqual(await stored(ctx, 'exchange'), { USD: '1', ...fewer })
})

test('an older file never replaces any part of a newer one; a file of the same time does', async () => {
  const ctx = await freshContext()
  const friday = { USD: '1.1623', JPY: '179.36', CHF: '0.9214', PLN: '4.2270' }
  const thursday = { USD: '1.1588', JPY: '178.90', CHF: '0.9230', SEK: '10.98' }
  serve(ecbFile('2026-11-13', friday))
  await refreshRates(ctx, ecb, now)
  serve(ecbFile('2026-11-12', thursday))
  await refreshRates(ctx, ecb, now)
  assert.deepEqual(await stored(ctx, 'ecb'), { EUR: '1', ...friday })
  assert.equal(await rateAge(ctx, 'ecb'), 17 * 3_600)

  const corrected = { ...friday, PLN: '4.2280' }
  serve(ecbFile('2026-11-13', corrected))
  await refreshRates(ctx, ecb, now)
  assert.deepEqual(await stored(ctx, 'ecb'), { EUR: '1', ...corrected })
})

test('storing one source’s rates leaves the other’s unchanged', async () => {
  const ctx = await freshContext()
  serve(exchangeFile())
  await refreshRates(ctx, exchange, now)
  const before = await stored(ctx, 'exchange')
  serve(ecbFile('2026-11-13', { USD: '1.1623', HUF: '384.1', CHF: '0.9214', PLN: '4.2270' }))
  await refreshRates(ctx, ecb, now)
  assert.deepEqual(await stored(ctx, 'exchange'), before)
})

test('files that arrive at once do not make each other fail, and the newest is stored completely', async () => {
  const { db } = await freshContext()
  const codes = ['AUD', 'BRL', 'CAD', 'DKK', 'EUR', 'GBP', 'HUF', 'ZAR']
  for (let round = 0; round < 20; round++) {
    const files = codes.map((left, i) => ({
      asOf: new Date(now.getTime() + round * minuteMs + i),
      perBase: new Map(
        [...codes.filter((code) => code !== left).toReversed(), 'USD'].map((code) => [code, `${i + 1}`]),
      ),
    }))
    await Promise.all(
      (round % 2 ? files : files.toReversed()).map((file) => replaceRates(db, exchange, file, now)),
    )
    const newest = files.at(-1)
    assert(newest)
    const rows = await readAllRates(db)
    const current = rows.filter(({ asOf }) => asOf.getTime() === newest.asOf.getTime())
    const perBase = new Map(current.map((row) => [row.currency, row.perBase]))
    assert.deepEqual(perBase, newest.perBase)
    assert(rows.every(({ asOf }) => asOf <= newest.asOf))
  }
})

test('every failure gives the operator a sentence and leaves the stored rates unchanged', async () => {
  const ctx = await freshContext()
  serve(exchangeFile())
  await refreshRates(ctx, exchange, now)
  const before = await readAllRates(ctx.db)
  const later = new Date(now.getTime() + minuteMs)
  const failures: readonly [answer: typeof answer, sentence: RegExp][] = [
    [(response) => response.writeHead(500).end('oops'), /could not be fetched: the server answered 500\.$/],
    [(response) => response.writeHead(429).end(exchangeFile()), /the server answered 429\.$/],
    [(response) => response.writeHead(204).end(), /the server answered 204\.$/],
    [
      (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      /could not be fetched: .*redirect\.$/,
    ],
    [(response) => response.socket?.destroy(), /could not be fetched: .+\.$/],
    [(response) => response.end(exchangeFile().slice(0, -2)), /were rejected: the file is not JSON\.$/],
    [
      (response) => response.end(exchangeFile({ EUR: '0.9' })),
      /were rejected: the file has too few usable currencies \(2 of/,
    ],
    [(response) => response.end(Buffer.from([0xff, 0xfe, 0x00])), /could not be fetched: .*encod.*\.$/],
    [
      (response) =>
        response
          .writeHead(200, { 'content-length': 5_000 })
          .end(exchangeFile(), () => response.socket?.destroy()),
      /could not be fetched: .+\.$/,
    ],
  ]
  for (const [failure, sentence] of failures) {
    answer = failure
    await assert.rejects(refreshRates(ctx, exchange, later), (error) => {
      assert(error instanceof Error)
      assert.match(error.message, /^The exchange rates \(EXCHANGE_RATES_URL\) /)
      assert.match(error.message, sentence)
      assert.doesNotMatch(error.message, /hidden/)
      return true
    })
    assert.deepEqual(await readAllRates(ctx.db), before)
  }
})

test('if a server does not listen, the error names its setting', async () => {
  const ctx = await freshContext()
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as AddressInfo
  closed.close()
  await once(closed, 'close')
  const config = { ...ctx.config, ecbRatesUrl: `http://127.0.0.1:${port}` }
  await assert.rejects(
    refreshRates({ ...ctx, config }, ecb, now),
    /The ecb rates \(ECB_RATES_URL\) .*ECONNREFUSED/,
  )
})

test('a response that never begins, or stalls, is abandoned at the time limit', async () => {
  const ctx = await freshContext()
  const limits = { timeoutMs: 100, bytesMax: 100_000 }
  const gaveUp = /could not be fetched: the response took too long\.$/
  answer = () => {}
  await assert.rejects(refreshRates(ctx, exchange, now, limits), gaveUp)
  answer = (response) => response.writeHead(200).write(exchangeFile().slice(0, 20))
  await assert.rejects(refreshRates(ctx, exchange, now, limits), gaveUp)
  assert.deepEqual(await readAllRates(ctx.db), [])
})

test('an endless response is cut off at the byte limit while it arrives', async () => {
  const ctx = await freshContext()
  const hungUp = Promise.withResolvers<void>()
  answer = (response) => {
    response.on('close', hungUp.resolve)
    const pour = () => {
      while (response.write(' '.repeat(16_384)));
    }
    response.on('drain', pour)
    pour()
  }
  await assert.rejects(
    refreshRates(ctx, exchange, now),
    /could not be fetched: the response is larger than 1048576 bytes\.$/,
  )
  await hungUp.promise
})

test('a response of exactly the byte limit is accepted, and one byte more is not', async () => {
  const ctx = await freshContext()
  const file = exchangeFile()
  serve(file)
  await refreshRates(ctx, exchange, now, { timeoutMs: 5_000, bytesMax: Buffer.byteLength(file) })
  serve(`${file} `)
  const limits = { timeoutMs: 5_000, bytesMax: Buffer.byteLength(file) }
  await assert.rejects(refreshRates(ctx, exchange, now, limits), /is larger than/)
})
