/** How much there is to read: `npm run count`. Lines and files of code, words of the docs. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const root = new URL('../../', import.meta.url).pathname
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
const isTest = (path: string) => path.endsWith('.test.ts') || path.includes('/test/')

const groups: readonly [name: string, unit: 'lines' | 'words', isIn: (path: string) => boolean][] = [
  ['server/src', 'lines', (path) => /^server\/src\/.*\.ts$/.test(path) && !isTest(path)],
  ['sdk, cli, mcp, page', 'lines', (path) => /^(sdk|cli|mcp|page)\/.*\.ts$/.test(path) && !isTest(path)],
  ['tests', 'lines', (path) => /^(server|sdk|cli|mcp|page|examples)\/.*\.ts$/.test(path) && isTest(path)],
  ['chaos, bench', 'lines', (path) => /^(chaos|bench)\/.*\.ts$/.test(path)],
  ['migrations, rights', 'lines', (path) => /^server\/(migrations|rights)\/.*\.sql$/.test(path)],
  ['docs', 'words', (path) => /^docs\/.*\.md$/.test(path)],
]

for (const [name, unit, isIn] of groups) {
  const texts = tracked.filter(isIn).map((path) => readFileSync(root + path, 'utf8'))
  const count = texts.reduce((sum, text) => sum + text.split(unit === 'lines' ? '\n' : /\s+/).length - 1, 0)
  process.stdout.write(`${name.padEnd(20)} ${`${count}`.padStart(7)} ${unit} in ${texts.length} files\n`)
}
