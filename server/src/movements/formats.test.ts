import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openBankWriter } from './bank.ts'
import { local } from './fields.ts'
import type { Line } from './lines.ts'

const types = {
  payment: 'Payment',
  payment_reversed: 'Reversed',
  payment_ceded: 'Ceded',
  acceptance: 'Accepted',
  dismissal: 'Put aside',
  refund: 'Refund',
  refund_reversed: 'Refund reversed',
  refund_declared: 'Declared',
}

function lineWorth(millionths: bigint, change: Partial<Line> = {}): Line {
  const digits = (millionths < 0n ? -millionths : millionths).toString().padStart(7, '0')
  const value = `${millionths < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`
  return {
    ...{ number: '1', id: 'mov_1', type: 'payment', happenedAt: 0, bookedAt: 0, network: 'eip155:8453' },
    ...{ asset: '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913', amount: '1', wallet: null, transaction: null },
    ...{
      place: null,
      paymentId: 'pay_1',
      refundId: null,
      checkoutId: null,
      orderId: null,
      disposition: null,
    },
    ...{ priceAmount: null, priceCurrency: null, rate: null, rateSource: null, rateTime: null, value },
    ...{
      valueCurrency: 'EUR',
      valueRate: null,
      valueRateSource: 'price',
      valueRateTime: null,
      reverses: null,
    },
    ...{ actorType: null, actorId: null, details: null },
    ...change,
  } as Line
}

function open(currency: string) {
  return openBankWriter({
    ...{ currency, zone: 'UTC', lastDay: '2026-10-31', words: types, rounding: 'Rounding' },
    headings: ['Date', 'Amount', 'Description', 'Reference'],
  })
}

/** The amounts of a file, in the currency's smallest unit, by a reader that knows nothing of ours. */
function amountsIn(file: string, digits: number): bigint[] {
  const lines = file.split('\r\n').filter((line) => line !== '')
  return lines.map((line) => {
    const [, sign = '', whole = '', fraction = ''] =
      /^[\d-]+,(-?)(\d+)(?:\.(\d+))?,/.exec(line) ?? assert.fail(line)
    assert(fraction.length <= digits, line)
    return BigInt(`${sign}${whole}${fraction.padEnd(digits, '0')}`)
  })
}

test('the sum of a bank statement is the books’ sum, rounded once, in currencies of 0, 2 and 3 digits', () => {
  for (const [currency, digits] of [
    ['JPY', 0],
    ['EUR', 2],
    ['KWD', 3],
  ] as const)
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: -9_999_999n, max: 9_999_999_999n }), { maxLength: 40 }),
        (values) => {
          const writer = open(currency)
          const lines = values.map((value) => lineWorth(value, { valueCurrency: currency }))
          const half = Math.floor(lines.length / 2)
          const file = writer.write(lines.slice(0, half)) + writer.write(lines.slice(half)) + writer.end()
          const unit = 10n ** BigInt(6 - digits)
          const sum = values.reduce((all, each) => all + each, 0n)
          const rounded = sum < 0n ? -((-sum + unit / 2n) / unit) : (sum + unit / 2n) / unit
          assert.equal(
            amountsIn(file, digits).reduce((all, each) => all + each, 0n),
            rounded,
          )
        },
      ),
    )
})

test('decisions, lines without a value and lines in another currency are in no statement', () => {
  const writer = open('EUR')
  const out = [
    lineWorth(1_000_000n, { value: null }),
    lineWorth(1_000_000n, { valueCurrency: 'USD' }),
    lineWorth(0n, { type: 'acceptance' }),
  ]
  assert.equal(writer.write(out) + writer.end(), '')
})

test('a day is the zone’s own, also in quarter hours and on the day whose clocks change', () => {
  const at = (iso: string, zone: string) => local(Date.parse(iso), { zone, dates: 'YYYY-MM-DD hh:mm' })
  assert.equal(at('2026-10-31T18:20:00Z', 'Asia/Kathmandu'), '2026-11-01 00:05')
  assert.equal(at('2026-10-25T00:59:00Z', 'Europe/Berlin'), '2026-10-25 02:59')
  assert.equal(at('2026-10-25T01:01:00Z', 'Europe/Berlin'), '2026-10-25 02:01')
  assert.equal(at('2026-11-01T05:59:00Z', 'America/New_York'), '2026-11-01 01:59')
  fc.assert(
    fc.property(
      fc.date({ min: new Date('2019-01-01'), max: new Date('2050-01-01'), noInvalidDate: true }),
      fc.constantFrom('Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Chatham', 'UTC'),
      (time, timeZone) => {
        const form = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
        assert.equal(local(time.getTime(), { zone: timeZone, dates: 'YYYY-MM-DD hh:mm' }), form.format(time))
      },
    ),
  )
})
