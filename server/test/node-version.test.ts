import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url).pathname
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** A Node on this machine that is too old: the system's, or the one that the packages are tested on. */
const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin', '/usr/local/bin']
const old = [
  ...folders.map((folder) => join(folder, 'node')),
  join(root, '.ci/node-22/node_modules/.bin/node'),
]
  .filter((file) => existsSync(file))
  .find(
    (file) =>
      Number.parseInt(execFileSync(file, ['-p', 'process.versions.node'], { encoding: 'utf8' }), 10) < 24,
  )

const commands = {
  ...Object.fromEntries(['dev', 'test', 'pack'].map((name) => [`npm run ${name}`, scripts[name] ?? ''])),
  'farthing-admin': 'server/farthing-admin.cjs --version',
}
for (const [name, command] of Object.entries(commands))
  test(`on an old Node, ${name} says in one sentence what is needed`, { skip: !old }, () => {
    assert(old)
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], {
      cwd: root,
      encoding: 'utf8',
      env: { PATH: `${dirname(old)}:/usr/bin` },
    })
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, /^Farthing needs Node 24 or later, and this is Node \d+\.\d+\.\d+: install it .*\n$/)
  })
