import { csvLine } from '../csv.ts'
import { parseDecimal } from '../money.ts'
import { minorDigitsOf } from '../rates/iso4217.ts'
import { fields, local } from './fields.ts'
import type { Writer } from './formats.ts'
import type { Line } from './lines.ts'
import { type MovementType, signedText } from './movement.ts'

/**
 * A bank statement in one currency, as Xero and QuickBooks import it: a date, an amount, a description and a reference. A
 * line's amount is its value, rounded to the currency's smallest unit. So that the file's sum is the books' sum, rounded
 * once, a last line has what rounding has taken or added.
 *
 * Decisions move no money, and a line without a value, or with one in another currency, is in no statement of this one.
 */
const inStatement: readonly MovementType[] = [
  ...([
    'payment',
    'payment_reversed',
    'payment_ceded',
    'refund',
    'refund_reversed',
    'refund_declared',
  ] as const),
]

type Statement = {
  readonly currency: string
  readonly zone: string
  /** Of the line that corrects the rounding. */
  readonly lastDay: string
  readonly words: Readonly<Record<MovementType, string>>
  readonly headings: readonly [date: string, amount: string, description: string, reference: string]
  readonly rounding: string
}

/** Values have at most six decimals. */
const valueDecimals = 6

export function openBankWriter(statement: Statement): Writer {
  const { currency, zone, lastDay, words, headings, rounding } = statement
  const digits = minorDigitsOf(currency) ?? 2
  const unit = 10n ** BigInt(valueDecimals - digits)
  let sum = 0n
  let rounded = 0n
  const writing = { zone, words, decimal: '.', dates: 'YYYY-MM-DD' } as const
  const show = (units: bigint) => (digits === 0 ? units.toString() : signedText(units, digits))
  const write = (line: Line) => {
    const value = millionths(line.value ?? '0')
    const units = roundTo(value, unit)
    sum += value
    rounded += units
    // Programs refuse lines of nothing. What it was worth is in the last line.
    if (units === 0n) return ''
    return csvLine([
      local(line.bookedAt, writing),
      show(units),
      fields.summary.show(line, writing) ?? '',
      line.paymentId,
    ])
  }
  return {
    head: csvLine(headings),
    write: (lines) =>
      lines
        .filter(({ type, value, valueCurrency }) => {
          return inStatement.includes(type) && value !== null && valueCurrency === currency
        })
        .map(write)
        .join(''),
    end() {
      const left = roundTo(sum, unit) - rounded
      return left === 0n ? '' : csvLine([lastDay, show(left), rounding, ''])
    },
  }
}

function millionths(value: string): bigint {
  const isNegative = value.startsWith('-')
  const { coefficient, scale } = parseDecimal(isNegative ? value.slice(1) : value)
  const units = coefficient * 10n ** BigInt(valueDecimals - scale)
  return isNegative ? -units : units
}

/** Half a unit is rounded away from zero, as banks do. */
function roundTo(value: bigint, unit: bigint): bigint {
  return value < 0n ? -((-value + unit / 2n) / unit) : (value + unit / 2n) / unit
}
