import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshDatabase } from '../../test/support/database.ts'
import { readConfig } from '../config/read.ts'
import type { Context } from '../context.ts'
import { openLog } from '../log.ts'
import { openMetrics } from '../metrics.ts'
import { currencies } from './iso4217.ts'
import { listCurrencies } from './list.ts'
import { quoteCurrency } from './quote.ts'
import { replaceRates } from './rows.ts'
import { sources } from './sources.ts'

const log = openLog('silent')

const now = new Date('2026-11-13T17:00:00Z')
const stale = new Date('2026-11-13T16:00:00Z')
const ecbAsOf = new Date('2026-11-13T00:00:00Z')

async function freshContext(): Promise<Context> {
  const { url, db } = await freshDatabase()
  const config = readConfig({ DATABASE_URL: url, BASE_URL: 'https://pay.example' })
  return { config, db, log, metrics: openMetrics(), now: () => now }
}

async function loadedContext(exchangeAsOf: Date): Promise<Context> {
  const ctx = await freshContext()
  const [exchange, ecb] = sources
  assert(exchange && ecb)
  const exchangeRates = { USD: '1', JPY: '154.31', AED: '3.6725', EUR: '0.86' }
  const ecbRates = { EUR: '1', USD: '1.1623', JPY: '179.36', ISK: '146.80' }
  await replaceRates(
    ctx.db,
    exchange,
    {
      asOf: exchangeAsOf,
      perBase: new Map(Object.entries(exchangeRates)),
    },
    now,
  )
  await replaceRates(ctx.db, ecb, { asOf: ecbAsOf, perBase: new Map(Object.entries(ecbRates)) }, now)
  return ctx
}

const usd = { code: 'USD', name: 'US Dollar', source: 'fixed', asOf: null }

test('USD is listed first and needs no source', async () => {
  assert.deepEqual(await listCurrencies(await freshContext(), now), [usd])
})

test('currencies are sorted by code, each with the source that would price it', async () => {
  const exchange = { source: 'exchange', asOf: '2026-11-13T17:00:00.000Z' }
  const ecb = { source: 'ecb', asOf: '2026-11-13T00:00:00.000Z' }
  assert.deepEqual(await listCurrencies(await loadedContext(now), now), [
    usd,
    { code: 'AED', name: 'United Arab Emirates Dirham', ...exchange },
    { code: 'EUR', name: 'Euro', ...exchange },
    { code: 'ISK', name: 'Icelandic Króna', ...ecb },
    { code: 'JPY', name: 'Japanese Yen', ...exchange },
  ])
})

test('exactly the listed currencies can be priced now', async () => {
  for (const exchangeAsOf of [now, stale]) {
    const loaded = await loadedContext(exchangeAsOf)
    const ctx = { ...loaded, config: { ...loaded.config, fixedRates: new Map([['ISK', '125']]) } }
    const listed = new Map((await listCurrencies(ctx, now)).map(({ code, source }) => [code, source]))
    for (const code of currencies.keys()) {
      const source = await quoteCurrency(ctx, code, now).then(
        (quote) => quote?.source ?? 'fixed',
        () => undefined,
      )
      assert.equal(listed.get(code), source, code)
    }
  }
})
