/** A network and a token with 18 decimals, added by one table entry and nothing else, then paid end to end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listSettings } from '../../../src/config/settings.ts'
import { type Network, networks } from '../../../src/networks.ts'
import { replaceRates } from '../../../src/rates/rows.ts'
import { sources } from '../../../src/rates/sources.ts'
import { openShop, payTo } from '../../support/shop.ts'
import { until, untilStatus } from '../../support/watch.ts'
import { buyers, paymentBy, reserve, transfer } from '../transfers/support/hand-transfers.ts'

const added: Network = {
  id: 'ELSEWHERE',
  name: 'Elsewhere',
  caip2: 'eip155:424242',
  family: 'EVM',
  mode: 'test',
  blockTimeMs: 1_000,
  negativeSeconds: 3,
  witnessesMin: 1,
  refundCentsMin: 1,
  maxFeePerGas: 500_000_000_000n,
  assets: [
    {
      symbol: 'USDE',
      address: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      decimals: 18,
      domain: { name: 'Dollars Elsewhere', version: '1' },
    },
  ],
  nativeCurrency: { name: 'Else', symbol: 'ELSE', decimals: 18 },
  publicRpcUrl: null,
  explorerUrl: null,
}
// The one entry.
;(networks as Network[]).push(added)

const token = 10n ** 18n
const shop = await openShop({ network: 'ELSEWHERE' })

test('its setting exists, and checkouts offer it in units of 18 decimals', async () => {
  assert(listSettings().some(({ name }) => name === 'ELSEWHERE_RPC_URLS'))
  const { accepts } = await shop.require(await shop.create('12.50'))
  assert.deepEqual(accepts, [
    {
      scheme: 'exact',
      network: 'eip155:424242',
      asset: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      amount: '12500000000000000000',
      payTo,
      maxTimeoutSeconds: 300,
      extra: { name: 'Dollars Elsewhere', version: '1' },
    },
  ])
})

test('a signed payment completes a checkout there, and moves exactly its price', async () => {
  const price = 9_123_456_789n * 10n ** 12n
  const id = await shop.create('9123.456789')
  const payer = await shop.fund(10_000n * token)
  const before = await shop.chain.balance(payTo)
  const answer = shop.pay(id, await shop.sign(id, payer))
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await answer).statusCode, 200)
  assert.equal((await shop.read(id)).payment?.amount, price.toString(), 'to the last digit')
  assert.equal((await shop.chain.balance(payTo)) - before, price)
})

test('a plain transfer is identified by an amount that a person can type, less than a cent above the price', async () => {
  await shop.chain.mint(buyers, 1_000n * token)
  const id = await shop.create('3.00')
  const amount = await reserve(shop, id)
  const suffix = amount - 3n * token
  assert(suffix > 0n && suffix < token / 100n)
  assert.equal(suffix % 10n ** 12n, 0n, 'the amount has more than six decimal places')
  await transfer(shop, amount)
  await untilStatus(shop, id, 'COMPLETED')
  assert.equal((await shop.read(id)).payment?.amount, amount.toString(), 'to the last digit')
})

test('a price converted with an exchange rate is rounded up to six decimal places', async () => {
  for (const source of sources) {
    const perBase = new Map(
      Object.entries(source.base === 'USD' ? { USD: '1', EUR: '0.86' } : { EUR: '1', USD: '1.16' }),
    )
    await replaceRates(shop.ctx.db, source, { asOf: new Date(), perBase }, new Date())
  }
  const { accepts } = await shop.require(await shop.create('10.00', { priceCurrency: 'EUR' }))
  const amount = BigInt(accepts[0]?.amount ?? 0)
  assert(amount > 11n * token && amount < 12n * token)
  assert.equal(amount % 10n ** 12n, 0n)
})

test('an unexpected transfer of less than a cent is recorded without an event; one of a cent gets an event', async () => {
  const [dust, cent] = [await transfer(shop, token / 100n - 1n), await transfer(shop, token / 100n)]
  await shop.chain.mine(12)
  const announced = await until(async () => {
    const rows = await shop.ctx.db.query<{ hash: string }>(
      "select data -> 'payment' ->> 'transaction' as hash from events where type = 'payment.unmatched'",
    )
    return rows.length > 0 && rows
  }, 'the event of the cent')
  assert.deepEqual(announced, [{ hash: cent }])
  assert.equal((await paymentBy(shop, dust))?.disposition, 'unmatched')
})
