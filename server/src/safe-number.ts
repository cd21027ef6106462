import assert from 'node:assert/strict'

/** For counts, indexes and times. Amounts of money stay bigint, because they can be larger than a number is exact. */
export function toSafeNumber(value: bigint): number {
  const number = Number.parseInt(value.toString(), 10)
  assert(Number.isSafeInteger(number), `${value} is too large to be a number`)
  return number
}
