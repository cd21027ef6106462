import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { freshDatabase } from '../../test/support/database.ts'
import { readConfig } from '../config/read.ts'
import type { Context } from '../context.ts'
import { openLog } from '../log.ts'
import { openMetrics } from '../metrics.ts'
import { parsePrice } from '../money.ts'
import { Problem } from '../problems.ts'
import { listCurrencies } from './list.ts'
import { priceInUnits, type Quote, quoteCurrency } from './quote.ts'
import { replaceRates } from './rows.ts'
import { sources } from './sources.ts'

const log = openLog('silent')

const now = new Date('2026-11-13T17:00:00Z')
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const ecbAsOf = new Date('2026-11-13T00:00:00Z')

async function freshContext(): Promise<Context> {
  const { url, db } = await freshDatabase()
  const config = readConfig({ DATABASE_URL: url, BASE_URL: 'https://pay.example' })
  return { config, db, log, metrics: openMetrics(), now: () => now }
}

async function store(
  ctx: Context,
  name: string,
  asOf: Date,
  rates: Readonly<Record<string, string>>,
  readAt = now,
) {
  const source = sources.find((candidate) => candidate.name === name)
  assert(source)
  await replaceRates(ctx.db, source, { asOf, perBase: new Map(Object.entries(rates)) }, readAt)
}

const exchangeRates = { USD: '1', EUR: '0.860363', JPY: '154.31' }
const ecbRates = { EUR: '1', USD: '1.1623', JPY: '179.36', ISK: '146.80' }

async function loadedContext(): Promise<Context> {
  const ctx = await freshContext()
  await store(ctx, 'exchange', now, exchangeRates)
  await store(ctx, 'ecb', ecbAsOf, ecbRates)
  return ctx
}

function isProblem(code: string, retryAfterSeconds: number | undefined, detail: RegExp) {
  return (error: unknown) => {
    assert(error instanceof Problem)
    assert.equal(error.code, code)
    assert.equal(error.extras.retryAfterSeconds, retryAfterSeconds)
    assert.match(error.message, detail)
    return true
  }
}

test('USD needs no rate, so it can always be priced', async () => {
  assert.equal(await quoteCurrency(await freshContext(), 'USD', now), null)
})

test('a fresh exchange rate is preferred to the ECB’s, and the ECB covers what the exchange lacks', async () => {
  const ctx = await loadedContext()
  assert.deepEqual(await quoteCurrency(ctx, 'JPY', now), {
    source: 'exchange',
    perBase: '154.31',
    usdPerBase: '1',
    asOf: now,
  })
  assert.deepEqual(await quoteCurrency(ctx, 'ISK', now), {
    source: 'ecb',
    perBase: '146.80',
    usdPerBase: '1.1623',
    asOf: ecbAsOf,
  })
})

test('a rate is used up to its maximum age and not a millisecond longer', async () => {
  const ctx = await loadedContext()
  const sourceAt = async (time: number) => (await quoteCurrency(ctx, 'EUR', new Date(time)))?.source
  const exchangeEnd = now.getTime() + 5 * minuteMs
  assert.equal(await sourceAt(exchangeEnd), 'exchange')
  assert.equal(await sourceAt(exchangeEnd + 1), 'ecb')
  const ecbEnd = ecbAsOf.getTime() + 120 * hourMs
  assert.equal(await sourceAt(ecbEnd), 'ecb')
  await assert.rejects(sourceAt(ecbEnd + 1), isProblem('rate_unavailable', 60, /no fresh EUR rate/))
})

test('a stale rate is refused with its age, when to try again, and what works until then', async () => {
  const ctx = await loadedContext()
  const later = new Date(ecbAsOf.getTime() + 121 * hourMs)
  await assert.rejects(
    quoteCurrency(ctx, 'EUR', later),
    isProblem(
      'rate_unavailable',
      60,
      /exchange is from 2026-11-13T17:00:00.000Z, the one from ecb is from 2026-11-13T00:00:00.000Z\. Try again in 60 seconds, or price the checkout in USD/,
    ),
  )
  await assert.rejects(
    quoteCurrency(ctx, 'ISK', later),
    isProblem('rate_unavailable', 3_600, /Try again in 3600 seconds/),
  )
})

test('a rate further in the future than its maximum age is not used', async () => {
  const ctx = await loadedContext()
  const ahead = new Date(now.getTime() - 5 * minuteMs)
  assert.equal((await quoteCurrency(ctx, 'EUR', ahead))?.source, 'exchange')
  assert.equal((await quoteCurrency(ctx, 'EUR', new Date(ahead.getTime() - 1)))?.source, 'ecb')
})

