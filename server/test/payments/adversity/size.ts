/** How many times a test repeats: a few on every commit, all of them with FULL=1. */
export function trials(some: number, all: number): number {
  return process.env.FULL === '1' ? all : some
}

/** Formats figures for a test's report. */
export function print(figures: object): string {
  return JSON.stringify(figures, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
}
