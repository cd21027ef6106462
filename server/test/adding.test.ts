/** How many files an addition takes: the code files that name one example of each kind, generated ones aside. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url).pathname
const generated = ['sdk/src/agent/assets.ts']
/** Screens and the demo store use what there is; adding it does not take them. */
const users = /^server\/src\/(http\/console|dev)\//
const sources = globSync('{server,sdk,cli,page}/src/**/*.ts', { cwd: root })
  .filter((path) => !path.endsWith('.test.ts') && !generated.includes(path) && !users.test(path))
  .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))

const examples: readonly [addition: string, example: RegExp, filesMax: number][] = [
  ['an EVM network', /eip155:84532|Base Sepolia/, 1],
  ['a Solana network', /solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1|solana:devnet/, 1],
  ['a token', /0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913/, 1],
  ['an endpoint', /dismissPayment|\/dismiss\b/, 5],
  ['an event type', /payment\.unmatched/, 4],
  ['a setting', /drainSeconds|DRAIN_SECONDS/, 3],
  ['a page language', /\bchinese\b|zh\.ts/, 2],
]

test('a console language takes 2 files of code', () => {
  const files = globSync('server/src/http/console/**/*.ts', { cwd: root }).filter(
    (path) => /\/es\.ts$/.test(path) || /\/es\.ts'|'es'|Español/.test(readFileSync(root + path, 'utf8')),
  )
  assert.deepEqual(
    files.sort(),
    ['choose', 'es'].map((name) => `server/src/http/console/texts/${name}.ts`),
  )
})

for (const [addition, example, filesMax] of examples)
  test(`${addition} takes at most ${filesMax} files of code`, () => {
    const files = sources.filter(({ path, text }) => example.test(text) || example.test(path))
    assert(files.length >= 1, 'the example is still there')
    assert(files.length <= filesMax, files.map(({ path }) => path).join(', '))
  })
