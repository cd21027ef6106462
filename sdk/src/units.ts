/** "12.50" in the token's smallest unit. Returns null if it is not an amount or has more decimals than the token. */
export function parseUnits(text: string, decimals: number): bigint | null {
  const [, whole = '', fraction = ''] = /^(\d{1,15})(?:\.(\d{1,30}))?$/.exec(text) ?? []
  if (whole === '' || fraction.length > decimals) return null
  return BigInt(whole + fraction.padEnd(decimals, '0'))
}

/** An amount in a token's smallest unit as people write it: "12500000" with 6 decimals is "12.50". Never rounds. */
export function formatUnits(units: bigint | string, decimals: number): string {
  const digits = String(units).padStart(decimals + 1, '0')
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return decimals === 0
    ? digits
    : `${digits.slice(0, -decimals)}.${fraction.padEnd(Math.min(2, decimals), '0')}`
}
