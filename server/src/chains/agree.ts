export type Saying<Fact> = { readonly provider: string; readonly fact: Fact }

export type Agreement<Fact> = {
  /** What enough providers report; null if none. */
  readonly fact: Fact | null
  /** Those that report something else. */
  readonly odd: readonly string[]
  /** Providers report different things, and neither side is believed. */
  readonly isDisputed: boolean
}

/**
 * No single provider decides. A fact counts once `witnessesMin` providers report it and no equally large group
 * contradicts them. The caller leaves out providers that know nothing: they contradict no one.
 */
export function agree<Fact>(
  said: readonly Saying<Fact>[],
  keyOf: (fact: Fact) => string,
  witnessesMin: number,
): Agreement<Fact> {
  const groups = [...Map.groupBy(said, ({ fact }) => keyOf(fact)).values()]
  const [largest = []] = groups.toSorted((a, b) => b.length - a.length)
  const [first] = largest
  if (first && isMost(largest.length, said.length, witnessesMin)) {
    const odd = said.filter((one) => !largest.includes(one)).map(({ provider }) => provider)
    return { fact: first.fact, odd, isDisputed: false }
  }
  const isDisputed = groups.length > 1
  return { fact: null, odd: isDisputed ? said.map(({ provider }) => provider) : [], isDisputed }
}

/** Whether this many of the providers that answered decide: they are enough, and no other group can be as large. */
export function isMost(count: number, answered: number, witnessesMin: number): boolean {
  return count >= witnessesMin && count * 2 > answered
}

/**
 * The highest value that enough of the answering providers have reached; null if too few answered. Two of four are not
 * enough, because the other two could be the honest ones.
 */
export function reachedBy(values: readonly number[], witnessesMin: number): number | null {
  const needed = Math.max(witnessesMin, Math.floor(values.length / 2) + 1)
  return values.toSorted((a, b) => b - a)[needed - 1] ?? null
}

/** How many providers must say the same before we stop waiting for the others: enough, and more than half of all. */
export function enoughOf(providers: readonly string[], witnessesMin: number): number {
  return Math.max(witnessesMin, Math.floor(providers.length / 2) + 1)
}
