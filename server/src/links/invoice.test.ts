import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CreateInvoice, InvoiceLine } from '@farthing/sdk'
import fc from 'fast-check'
import { currencies, minorDigitsOf } from '../rates/iso4217.ts'
import { checkInvoice, sumInvoice } from './invoice.ts'

/** An exact fraction, so that no test rounds by itself. */
type Fraction = readonly [numerator: bigint, denominator: bigint]

const zero: Fraction = [0n, 1n]
const add = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * d + c * b, b * d]
const times = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * c, b * d]
function toFraction(text: string): Fraction {
  const [whole = '', decimals = ''] = text.split('.')
  return [BigInt(whole + decimals), 10n ** BigInt(decimals.length)]
}

const withoutMinor = [...currencies.keys()].filter((code) => minorDigitsOf(code) === null)
const priced = [...currencies.keys()].filter((code) => !withoutMinor.includes(code))

const decimals = (whole: number, most: number) =>
  fc
    .tuple(fc.nat(whole), fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: most }))
    .map(([before, after]) => (after === '' ? `${before}` : `${before}.${after}`))
const line: fc.Arbitrary<InvoiceLine> = fc.record({
  text: fc.constant('Tea'),
  quantity: decimals(999, 6).filter((text) => /[1-9]/.test(text)),
  unitAmount: decimals(99_999, 6),
  taxRate: fc.oneof(fc.constantFrom('0', '4', '5.5', '7.7', '10', '21', '100'), decimals(99, 3)),
})
const invoices = fc.record({
  number: fc.constant('1'),
  taxIncluded: fc.boolean(),
  lines: fc.array(line, { minLength: 1, maxLength: 8 }),
})

/** Whether a figure is an exact value rounded half up to the currency's smallest unit: figure ≤ value + ½ < figure + 1. */
function isHalfUp(figure: string, [a, b]: Fraction, digits: number): boolean {
  const minor = BigInt(figure.replace('.', ''))
  const [up, down] = [2n * a * 10n ** BigInt(digits) + b, 2n * b]
  return minor * down <= up && up < (minor + 1n) * down
}

function minorOf(figure: string): bigint {
  return BigInt(figure.replace('.', ''))
}

test('each figure of an invoice is its exact fraction, rounded once, half up, and all add up', () => {
  fc.assert(
    fc.property(invoices, fc.constantFrom(...priced), (invoice, currency) => {
      const digits = minorDigitsOf(currency) ?? assert.fail()
      const { taxes, net, tax, gross } = sumInvoice(invoice, currency)
      const rates = new Map<string, Fraction>()
      for (const { quantity, unitAmount, taxRate } of invoice.lines) {
        const [a, b] = toFraction(taxRate)
        const key = String((a * 1000n) / b)
        const amount = times(toFraction(quantity), toFraction(unitAmount))
        rates.set(key, add(rates.get(key) ?? zero, amount))
      }
      assert.equal(taxes.length, rates.size)
      for (const each of taxes) {
        const [a, b] = toFraction(each.taxRate)
        const sum = rates.get(String((a * 1000n) / b)) ?? assert.fail(each.taxRate)
        const share: Fraction = invoice.taxIncluded ? [a, 100n * b + a] : [a, 100n * b]
        assert(isHalfUp(invoice.taxIncluded ? each.gross : each.net, sum, digits))
        assert(isHalfUp(each.tax, times(sum, share), digits), `${each.tax} of ${sum}`)
        assert.equal(minorOf(each.net) + minorOf(each.tax), minorOf(each.gross))
        for (const figure of [each.net, each.tax, each.gross])
          assert.equal(figure.split('.')[1]?.length ?? 0, digits)
      }
      for (const [total, part] of [
        [net, 'net'],
        [tax, 'tax'],
        [gross, 'gross'],
      ] as const)
        assert.equal(
          minorOf(total),
          taxes.reduce((sum, each) => sum + minorOf(each[part]), 0n),
        )
    }),
    { numRuns: 2_000 },
  )
})

