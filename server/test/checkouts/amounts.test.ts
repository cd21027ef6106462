/**
 * Amounts near and far from valid. An independent oracle, which calculates with digits in text, decides whether a text
 * is an amount and how many units it is worth. FULL=1 runs a million of each, and 20,000 checkouts. A failure prints
 * its seed and the smallest failing amount.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, PaymentRequired } from '@farthing/sdk'
import fc from 'fast-check'
import { parsePrice, toUnits } from '../../src/money.ts'
import { replaceRates } from '../../src/rates/rows.ts'
import { sources } from '../../src/rates/sources.ts'
import { documented } from '../http/support/document.ts'
import { openTestApp } from '../support/app.ts'
import { openCount, runs } from '../support/full.ts'
import { assertProblem, openStore, send } from '../support/store.ts'
import { isAmount, trim, unitsOf } from './support/arithmetic.ts'

/** Requests in flight at the same time. */
const burst = 10

const farthing = await openTestApp(documented)
const rates = { EUR: '1', USD: '1.1623', JPY: '179.36' }
const [ecb] = sources.filter(({ name }) => name === 'ecb')
assert(ecb)
await replaceRates(
  farthing.ctx.db,
  ecb,
  { asOf: new Date(), perBase: new Map(Object.entries(rates)) },
  new Date(),
)

const digitsUpTo = (maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength, size: 'max' })
const decimal = (whole: number, places: number) =>
  fc
    .tuple(digitsUpTo(whole).map(trim), fc.option(digitsUpTo(places)))
    .map(([a, b]) => (b === null ? a : `${a}.${b}`))
    .filter((value) => /[1-9]/.test(value))
const almostAmount = fc.oneof(
  decimal(17, 8),
  fc.string({ unit: fc.constantFrom(...'0001259.-+e ,'), maxLength: 8 }),
  fc.tuple(decimal(3, 3), fc.constantFrom(' ', '\n', '0', '.', 'e1', '٣', '０')).map(([a, b]) => a + b),
)

test('money.ts accepts as a price exactly the amounts that the rules allow', (t) => {
  const count = openCount('amounts')
  fc.assert(
    fc.property(almostAmount, (value) => {
      count.add()
      if (isAmount(value)) count.add('prices')
      assert.equal(parsePrice(value) !== null, isAmount(value))
    }),
    runs(5_000, 1_000_000),
  )
  count.say(t)
})

test('money.ts rounds a price up to the next whole unit, and agrees with digit-by-digit arithmetic', (t) => {
  const count = openCount('amounts')
  const parse = (value: string) => ({
    coefficient: BigInt(value.replace('.', '')),
    scale: value.split('.')[1]?.length ?? 0,
  })
  const any = [decimal(15, 6), decimal(8, 12), decimal(8, 12)] as const
  fc.assert(
    fc.property(...any, fc.nat({ max: 18 }), (...[price, worth, per, decimals]) => {
      count.add()
      const [a, b, c] = [parse(price), parse(worth), parse(per)]
      const units = toUnits(a, b, c, decimals)
      // As fractions: units ÷ 10^decimals ≥ price × worth ÷ per, and one unit less is not enough.
      const asked = a.coefficient * b.coefficient * 10n ** BigInt(decimals + c.scale)
      const unit = c.coefficient * 10n ** BigInt(a.scale + b.scale)
      assert(units * unit >= asked && (units - 1n) * unit < asked, `${units}`)
      // Digit by digit is slow, so only every 50th amount is checked that way.
      if ((count.counts.amounts ?? 0) % 50 !== 0) return
      count.add('by hand')
      assert.equal(units.toString(), unitsOf(price, worth, per, decimals))
    }),
    runs(5_000, 1_000_000),
  )
  count.say(t)
})

test('a checkout is created if and only if its amount is valid, and asks for exactly that amount', async (t) => {
  const count = openCount('requests')
  const seller = await openStore(farthing)
  const input = fc.record({ priceAmount: almostAmount, priceCurrency: fc.constantFrom('USD', 'EUR', 'JPY') })
  await fc.assert(
    fc.asyncProperty(fc.array(input, { minLength: burst, maxLength: burst }), async (inputs) => {
      await Promise.all(
        inputs.map(async ({ priceAmount, priceCurrency }) => {
          const body = { orderId: 'x', priceAmount, priceCurrency }
          count.add()
          const answer = await seller.call('POST', '/api/v1/checkouts', body)
          if (!isAmount(priceAmount)) return void assertProblem(answer, 422, 'invalid_request')
          assert.equal(answer.statusCode, 201, answer.body)
          const made = answer.json<Checkout>()
          assert.equal(made.priceAmount, priceAmount)
          const terms = await send(farthing.app, 'POST', `/api/v1/checkouts/${made.id}`)
          const [accepted] = terms.json<PaymentRequired>().accepts
          const [worth, per] = priceCurrency === 'USD' ? ['1', '1'] : [rates.USD, rates[priceCurrency]]
          assert.equal(accepted?.amount, unitsOf(priceAmount, worth, per, 6))
        }),
      )
    }),
    runs(50, 2_000),
  )
  count.say(t)
})
