import { unitsToText } from '../../money.ts'

/**
 * Amounts as people type them. Some write a comma before the decimals and a point between thousands, others the other way
 * round. Only amounts such as "1,500" and "1.500" are ambiguous; we ask instead of guessing.
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

/** How many decimals a currency's amounts have, two if its name is unknown. */
export function currencyDecimals(currency: string): number {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency })
    return format.resolvedOptions().maximumFractionDigits ?? 2
  } catch {
    return 2
  }
}
