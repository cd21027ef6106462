/** A source that is alone, and wrong: no checkout is priced by what it says until that has stayed for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePrice } from '../../src/money.ts'
import { priceInUnits, quoteCurrency } from '../../src/rates/quote.ts'
import { replaceRates } from '../../src/rates/rows.ts'
import { sources } from '../../src/rates/sources.ts'
import { openTestApp } from '../support/app.ts'

const exchange = sources.find(({ name }) => name === 'exchange') ?? assert.fail()
const others = { USD: '1', EUR: '0.9', JPY: '150', GBP: '0.8', CHF: '0.9' }
const { ctx } = await openTestApp({ EXCHANGE_RATES_URL: 'https://rates.example/latest', ECB_RATES_URL: '' })
let minute = Date.UTC(2026, 10, 18)

/** Loads a file some minutes later. Returns what 150,000 NGN cost then, in whole USDC, or why that is not said. */
async function load(ngn: string | null, minutesLater = 1): Promise<bigint | string> {
  minute += minutesLater * 60_000
  const at = new Date(minute)
  const perBase = new Map(Object.entries({ ...others, ...(ngn && { NGN: ngn }) }))
  await replaceRates(ctx.db, exchange, { asOf: at, perBase }, at)
  try {
    const price = parsePrice('150000.00') ?? assert.fail()
    return priceInUnits(price, await quoteCurrency(ctx, 'NGN', at), 6) / 1_000_000n
  } catch (error) {
    return (error as { code: string }).code
  }
}

test('a rate that jumps is not used, whether or not the currency was missing in between', async () => {
  assert.equal(await load('1500'), 100n)
  assert.equal(await load('150000'), 'rate_unavailable')
  assert.equal(await load('1500'), 'rate_unavailable')
  assert.equal(await load('1500', 20), 100n)
  for (const files of [1, 3]) {
    for (let i = 0; i < files; i++) assert.equal(typeof (await load(null)), 'string')
    assert.equal(await load('150000'), 'rate_unavailable')
    assert.equal(await load('1500'), 'rate_unavailable')
    assert.equal(await load('1500', 20), 100n)
  }
  assert.equal(typeof (await load(null)), 'string')
  assert.equal(await load('1500'), 100n, 'the same rate as before needs no waiting')
})

for (const [what, step] of [
  ['up', 1.099],
  ['down', 1 / 1.099],
] as const)
  test(`many steps ${what} that are no jump each are one together`, async () => {
    assert.equal(await load('1500', 60 * 24 * 8), 100n)
    let rate = 1_500
    const told: (bigint | string)[] = []
    for (let i = 0; i < 20; i++) {
      rate *= step
      told.push(await load(rate.toFixed(6)))
    }
    assert.deepEqual(new Set(told.slice(1)), new Set(['rate_unavailable']))
    // What has stayed is believed, and from then on usual moves are.
    assert.equal(typeof (await load(rate.toFixed(6), 11)), 'bigint')
    assert.equal(typeof (await load((rate * 1.01).toFixed(6))), 'bigint')
  })
