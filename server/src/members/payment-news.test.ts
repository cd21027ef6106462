import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addNews,
  type NewsRow,
  nameOrder,
  newsTypes,
  noSums,
  pickNews,
  sentenceOf,
  summaryOf,
} from './payment-news.ts'

const row = (given: Partial<NewsRow>): NewsRow => ({
  sequence: '1',
  type: 'checkout.completed',
  at: new Date('2026-11-19T13:03:00Z'),
  checkoutId: 'ch_1',
  paymentId: null,
  orderId: 'order-21',
  priceAmount: '12.50',
  priceCurrency: 'EUR',
  network: 'eip155:8453',
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  amount: '13600000',
  isAccepted: false,
  ...given,
})

const hostile = [
  '<!channel>',
  '`rm -rf`',
  'a\r\nBcc: victim@bank.example',
  'https://evil.example',
  'evil.example',
  'call me',
  '\u202egpj.exe',
  '\u2066x\u2069',
  'x\u200bx',
  '“',
  'a'.repeat(10_000),
  '',
]

test('a name of an order that could be a sentence, a link, a header or a trick is not in a mail', () => {
  for (const orderId of hostile) {
    assert.equal(nameOrder({ orderId, checkoutId: 'ch_1' }), 'checkout ch_1')
    for (const type of newsTypes) assert(!sentenceOf(row({ type, orderId })).includes(orderId || '“”'), type)
  }
  assert.equal(nameOrder({ orderId: 'Bestellung_Ä-7#2', checkoutId: 'ch_1' }), 'order “Bestellung_Ä-7#2”')
})

test('whatever an order is called, its payment is one line of known characters', () => {
  const type = fc.constantFrom(...newsTypes)
  const name = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.constantFrom(...hostile))
  fc.assert(
    fc.property(type, name, (type, orderId) => {
      const sums = noSums()
      addNews(sums, [row({ type, orderId })], 'Europe/Madrid')
      const lines = [sentenceOf(row({ type, orderId })), ...sums.lines]
      for (const line of lines) assert.match(line, /^[\p{L}\p{N} _#“”:.,-]{1,160}$/u)
      assert.equal(
        summaryOf(sums).split('\n').length,
        summaryOf(sums)
          .replaceAll(/[\n\r\v\f\u0085\u2028\u2029]/g, '\n')
          .split('\n').length,
      )
      for (const line of lines) assert.doesNotMatch(line, /:\/\/|@|\p{L}\.\p{L}/u)
    }),
  )
})

test('sums are exact, per currency, and count what is not listed', () => {
  const prices = fc.array(
    fc.record({
      units: fc.bigInt({ min: 1n, max: 10n ** 15n }),
      currency: fc.constantFrom('EUR', 'JPY', 'XAU'),
    }),
    { minLength: 1, maxLength: 60 },
  )
  fc.assert(
    fc.property(prices, (given) => {
      const rows = given.map(({ units, currency }, place) =>
        row({
          checkoutId: `ch_${place}`,
          priceAmount: `${units / 1_000_000n}.${`${units % 1_000_000n}`.padStart(6, '0')}`,
          priceCurrency: currency,
        }),
      )
      const sums = noSums()
      addNews(sums, rows, 'UTC')
      for (const [currency, { count, amount }] of sums.paid) {
        const same = given.filter((each) => each.currency === currency)
        assert.equal(count, same.length)
        assert.equal(
          amount,
          same.reduce((sum, { units }) => sum + units, 0n),
        )
      }
      assert.equal(sums.lines.length, Math.min(20, rows.length))
      assert.equal(summaryOf(sums).includes(`and ${rows.length - 20} more`), rows.length > 20)
    }),
  )
  const sums = noSums()
  addNews(
    sums,
    [
      row({}),
      row({ checkoutId: 'ch_2', priceAmount: '0.1' }),
      row({ checkoutId: 'ch_3', priceCurrency: 'JPY', priceAmount: '900' }),
    ],
    'Europe/Madrid',
  )
  addNews(
    sums,
    [
      row({ type: 'payment.late', paymentId: 'pay_1' }),
      row({ type: 'payment.reversed', paymentId: 'pay_2' }),
    ],
    'Europe/Madrid',
  )
  assert.equal(
    summaryOf(sums),
    `3 orders were paid: EUR 12.60 and JPY 900.
1 payment arrived late, short, too high or for no order.
The blockchain took back 1 payment.

2026-11-19 14:03  EUR 12.50 paid for order “order-21”
2026-11-19 14:03  EUR 0.10 paid for order “order-21”
2026-11-19 14:03  JPY 900 paid for order “order-21”
2026-11-19 14:03  13.60 USDC arrived too late for order “order-21”. It needs a decision.
2026-11-19 14:03  13.60 USDC for order “order-21” is gone: the blockchain took the payment back`,
  )
})

test('a payment is news once, however often the chain is reorganised, and again when another one takes its place', () => {
  const seen = new Set<string>()
  const told = (...rows: NewsRow[]) => pickNews(rows, seen).length
  const late = row({ type: 'payment.late', paymentId: 'pay_1', checkoutId: 'ch_9' })
  assert.equal(told(row({}), row({}), late), 2)
  assert.equal(told(late, row({})), 0, 'on the next page')
  const gone = row({ type: 'payment.reversed', paymentId: 'pay_2' })
  assert.equal(told(gone, gone, row({}), row({})), 2)
})
