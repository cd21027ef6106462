import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from './support/at-end.ts'

const root = new URL('../../', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'farthing-release-'))
atEnd(() => rmSync(folder, { recursive: true, force: true }))
const key = join(folder, 'key.pem')
execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key])

/** Releases the last commit from a clone of its own, as another person would. */
function release(name: string): string {
  const clone = join(folder, `clone-${name}`)
  execFileSync('git', ['clone', '--quiet', root, clone])
  for (const modules of ['node_modules', '.ci/node/node_modules'])
    symlinkSync(join(root, modules), join(clone, modules))
  appendFileSync(join(clone, '.git/info/exclude'), 'node_modules\n')
  const into = join(folder, name)
  execFileSync(join(clone, '.ci/release'), [into, '--key', key], { stdio: 'pipe' })
  return into
}

test('two releases of one commit are the same bytes, and their signed checksums hold', () => {
  const [one, two] = [release('one'), release('two')]
  const files = readdirSync(one)
  assert.deepEqual(readdirSync(two), files)
  for (const file of files)
    assert(readFileSync(join(one, file)).equals(readFileSync(join(two, file))), `${file} differs`)
  assert.match(
    files.join(' '),
    /SHA256SUMS SHA256SUMS.sig \S+-sbom\.json \S+-source\.tar\.gz \S+\.tgz \S+\.tgz/,
  )

  const verify = (file: string) => {
    const paths = ['-in', join(one, file), '-sigfile', join(one, 'SHA256SUMS.sig')]
    return spawnSync('openssl', ['pkeyutl', '-verify', '-inkey', key, '-rawin', ...paths]).status
  }
  assert.equal(verify('SHA256SUMS'), 0)
  assert.notEqual(verify(files.find((file) => file.endsWith('.tgz')) ?? ''), 0)
  execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: one })
  const { components } = JSON.parse(readFileSync(join(one, files[2] ?? ''), 'utf8'))
  const listed = components.map((component: { 'bom-ref': string }) => component['bom-ref'])
  const { dependencies } = JSON.parse(readFileSync(join(root, 'server/package.json'), 'utf8'))
  const missing = Object.entries(dependencies).filter(
    ([name, version]) => !listed.includes(`${name}@${version}`),
  )
  assert.deepEqual(missing, [], 'the bill of materials lacks a dependency of the server')
  assert(!listed.some((one: string) => one.startsWith('playwright-core@')), 'it lists what only tests use')
})
