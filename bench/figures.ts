/** Statistics, number options and output that the benchmarks share. */
import assert from 'node:assert/strict'

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2
}

export function quantile(numbers: readonly number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * share)] ?? 0
}

export function round(number: number, digits: number): number {
  return Math.round(number * 10 ** digits) / 10 ** digits
}

/** Parses a whole number from the command line. */
export function whole(name: string, text: string, min: number, max: number): number {
  const number = /^\d+$/.test(text) ? Number.parseInt(text, 10) : -1
  assert(number >= min && number <= max, `--${name} must be a whole number from ${min} to ${max}`)
  return number
}

export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
