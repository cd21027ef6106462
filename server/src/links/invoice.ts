import type { CreateInvoice, Invoice } from '@farthing/sdk'
import { type Decimal, parseDecimal, parsePrice } from '../money.ts'
import type { Mistake } from '../problems.ts'
import { minorDigitsOf } from '../rates/iso4217.ts'
import { checkPostalAddress, checkText } from '../stores/check-text.ts'

/**
 * The invoice of a link: what the store sent, and the sums that follow from it. The sums are computed each time, in exact
 * arithmetic, so nothing is stored twice.
 */

/** As long as any accounting program's numbers. */
const numberBytesMax = 64
/** Two printed pages. */
export const linesMax = 100
const lineTextBytesMax = 200
const buyerNameBytesMax = 200

const quantityForm = /^(0|[1-9]\d{0,8})(\.\d{1,6})?$/
const amountForm = /^(0|[1-9]\d{0,14})(\.\d{1,6})?$/
const taxRateForm = /^(0|[1-9]\d?|100)(\.\d{1,3})?$/
/** A tax rate in thousandths of a percent. */
const rateScale = 3
const whole = 100_000n

export function checkInvoice(invoice: CreateInvoice, currency: string): Mistake[] {
  const { number, dueDate, lines, buyerName, buyerAddress } = invoice
  const mistakes = [
    ...checkText('/invoice/number', number, numberBytesMax),
    ...(dueDate === undefined || isDay(dueDate)
      ? []
      : [{ pointer: '/invoice/dueDate', code: 'date', detail: 'Must be a day such as 2026-12-31.' }]),
    ...lines.flatMap((line, place) => checkLine(`/invoice/lines/${place}`, line)),
    ...(buyerName === undefined ? [] : checkText('/invoice/buyerName', buyerName, buyerNameBytesMax)),
    ...(buyerAddress === undefined ? [] : checkPostalAddress('/invoice/buyerAddress', buyerAddress)),
  ]
  if (mistakes.length > 0) return mistakes
  if (minorDigitsOf(currency) === null)
    return [
      {
        pointer: '/priceCurrency',
        code: 'currency',
        detail: 'Invoices need a currency with a smallest unit.',
      },
    ]
  return parsePrice(sumInvoice(invoice, currency).gross) === null
    ? [
        {
          pointer: '/invoice/lines',
          code: 'amount',
          detail: 'Must come to more than zero, with at most 15 digits before the point.',
        },
      ]
    : []
}

function isDay(text: string): boolean {
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

function checkLine(
  pointer: string,
  { text, quantity, unitAmount, taxRate }: Invoice['lines'][number],
): Mistake[] {
  const mistake = (field: string, code: string, detail: string) => ({
    pointer: `${pointer}/${field}`,
    code,
    detail,
  })
  return [
    ...checkText(`${pointer}/text`, text, lineTextBytesMax),
    ...(quantityForm.test(quantity) && parseDecimal(quantity).coefficient > 0n
      ? []
      : [
          mistake(
            'quantity',
            'quantity',
            'Must be a decimal above zero, such as "2", with at most 6 decimals.',
          ),
        ]),
    ...(amountForm.test(unitAmount)
      ? []
      : [mistake('unitAmount', 'amount', 'Must be a decimal such as "12.50", with at most 6 decimals.')]),
    ...(taxRateForm.test(taxRate) && rateOf(taxRate) <= whole
      ? []
      : [mistake('taxRate', 'rate', 'Must be in percent, from "0" to "100", with at most 3 decimals.')]),
  ]
}

/** An invoice with its sums: one for each tax rate, and the total that is paid. */
export function sumInvoice(invoice: CreateInvoice, currency: string): Invoice {
  const digits = minorDigitsOf(currency) ?? 0
  const show = (minor: bigint) => minorToText(minor, digits)
  const byRate = Map.groupBy(invoice.lines, ({ taxRate }) => rateOf(taxRate))
  const sums = [...byRate]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([rate, lines]) => ({ rate, ...taxOf(exactSum(lines), rate, invoice.taxIncluded, digits) }))
  const total = (part: 'net' | 'tax' | 'gross') => show(sums.reduce((sum, each) => sum + each[part], 0n))
  return {
    ...invoice,
    taxes: sums.map(({ rate, net, tax, gross }) => ({
      taxRate: rateText(rate),
      net: show(net),
      tax: show(tax),
      gross: show(gross),
    })),
    net: total('net'),
    tax: total('tax'),
    gross: total('gross'),
  }
}

/** Quantities and amounts have at most six decimals each. */
const exactScale = 12

/** The sum of the lines, in units of 10^-12. */
function exactSum(lines: Invoice['lines']): bigint {
  return lines.reduce((sum, { quantity, unitAmount }) => {
    const [one, other] = [parseDecimal(quantity), parseDecimal(unitAmount)]
    return sum + scaled(one, 6) * scaled(other, 6)
  }, 0n)
}

/**
 * Net, tax and gross of one rate, in the currency's smallest unit. Two of the three figures are rounded, each once and
 * from the exact sum. The third follows from them, so that they always add up.
 */
function taxOf(sum: bigint, rate: bigint, taxIncluded: boolean, digits: number) {
  const denominator = 10n ** BigInt(exactScale - digits)
  const given = halfUp(sum, denominator)
  if (taxIncluded) {
    const tax = halfUp(sum * rate, denominator * (whole + rate))
    return { net: given - tax, tax, gross: given }
  }
  const tax = halfUp(sum * rate, denominator * whole)
  return { net: given, tax, gross: given + tax }
}

function halfUp(numerator: bigint, denominator: bigint): bigint {
  return (2n * numerator + denominator) / (2n * denominator)
}

function rateOf(taxRate: string): bigint {
  return scaled(parseDecimal(taxRate), rateScale)
}

function rateText(rate: bigint): string {
  return minorToText(rate, rateScale).replace(/\.?0+$/, '')
}

function scaled({ coefficient, scale }: Decimal, digits: number): bigint {
  return coefficient * 10n ** BigInt(digits - scale)
}

/** With all of the currency's decimals: 12.50, or 12 if it has none. */
function minorToText(minor: bigint, digits: number): string {
  const text = minor.toString().padStart(digits + 1, '0')
  return digits === 0 ? text : `${text.slice(0, -digits)}.${text.slice(-digits)}`
}
