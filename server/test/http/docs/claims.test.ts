/** The security model names a test for each of its claims: here its words are held against the tests that exist. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { readPages, root } from './blocks.ts'

const page = readPages().find(({ file }) => file === 'docs/security-model.md')?.source ?? assert.fail()
const [attackers = '', defences = ''] = page.split('\n## Threats and defences\n')
/** Its first part, by attacker. */
const sections = attackers
  .split(/^## .*$/m)
  .flatMap((part) => part.split(/^### /m).slice(1))
  .map((text) => ({ name: text.split('\n')[0] ?? '', text }))

/** A file that the page names, from the root, in the tests or in the sources. */
function find(path: string): string | undefined {
  return ['', 'server/test/', 'server/src/'].map((base) => root + base + path).find(existsSync)
}

/** The names of a file's tests, as they are written there. */
function namesIn(path: string): string[] {
  const text = readFileSync(find(path) ?? assert.fail(`${path} does not exist`), 'utf8')
  return [...text.matchAll(/\btest\(\s*(['`])((?:(?!\1).)*)\1/g)].map(([, , name = '']) => name)
}

type Citation = { readonly path: string; readonly names: readonly string[] }

/** `file.test.ts` “part of a name”, “part of another” */
function citationsIn(text: string): Citation[] {
  return [...text.matchAll(/`([\w./-]+\.test\.ts)`((?:,? “[^”]+”)*)/g)].map(([, path = '', names = '']) => ({
    path,
    names: [...names.matchAll(/“([^”]+)”/g)].map(([, name = '']) => name),
  }))
}

test('every test that the security model cites exists, under the name that it cites', () => {
  const cited = citationsIn(page)
  assert(cited.length > 60, `only ${cited.length} citations`)
  for (const { path, names } of cited) {
    const existing = namesIn(path)
    for (const name of names)
      assert(
        existing.some((each) => each.includes(name)),
        `${path} has no test “${name}”`,
      )
  }
})

test('the security model says of each attacker what is lost, what is not, how one notices and what to do, with its tests', () => {
  assert(sections.length >= 15)
  for (const { name, text } of sections) {
    for (const word of [/\blost\b.*:\*\*/i, /\*\*Not lost\b/, /^- \*\*You notice:\*\* /m, /^- \*\*Do:\*\* /m])
      assert.match(text, word, name)
    const named = citationsIn(text).filter(({ names }) => names.length > 0)
    assert(named.length > 0, `${name} names no test`)
  }
})

test('every source file that the security model names exists', () => {
  const named = [...defences.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, path = '']) => path)
  assert(named.length > 60)
  assert.deepEqual(
    named.filter((path) => find(path) === undefined),
    [],
  )
})