test('the order of the lines and the spelling of a rate change no sum', () => {
  fc.assert(
    fc.property(invoices, (invoice) => {
      const { lines } = invoice
      const spelled = lines.map((each) => ({
        ...each,
        taxRate: each.taxRate.includes('.') ? each.taxRate : `${each.taxRate}.0`,
      }))
      const { taxes, gross } = sumInvoice(invoice, 'EUR')
      for (const other of [lines.toReversed(), spelled]) {
        const sums = sumInvoice({ ...invoice, lines: other }, 'EUR')
        assert.deepEqual([sums.taxes, sums.gross], [taxes, gross])
      }
    }),
  )
})

const lineOf = (change: Partial<InvoiceLine>): InvoiceLine => ({
  ...{ text: 'Tea', quantity: '1', unitAmount: '10', taxRate: '21' },
  ...change,
})
const invoiceOf = (...lines: InvoiceLine[]): CreateInvoice => ({ number: '1', taxIncluded: false, lines })

test('a half of the smallest unit is rounded up, and three thirds make no whole', () => {
  const one = (change: Partial<InvoiceLine>, currency = 'EUR') =>
    sumInvoice(invoiceOf(lineOf(change)), currency)
  assert.deepEqual(one({ unitAmount: '0.50', taxRate: '21' }).tax, '0.11', '0.105')
  assert.equal(one({ quantity: '3', unitAmount: '0.333333', taxRate: '0' }).gross, '1.00')
  assert.equal(one({ quantity: '0.5', unitAmount: '3', taxRate: '0' }, 'JPY').gross, '2')
  assert.equal(one({ unitAmount: '1.0005', taxRate: '0' }, 'KWD').gross, '1.001')
  const included = sumInvoice({ ...invoiceOf(lineOf({ unitAmount: '1.21' })), taxIncluded: true }, 'EUR')
  assert.deepEqual([included.net, included.tax, included.gross], ['1.00', '0.21', '1.21'])
})

test('what no invoice can say is refused where it stands', () => {
  const pointers = (invoice: CreateInvoice, currency = 'EUR') =>
    checkInvoice(invoice, currency).map(({ pointer }) => pointer)
  const wrong = invoiceOf(
    lineOf({ text: '', quantity: '0' }),
    lineOf({ quantity: '-1', unitAmount: '1,50' }),
    lineOf({ taxRate: '100.1', quantity: '1e3' }),
    lineOf({ taxRate: '21.0001', unitAmount: '0.0000001' }),
  )
  assert.deepEqual(pointers(wrong), [
    '/invoice/lines/0/text',
    '/invoice/lines/0/quantity',
    '/invoice/lines/1/quantity',
    '/invoice/lines/1/unitAmount',
    '/invoice/lines/2/quantity',
    '/invoice/lines/2/taxRate',
    '/invoice/lines/3/unitAmount',
    '/invoice/lines/3/taxRate',
  ])
  assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), number: '' }), ['/invoice/number'])
  for (const dueDate of ['2026-02-30', '2026-1-1', 'soon', '20261-01-01'])
    assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), dueDate }), ['/invoice/dueDate'], dueDate)
  assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), buyerAddress: 'a\n\nb' }), ['/invoice/buyerAddress'])
  assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), buyerAddress: 'a\nb\nc\nd\ne\nf\ng' }), [
    '/invoice/buyerAddress',
  ])
  assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), buyerName: 'a\u202eb' }), ['/invoice/buyerName'])
  assert.deepEqual(pointers(invoiceOf(lineOf({ unitAmount: '0' }))), ['/invoice/lines'], 'nothing to pay')
  assert.deepEqual(
    pointers(invoiceOf(lineOf({ unitAmount: '0.001' }))),
    ['/invoice/lines'],
    'less than a cent',
  )
  const most = lineOf({ quantity: '999999999', unitAmount: '999999999999999' })
  assert.deepEqual(pointers(invoiceOf(most)), ['/invoice/lines'], 'more than any price')
  for (const currency of withoutMinor)
    assert.deepEqual(pointers(invoiceOf(lineOf({})), currency), ['/priceCurrency'])
  assert.deepEqual(pointers({ ...invoiceOf(lineOf({})), buyerAddress: 'a\nb', dueDate: '2028-02-29' }), [])
})
