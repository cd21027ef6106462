import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** Long tests that a page cites. Each notes in docs/proof when, and at which commit, it last passed. */
export const cited = ['deploying', 'containers'] as const
type Cited = (typeof cited)[number]
type Passed = { readonly date: string; readonly commit: string } & Readonly<Record<string, number | string>>

const root = new URL('../../../', import.meta.url).pathname
const fileOf = (name: Cited) => `${root}docs/proof/${name}.json`

/** What is tested: a test may take long, and the next commit may come before it ends. */
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()

export function notePassed(name: Cited, figures: Readonly<Record<string, number>>): void {
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(fileOf(name), `${JSON.stringify({ date, commit, ...figures }, null, 2)}\n`)
}

/** The sentence for the page. `npm run generate` puts it where the page has its mark. */
export function describePassed(name: Cited): string {
  if (!existsSync(fileOf(name))) return `\`.ci/long ${name}\` has not passed yet.`
  const { date, commit, ...figures }: Passed = JSON.parse(readFileSync(fileOf(name), 'utf8'))
  const list = Object.entries(figures).map(
    ([figure, value]) => `${figure.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}: ${value}`,
  )
  return `\`.ci/long ${name}\` last passed on ${date} at commit ${commit} (${list.join(', ')}).`
}
