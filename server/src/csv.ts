/**
 * Text from outside that a spreadsheet would take for a formula gets a quote in front, which spreadsheets don't show: also
 * the full-width signs, and after what another spreadsheet's settings take for the end of a cell.
 */
export function withoutFormula(value: string): string {
  return value.replaceAll(/(^|[;,\t\r\n|])(\s*)(?=[=+\-@\t\r\uff1d\uff0b\uff0d\uff20])/g, "$1$2'")
}

export const delimiters = [',', ';', '\t'] as const
export type Delimiter = (typeof delimiters)[number]

/** One line of a file of comma-separated values (RFC 4180). */
export function csvLine(values: readonly string[], delimiter: Delimiter = ','): string {
  return `${values.map((value) => csvCell(value, delimiter)).join(delimiter)}\r\n`
}

/**
 * What another program's settings could take for a delimiter is quoted too, but not the comma of a number, which some
 * programs would then take for text.
 */
export function csvCell(value: string, delimiter: Delimiter): string {
  if (!/[",;|\t\r\n]/.test(value)) return value
  const isNumber = delimiter !== ',' && /^-?\d+,\d+$/.test(value)
  return isNumber ? value : `"${value.replaceAll('"', '""')}"`
}
