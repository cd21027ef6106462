import assert from 'node:assert/strict'

/** An exact decimal number: coefficient ÷ 10^scale. */
export type Decimal = { readonly coefficient: bigint; readonly scale: number }

const pricePattern = /^(0|[1-9]\d{0,14})(\.\d{1,6})?$/

/** A price as a store writes it ("12.50"), or null if it isn't one. Never rounded, never a float. */
export function parsePrice(text: string): Decimal | null {
  if (!pricePattern.test(text)) return null
  const price = parseDecimal(text)
  return price.coefficient > 0n ? price : null
}

/** Parses plain decimal digits. The text must have been checked; anything else is a bug. */
export function parseDecimal(text: string): Decimal {
  const match = /^(\d{1,30})(?:\.(\d{1,30}))?$/.exec(text)
  assert(match, `not a decimal: ${text}`)
  const [, whole = '', fraction = ''] = match
  return { coefficient: BigInt(whole + fraction), scale: fraction.length }
}

/**
 * Converts a price to an asset's smallest unit: price × worth ÷ per, rounded up once, at the end. The store never gets
 * less than it asked for, and the buyer never pays a whole unit too much.
 */
export function toUnits(price: Decimal, worth: Decimal, per: Decimal, decimals: number): bigint {
  assert(price.coefficient > 0n && worth.coefficient > 0n && per.coefficient > 0n)
  const numerator = price.coefficient * worth.coefficient * 10n ** BigInt(decimals + per.scale)
  const denominator = per.coefficient * 10n ** BigInt(price.scale + worth.scale)
  return (numerator + denominator - 1n) / denominator
}

export const one: Decimal = { coefficient: 1n, scale: 0 }

/** Units of an asset as a plain decimal that people can read and type: exact, with at least two decimals. */
export function unitsToText(units: bigint, decimals: number): string {
  const digits = units.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return decimals === 0 ? whole : `${whole}.${fraction.padEnd(Math.min(2, decimals), '0')}`
}