test('a currency that no source covers is refused for good, with what to use instead', async () => {
  const ctx = await loadedContext()
  const detail = /No rate source covers XTS\. Price the checkout in USD, .*GET \/api\/v1\/currencies/
  await assert.rejects(quoteCurrency(ctx, 'XTS', now), isProblem('currency_unsupported', undefined, detail))
})

test('a fixed rate takes precedence over every source and is marked as fixed', async () => {
  const loaded = await loadedContext()
  const ctx = { ...loaded, config: { ...loaded.config, fixedRates: new Map([['EUR', '0.86']]) } }
  const fixed = { source: 'fixed', perBase: '0.86', usdPerBase: '1', asOf: now }
  assert.deepEqual(await quoteCurrency(ctx, 'EUR', now), fixed)
  assert.equal((await quoteCurrency(ctx, 'JPY', now))?.source, 'exchange')
})

test('until every source has been reached, no currency is refused as unsupported', async () => {
  const ctx = await freshContext()
  await assert.rejects(
    quoteCurrency(ctx, 'EUR', now),
    isProblem('rate_unavailable', 60, /exchange was never reached, ecb was/),
  )
  await store(ctx, 'exchange', now, exchangeRates)
  await assert.rejects(
    quoteCurrency(ctx, 'ISK', now),
    isProblem('rate_unavailable', 3_600, /: ecb was never reached\./),
  )
  assert.equal((await quoteCurrency(ctx, 'EUR', now))?.source, 'exchange')
})

test('a currency is never priced with the USD rate of another file', async () => {
  const ctx = await loadedContext()
  await ctx.db.query(
    "update rates set as_of = as_of - interval '1 minute' where source = 'exchange' and currency = 'JPY'",
  )
  assert.equal((await quoteCurrency(ctx, 'JPY', now))?.source, 'ecb')
})

test('if two fresh sources differ by more than a tenth, neither is used and the refusal says so', async () => {
  const ctx = await loadedContext()
  const quoteWith = async (jpy: string) => {
    await store(ctx, 'exchange', now, { ...exchangeRates, JPY: jpy })
    return (await quoteCurrency(ctx, 'JPY', now))?.source
  }
  // By the ECB, a dollar is 154.3147 yen.
  assert.equal(await quoteWith('140.29'), 'exchange')
  assert.equal(await quoteWith('169.74'), 'exchange')
  for (const jpy of ['140.28', '169.75', '0.0154', '1543147']) {
    await assert.rejects(
      quoteWith(jpy),
      isProblem(
        'rate_unavailable',
        60,
        /exchange and ecb differ by more than 10 %.* Price the checkout in USD/,
      ),
    )
  }
  const afterTheExchange = new Date(now.getTime() + 6 * minuteMs)
  assert.equal((await quoteCurrency(ctx, 'JPY', afterTheExchange))?.source, 'ecb')
})

test('if a rate from the only source jumps, it is not used until it has stayed there for ten minutes', async () => {
  const ctx = await freshContext()
  const at = (minutes: number) => new Date(now.getTime() + minutes * minuteMs)
  const read = async (minutes: number, jpy: string) =>
    await store(ctx, 'exchange', at(minutes), { ...exchangeRates, JPY: jpy }, at(minutes))
  const quoteAt = async (minutes: number) => (await quoteCurrency(ctx, 'JPY', at(minutes)))?.perBase
  const refuses = async (minutes: number, retryAfterSeconds: number) =>
    await assert.rejects(
      quoteAt(minutes),
      isProblem(
        'rate_unavailable',
        retryAfterSeconds,
        /JPY rate from exchange, the only source .* moved by more than 10 % at .* Price the checkout in USD/,
      ),
    )
  await read(0, '154.31')
  // A tenth is not a jump.
  await read(1, '169.74')
  assert.equal(await quoteAt(1), '169.74')
  await read(2, '15.4')
  await refuses(2, 600)
  assert.equal((await quoteCurrency(ctx, 'EUR', at(2)))?.source, 'exchange')
  assert(!(await listCurrencies(ctx, at(2))).some(({ code }) => code === 'JPY'))
  // A return is another jump.
  await read(3, '154.31')
  await refuses(3, 600)
  await read(12, '154.40')
  await refuses(12, 60)
  await read(13, '154.40')
  assert.equal(await quoteAt(13), '154.40')
})

test('a second source confirms a jump at once', async () => {
  const ctx = await loadedContext()
  await store(ctx, 'exchange', now, { ...exchangeRates, JPY: '308.62' })
  await assert.rejects(quoteCurrency(ctx, 'JPY', now), isProblem('rate_unavailable', 60, /differ by more/))
  await store(ctx, 'ecb', ecbAsOf, { ...ecbRates, JPY: '358.72' })
  assert.equal((await quoteCurrency(ctx, 'JPY', now))?.source, 'exchange')
})

