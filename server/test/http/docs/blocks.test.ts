import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { listUnrun, parsePage, readPages, root } from './blocks.ts'
import { unrun } from './unrun.ts'

const pages = readPages()

test('no page has more blocks that do not run than it had', () => {
  for (const page of pages) {
    const { file } = page
    const [found, known] = [listUnrun(page), unrun[file] ?? 0]
    const list = found.map(({ language, words, text }) => `--- ${[language, ...words].join(' ')}\n${text}`)
    assert(
      found.length <= known,
      `${file} has ${found.length} blocks that do not run, and should have ${known} at most. CONTRIBUTING.md says how to make one run.\n${list.join('\n')}`,
    )
    assert(
      found.length === known,
      `${file} has only ${found.length} blocks left that do not run: lower its number in unrun.ts.`,
    )
  }
  const files = pages.map(({ file }) => file)
  assert.deepEqual(
    Object.keys(unrun).filter((file) => !files.includes(file)),
    [],
  )
})

test('a block counts as not run if it says so, is in a language that is not run, or is of no use to a block that runs', () => {
  const fences = {
    'sh elsewhere': true,
    bash: true,
    'text nginx.conf': true,
    'ts unused.ts': true,
    'json elsewhere': true,
    json: true,
    ts: false,
    'ts used.ts': false,
    sh: false,
    text: false,
  }
  const source = Object.keys(fences).map((info) => `\`\`\`${info}\nnode used.ts\n\`\`\`\n`)
  const page = parsePage('docs/page.md', source.join('\n'))
  assert.deepEqual(
    listUnrun(page).map(({ language, words }) => [language, ...words].join(' ')),
    Object.entries(fences).flatMap(([info, isUnrun]) => (isUnrun ? [info] : [])),
  )
})

test('every JSON block in the docs is valid JSON', () => {
  for (const { file, blocks } of pages)
    for (const { text } of blocks.filter(({ language }) => language === 'json'))
      assert.doesNotThrow(() => JSON.parse(text), `${file}:\n${text}`)
})

test('the TypeScript blocks in the docs have no type errors', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-docs-types-'))
  t.after(() => rm(folder, { recursive: true }))
  for (const name of ['node_modules', 'package.json']) await symlink(join(root, name), join(folder, name))
  const files = pages.flatMap(({ file, blocks }) =>
    blocks
      .filter(({ language }) => language === 'ts')
      .map(
        ({ text, fileName }, i) => [`${file.replaceAll('/', '-')}-${fileName ?? `${i}.ts`}`, text] as const,
      ),
  )
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  const config = { extends: `${root}tsconfig.json`, files: files.map(([name]) => name), include: [] }
  await writeFile(join(folder, 'docs.tsconfig.json'), JSON.stringify(config))
  const tsc = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', 'docs.tsconfig.json'], {
    cwd: folder,
    encoding: 'utf8',
  })
  assert.equal(tsc.stdout, '')
  assert.equal(tsc.status, 0)
  assert(files.length > 0)
})
