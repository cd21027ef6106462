/** The docs name tests, files and commands for their claims: here the names are held against what exists. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { commands } from '../../../src/commands/table.ts'
import { readPages, root } from './blocks.ts'

const pages = readPages()
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
const page = pages.find(({ file }) => file === 'docs/security-model.md')?.source ?? assert.fail()
const [attackers = ''] = page.split('\n## Other attacks\n')
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

/** The prose of a page: what a block holds is run or compared by `run.test.ts`. */
function proseOf(source: string): string {
  return source.replace(/^```[\s\S]*?^```/gm, '')
}

/** Names that stand for others, such as `http/page/languages/xx.ts`. */
const isPattern = (path: string) => /[{}*]|NNNN|\bxx\./.test(path)

function exists(path: string): boolean {
  return tracked.some((file) => file === path || file.endsWith(`/${path}`) || `/${file}`.includes(`/${path}`))
}

test('every source file and folder that the docs name exists', () => {
  const named = pages.flatMap(({ file, source }) =>
    [...proseOf(source).matchAll(/`([\w.{},*/-]+(?:\.(?:tsx?|sql|sol)|\/))`/g)]
      .map(([, path = '']) => ({ file, path }))
      .filter(({ path }) => !/^[/A-Z]/.test(path) && !isPattern(path)),
  )
  assert(named.length > 300, `only ${named.length} names`)
  assert.deepEqual(
    named.filter(({ path }) => !exists(path)),
    [],
  )
})

test('every file on the map of the rooms exists', () => {
  const map = pages.find(({ file }) => file === 'docs/architecture.md')?.blocks[0]?.text ?? assert.fail()
  const named = map.match(/[\w-]+\.ts\b/g) ?? []
  assert(named.length > 60, `only ${named.length} names`)
  assert.deepEqual(
    named.filter(
      (name) => !tracked.some((file) => file.startsWith('server/src/') && file.endsWith(`/${name}`)),
    ),
    [],
  )
})

test('what the docs say is in a source file is there', () => {
  const named = pages.flatMap(({ file, source }) =>
    [...proseOf(source).matchAll(/`(\w+)`(?:,)? (?:in|of) `([\w./-]+\.ts)`/g)].map(
      ([, name = '', path = '']) => ({
        file,
        name,
        path,
      }),
    ),
  )
  assert(named.length > 10, `only ${named.length} names`)
  for (const { file, name, path } of named) {
    const homes = tracked.filter((each) => each === path || each.endsWith(`/${path}`))
    assert(
      homes.some((home) => readFileSync(root + home, 'utf8').includes(name)),
      `${file}: ${name} is not in ${path}`,
    )
  }
})

test('every command of this repository that the docs name exists', () => {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: object }
  const long = readFileSync(`${root}.ci/long`, 'utf8')
  let found = 0
  for (const { file, source } of pages) {
    for (const [, script = ''] of source.matchAll(/npm run ([\w:-]+)/g)) {
      found += 1
      assert(script in scripts, `${file}: npm run ${script}`)
    }
    for (const [, path = ''] of source.matchAll(/(?:npm test --|server\/test\/run\.ts) (\S+\.test\.ts)/g))
      assert(tracked.includes(path), `${file}: ${path}`)
    for (const [, name = ''] of source.matchAll(/`\.ci\/long ([\w-]+)`/g))
      assert(long.includes(`wants ${name}`), `${file}: .ci/long ${name}`)
    for (const [, name = ''] of source.matchAll(/\.ci\/([\w-]+)/g))
      assert(tracked.includes(`.ci/${name}`), `${file}: .ci/${name}`)
    for (const [, word = ''] of source.matchAll(/farthing-admin ([a-z]+)\b/g))
      assert(
        commands.some(({ words }) => words.split(' ')[0] === word),
        `${file}: farthing-admin ${word}`,
      )
  }
  assert(found > 40, `only ${found} scripts`)
})
