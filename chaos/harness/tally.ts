/** Counts what the harness did, by name. */
export type Tally = {
  count(what: string, times?: number): void
  readonly counts: Map<string, number>
}

export function openTally(): Tally {
  const counts = new Map<string, number>()
  return { counts, count: (what, times = 1) => counts.set(what, (counts.get(what) ?? 0) + times) }
}
