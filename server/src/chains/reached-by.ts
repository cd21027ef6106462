/** The highest of the values that at least `count` providers have reached; null if fewer answered. */
export function reachedBy(values: readonly number[], count: number): number | null {
  return values.toSorted((a, b) => b - a)[count - 1] ?? null
}
