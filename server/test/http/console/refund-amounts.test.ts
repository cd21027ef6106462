/** Refunds in the order's currency: what is offered, what goes back, and that the rate is the payment's. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Checkout } from '../../../src/checkouts/checkout.ts'
import { inCurrency, inToken, orderOf, unitsOf } from '../../../src/http/console/refunds/amount.ts'
import { newId } from '../../../src/ids.ts'
import { completeByHand } from '../../support/by-hand.ts'
import { newPayer } from '../../support/chain/evm-payment.ts'
import { enrolWith, openConsole, openInvitedStore } from './support/console.ts'

const console = await openConsole()
const { farthing } = console
const { db } = farthing.ctx

/** A payment of 13.01 USDC for an order of 12.00 euros, which can be refunded. */
async function openShop() {
  const { store, token } = await openInvitedStore(console, { evmWallet: newPayer().address })
  const owner = await enrolWith(console, token)
  await db.query('update wallets set proven_at = clock() where store_id = $1', [store.id])
  const { id } = await store.create({
    orderId: 'tea <1>',
    priceAmount: '13.01',
    description: 'Green & black',
  })
  await db.query(
    `update checkouts set price_currency = 'EUR', price_amount = '12.00',
       rate = '{"perBase":"1","usdPerBase":"1.0841","source":"test","asOf":"2026-11-19T00:00:00Z"}' where id = $1`,
    [id],
  )
  await completeByHand(farthing, id)
  const paymentId = newId('pay', '00', new Date())
  await db.query(
    `update credits set payment_id = $2, pay_to = lower(pay_to), safe_at = clock(), finalized_at = clock(),
       witnessed_at = clock() where checkout_id = $1`,
    [id, paymentId],
  )
  const form = `/stores/${store.id}/payments/${paymentId}/refund`
  const look = async () => (await owner.browser.get(form)).body
  const ask = async (amount: string, unit: string) => {
    const [, key = ''] = /name="key" value="(\w+)"/.exec(await look()) ?? []
    return await owner.browser.post(form, { key, amount, unit, reason: '', way: 'signed' })
  }
  const made = async () =>
    (
      await db.query<{ amount: string }>(
        `select amount from refunds where payment_id = $1 order by id desc limit 1`,
        [paymentId],
      )
    )[0]?.amount
  return { owner, look, ask, made }
}

test('a refund is asked for in the order’s currency and goes back at the rate of the payment, to the last unit', async () => {
  const { owner, look, ask, made } = await openShop()
  const before = await look()
  for (const each of ['tea &#60;1&#62;', 'Green &#38; black', '€12.00', '13.01 USDC', 'value="12.00"'])
    assert(before.includes(each), each)
  assert.match(before, /<select name="unit"><option value="EUR" selected>EUR<\/option>/)
  const asked = await ask('6,00', 'EUR')
  assert.equal(asked.statusCode, 303)
  // What was entered is on the screen that is signed, although it goes back in the token and was rounded down.
  const screen = await owner.browser.get(String(asked.headers.location))
  assert.match(screen.body, /≈ €6\.00/)
  assert.equal(await made(), '6505000')
  assert((await look()).includes('value="6.00"'))
  // In the token, to the unit; then what is left is not a whole cent of a euro.
  assert.equal((await ask('0.010001', 'token')).statusCode, 303)
  assert((await look()).includes('value="5.99"'))
  assert.equal((await ask('6.00', 'EUR')).statusCode, 409)
  assert.equal((await ask('5.99', 'EUR')).statusCode, 303)
  assert.equal(await made(), '6494999', 'the most that can be asked for is all that is left')
})

test('an amount in a unit that the form does not offer, or with more decimals than the currency has, is refused', async () => {
  const { ask, made } = await openShop()
  for (const [amount, unit] of [
    ['1.00', 'USD'],
    ['1.00', 'eur'],
    ['1.00', '__proto__'],
    ['1.0001', 'EUR'],
    ['1,000', 'EUR'],
    ['0', 'EUR'],
    ['-1', 'EUR'],
    ['12.01', 'EUR'],
    ['13.02', 'token'],
  ] as const)
    assert.equal((await ask(amount, unit)).statusCode, 409, `${amount} ${unit}`)
  assert.equal(await made(), undefined)
})

test('whatever price, amount due and remainder: never more than is left, all of it for the most, and rounded down by less than a unit', () => {
  const network = 'eip155:8453'
  const asset = `0x${'ab'.repeat(20)}`
  fc.assert(
    fc.property(
      fc.bigInt(1n, 10n ** 12n),
      fc.constantFrom(...(['EUR', 'JPY', 'KWD', 'CLF', 'XAU'] as const)),
      fc.nat(6),
      fc.bigInt(1n, 10n ** 14n),
      fc.bigInt(0n, 1_000n),
      (coefficient, priceCurrency, scale, due, share) => {
        const digits = String(coefficient).padStart(scale + 1, '0')
        const priceAmount = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
        const rate = { perBase: '1', usdPerBase: '1' }
        const option = { network, asset, amount: String(due), payTo: asset }
        const checkout = { priceAmount, priceCurrency, rate, options: [option] } as unknown as Checkout
        const order = orderOf(checkout, { network, asset }) ?? assert.fail('no order')
        const left = (due * share) / 1_000n
        const most = inCurrency(order, left)
        if (/^[0.]+$/.test(most) || most.split('.')[0]?.length === 16 || most.length > 22) return
        // What the form offers is never refused as ambiguous, and means all that is left.
        assert.equal(unitsOf({ amount: most, unit: priceCurrency }, 6, order, left), left)
        // Where more is left than was asked for, it is the share of the price, rounded down.
        const units = unitsOf({ amount: most, unit: priceCurrency }, 6, order, left * 2n + 10n ** 15n)
        assert(units <= left)
        // All that is left is worth less than one smallest unit of the currency more than was entered.
        const smallest = { EUR: 100n, JPY: 1n, KWD: 1_000n, CLF: 10_000n, XAU: 1_000_000n }[priceCurrency]
        assert((left - units - 1n) * coefficient * smallest < due * 10n ** BigInt(scale))
        assert.equal(unitsOf({ amount: '1.5', unit: inToken }, 6, order, left), 1_500_000n)
      },
    ),
    { numRuns: 2_000 },
  )
})