test('a jump of the dollar in a source holds back every currency that only this source has', async () => {
  const ctx = await loadedContext()
  const nextDay = new Date(ecbAsOf.getTime() + 24 * hourMs)
  const readAt = new Date(nextDay.getTime() + 16 * hourMs)
  await store(ctx, 'ecb', nextDay, { ...ecbRates, USD: '2.1623' }, readAt)
  await assert.rejects(
    quoteCurrency(ctx, 'ISK', readAt),
    isProblem('rate_unavailable', 7_200, /ISK rate from ecb/),
  )
  const later = new Date(readAt.getTime() + 2 * hourMs)
  assert.equal((await quoteCurrency(ctx, 'ISK', later))?.usdPerBase, '2.1623')
})

test('a rate is not compared with one from more than a week ago', async () => {
  const ctx = await freshContext()
  const old = new Date(now.getTime() - 8 * 24 * hourMs)
  await store(ctx, 'exchange', old, { USD: '1', JPY: '154', EUR: '0.8' }, old)
  await store(ctx, 'exchange', now, { USD: '1', JPY: '300', EUR: '0.8' })
  assert.equal((await quoteCurrency(ctx, 'JPY', now))?.perBase, '300')
})

test('a code outside ISO 4217 fails an assertion', async () => {
  const ctx = await freshContext()
  await assert.rejects(quoteCurrency(ctx, 'BTC', now), { name: 'AssertionError' })
})

test('rates of any length come back from the database digit for digit', async () => {
  const ctx = await freshContext()
  const long = `${'9'.repeat(30)}.${'0'.repeat(29)}1`
  const tiny = `0.${'0'.repeat(29)}1`
  await store(ctx, 'ecb', ecbAsOf, { EUR: '1', USD: long, JPY: tiny })
  const quote = await quoteCurrency(ctx, 'JPY', now)
  assert.deepEqual(quote, { source: 'ecb', perBase: tiny, usdPerBase: long, asOf: ecbAsOf })
})

function priceOf(text: string) {
  const price = parsePrice(text)
  assert(price)
  return price
}

test('prices are converted to units and rounded up once', async () => {
  const ctx = await loadedContext()
  const inUnits = async (text: string, currency: string) =>
    priceInUnits(priceOf(text), await quoteCurrency(ctx, currency, now), 6)
  assert.equal(await inUnits('12.50', 'USD'), 12_500_000n)
  assert.equal(await inUnits('0.000001', 'USD'), 1n)
  assert.equal(await inUnits('154.31', 'JPY'), 1_000_000n)
  assert.equal(await inUnits('1000', 'JPY'), 6_480_462n)
  assert.equal(await inUnits('0.000001', 'JPY'), 1n)
  assert.equal(await inUnits('146.80', 'ISK'), 1_162_300n)
})

const digits = fc.stringMatching(/^\d{1,30}$/)
const anyRate = fc.tuple(digits, fc.option(digits)).map(toText).filter(isPositive)
const anyPrice = fc
  .tuple(fc.stringMatching(/^(0|[1-9]\d{0,14})$/), fc.option(fc.stringMatching(/^\d{1,6}$/)))
  .map(toText)
  .filter(isPositive)

function toText([whole, fraction]: [string, string | null]): string {
  return fraction === null ? whole : `${whole}.${fraction}`
}

function isPositive(text: string): boolean {
  return /[1-9]/.test(text)
}

/** The decimal × 10^30, computed from its digits. */
function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.')
  return BigInt(whole + fraction.padEnd(30, '0'))
}

/** Whether units is the smallest integer worth at least price × usdPerBase ÷ perBase. */
function isLeast(
  units: bigint,
  price: string,
  usdPerBase: string,
  perBase: string,
  decimals: number,
): boolean {
  const owed = scaled(price) * scaled(usdPerBase) * 10n ** BigInt(decimals)
  const worth = (count: bigint) => count * scaled(perBase) * 10n ** 30n
  return worth(units) >= owed && worth(units - 1n) < owed
}

test('for any price, rates and token, the store gets no less than it asked for and the buyer pays no unit too many', () => {
  const anyDecimals = fc.integer({ min: 0, max: 18 })
  fc.assert(
    fc.property(anyPrice, anyRate, anyRate, anyDecimals, (price, usdPerBase, perBase, decimals) => {
      const quote: Quote = { source: 'ecb', perBase, usdPerBase, asOf: now }
      assert(isLeast(priceInUnits(priceOf(price), quote, decimals), price, usdPerBase, perBase, decimals))
    }),
    { numRuns: 1_000 },
  )
  fc.assert(
    fc.property(anyPrice, anyDecimals, (price, decimals) => {
      assert(isLeast(priceInUnits(priceOf(price), null, decimals), price, '1', '1', decimals))
    }),
  )
})
