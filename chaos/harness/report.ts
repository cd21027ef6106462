import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Invariant, invariants, type Violation } from '../checker/history.ts'

/** One second of a run. */
export type Second = { readonly paid: number; readonly faults: number }

export type Result = {
  readonly commit: string
  readonly seed: number
  readonly plans: readonly string[]
  readonly seconds: number
  readonly quietSeconds: number
  readonly violations: readonly Violation[]
  readonly counts: Readonly<Record<string, number>>
  readonly timeline: readonly Second[]
  /** Why the run proves nothing; empty if it counts. */
  readonly shortcomings: readonly string[]
}

/** A run as it is stored. */
type Kept = Omit<Result, 'violations' | 'timeline'> & {
  readonly violations: number
  readonly broken: readonly string[]
}

/** The whole run as one line of JSON. */
export function toLine({ violations, timeline: _, shortcomings, ...result }: Result): string {
  const { counts } = result
  const sumOf = (prefix: string) =>
    Object.entries(counts).reduce((sum, [what, times]) => (what.startsWith(prefix) ? sum + times : sum), 0)
  return JSON.stringify({
    ...result,
    violations: violations.length,
    broken: [...new Set(violations.map(({ invariant }) => invariant))],
    kills: sumOf('kill -9'),
    crashes: sumOf('crash '),
    payments: counts['payments completed'] ?? 0,
    shortcomings,
  })
}

export function toTable({ counts, violations, shortcomings }: Result): string {
  const width = Math.max(...Object.keys(counts).map(({ length }) => length))
  const lines = Object.entries(counts)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([what, times]) => `  ${what.padEnd(width)}  ${String(times).padStart(8)}`)
  const broken = Object.entries(invariants).map(([name, sentence]) => {
    const found = violations.filter(({ invariant }) => invariant === (name as Invariant))
    return `  ${name.padEnd(4)} ${found.length === 0 ? 'holds ' : `BROKEN ${found.length}×`} ${sentence}`
  })
  return [
    ...lines,
    '',
    ...broken,
    ...violations.slice(0, 40).map(({ invariant, what }) => `  ${invariant} ${what}`),
    ...shortcomings.map((sentence) => `  the run does not count: ${sentence}`),
  ].join('\n')
}

/** Plots payments per second as an area, and faults per second as strokes above it. */
function toPlot({ timeline, seed, plans, commit }: Result): string {
  const width = 900
  const height = 240
  const step = width / Math.max(1, timeline.length)
  const paidMax = Math.max(1, ...timeline.map(({ paid }) => paid))
  const faultsMax = Math.max(1, ...timeline.map(({ faults }) => faults))
  const y = (paid: number) => height - (paid / paidMax) * (height - 60)
  const area = timeline.map(({ paid }, i) => `L${(i * step).toFixed(1)} ${y(paid).toFixed(1)}`).join('')
  const strokes = timeline
    .map(({ faults }, i) =>
      faults === 0 ? '' : `M${(i * step).toFixed(1)} 50v${(-36 * (faults / faultsMax)).toFixed(1)}`,
    )
    .join('')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height + 24}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${height + 24}" fill="#fff"/>
<path d="M0 ${height}${area}L${width} ${height}Z" fill="#9cc3e6"/>
<path d="${strokes}" stroke="#c0392b" stroke-width="1.5"/>
<text x="4" y="${height + 16}">payments completed per second (blue, at most ${paidMax}) and faults begun (red, at most ${faultsMax}) over ${timeline.length} s · ${plans.join(' ')} · seed ${seed} · ${commit}</text>
</svg>
`
}

/** Stores the result and the plot of a run. */
export async function keep(folder: string, result: Result): Promise<void> {
  await mkdir(folder, { recursive: true })
  const name = `${result.commit}-${result.plans.join('+')}-${result.seed}`
  await writeFile(join(folder, `${name}.json`), `${toLine(result)}\n`)
  await writeFile(join(folder, `${name}.svg`), toPlot(result))
}

/** The runs in a folder, by their names: docs/proof also has other results. */
export function readKept(folder: string): Kept[] {
  return readdirSync(folder)
    .filter((name) => /-\d+\.json$/.test(name))
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Kept)
}

/** A run counts if it has no shortcomings and broke no invariant. */
export function isCounted({ shortcomings, violations }: Kept): boolean {
  return shortcomings.length === 0 && violations === 0
}
