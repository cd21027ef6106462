import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from './support/at-end.ts'
import { until } from './support/until.ts'

const root = new URL('../../', import.meta.url).pathname

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  for (const [when, isBegun] of [
    ['its tests run', (folder: string) => existsSync(join(folder, 'begun'))],
    [
      'its database starts',
      (folder: string) => readdirSync(folder).some((name) => name.startsWith('farthing-test-')),
    ],
  ] as const)
    test(`a run of the tests that gets ${signal} while ${when} leaves nothing behind`, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'farthing-run-'))
      atEnd(() => rmSync(folder, { recursive: true, force: true }))
      // As root, PostgreSQL runs as another user.
      chmodSync(folder, 0o755)
      const file = join(folder, 'endless.test.ts')
      writeFileSync(
        file,
        `import { test } from 'node:test'
import { writeFileSync } from 'node:fs'
test('endless', async () => { writeFileSync(${JSON.stringify(join(folder, 'begun'))}, ''); await new Promise((resolve) => setTimeout(resolve, 600_000)) })
`,
      )
      const run = spawn(process.execPath, [join(root, 'server/test/run.ts'), file], {
        cwd: root,
        stdio: 'ignore',
        env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder },
      })
      const ended = once(run, 'exit')
      await until('it has begun', async () => isBegun(folder))
      const cluster = readdirSync(folder).find((name) => name.startsWith('farthing-test-')) ?? assert.fail()
      run.kill(signal)
      const [code] = await ended
      assert.equal(code, 1)
      assert(!existsSync(join(folder, cluster)), 'the database’s folder is gone, and so is the database')
    })
