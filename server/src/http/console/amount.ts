import { unitsToText } from '../../money.ts'

/**
 * Amounts as people type them. To some a comma stands before the decimals and a point between thousands, to others the
 * other way round. Only where three digits follow can that be mistaken, and then nobody guesses.
 */

/** With a point before the decimals. What is not an amount stays as it is, for the parser to refuse. */
export function withPoint(typed: string): string {
  return typed.trim().replace(/^(\d+),(\d{1,6})$/, '$1.$2')
}

/** Whether it may mean thousands or decimals: "1,500", also "1.500" if the money does not have three decimals. */
export function isAmbiguous(typed: string, decimals: number): boolean {
  const [, separator] = /^[1-9]\d*([.,])\d{3}$/.exec(typed.trim()) ?? []
  return separator === ',' || (separator === '.' && decimals !== 3)
}

/** Units of a token as a form offers them: never in a form that is refused when it is sent. */
export function toTyped(units: bigint, decimals: number): string {
  const text = unitsToText(units, decimals)
  return isAmbiguous(text, decimals) ? `${text}0` : text
}

/** How many decimals a currency's amounts have, two if nobody knows. */
export function currencyDecimals(currency: string): number {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency })
    return format.resolvedOptions().maximumFractionDigits ?? 2
  } catch {
    return 2
  }
}
