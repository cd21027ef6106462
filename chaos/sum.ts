/** Adds up the runs that were kept in a folder, by commit: `node chaos/sum.ts [FOLDER]`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = process.argv[2] ?? 'chaos/results'

type Line = {
  readonly commit: string
  readonly seconds: number
  readonly violations: number
  readonly counts: Readonly<Record<string, number>>
  readonly shortcomings: readonly string[]
}

const runs = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Line)
// What proves nothing is not added.
const counted = runs.filter(({ shortcomings }) => shortcomings.length === 0)
for (const [commit, group] of Map.groupBy(counted, (line) => line.commit)) {
  const sums: Record<string, number> = {
    runs: group.length,
    seconds: group.reduce((sum, { seconds }) => sum + seconds, 0),
    violations: group.reduce((sum, { violations }) => sum + violations, 0),
  }
  // Pairs that two runs met are mostly the same ones.
  for (const { counts } of group)
    for (const [what, times] of Object.entries(counts))
      sums[what] = what.includes('×') ? Math.max(sums[what] ?? 0, times) : (sums[what] ?? 0) + times
  process.stdout.write(`${commit}\n`)
  for (const [what, sum] of Object.entries(sums))
    process.stdout.write(`  ${what.padEnd(56)} ${String(sum).padStart(9)}\n`)
}
if (counted.length < runs.length) process.stdout.write(`${runs.length - counted.length} runs do not count.\n`)
