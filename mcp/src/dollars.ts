/** Amounts in US dollars as millionths, so that sums are exact. */

const decimals = 6

/** "5.00" in millionths of a dollar; null if the text is not an amount. */
export function parseDollars(text: string): bigint | null {
  const [, whole, fraction = ''] = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text) ?? []
  return whole === undefined ? null : BigInt(`${whole}${fraction.padEnd(decimals, '0')}`)
}

/** Units of a token that is worth one dollar in millionths of a dollar, rounded up. */
export function toDollars(units: bigint, tokenDecimals: number): bigint {
  const divisor = 10n ** BigInt(tokenDecimals)
  return (units * 10n ** BigInt(decimals) + divisor - 1n) / divisor
}
