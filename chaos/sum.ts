/** Adds up the runs stored in a folder, per commit and in total: `node chaos/sum.ts [FOLDER]`. */
import { isCounted, readKept } from './harness/report.ts'

const runs = readKept(process.argv[2] ?? 'chaos/results')
const counted = runs.filter(isCounted)
for (const [commit, group] of [...Map.groupBy(counted, (line) => line.commit), ['all', counted] as const]) {
  const sums: Record<string, number> = {
    runs: group.length,
    seconds: group.reduce((sum, { seconds }) => sum + seconds, 0),
  }
  // Two runs mostly meet the same pairs, so the largest number counts instead of the sum.
  for (const { counts } of group)
    for (const [what, times] of Object.entries(counts))
      sums[what] = what.includes('×') ? Math.max(sums[what] ?? 0, times) : (sums[what] ?? 0) + times
  process.stdout.write(`${commit}\n`)
  for (const [what, sum] of Object.entries(sums))
    process.stdout.write(`  ${what.padEnd(56)} ${String(sum).padStart(9)}\n`)
}
for (const run of runs.filter((one) => !isCounted(one))) {
  const reasons = [...run.broken.map((invariant) => `${invariant} was broken`), ...run.shortcomings]
  process.stdout.write(`not counted: ${run.commit}, seed ${run.seed}: ${reasons.join('; ')}\n`)
}
