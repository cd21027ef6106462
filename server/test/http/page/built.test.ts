import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { digestSources, openPage } from '@farthing/page'
import { atEnd } from '../../support/at-end.ts'

test('a built page is used only if it was made from the sources that are here; otherwise it is built again', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-built-'))
  atEnd(() => rm(folder, { recursive: true }))
  const file = pathToFileURL(join(folder, 'built.json'))
  const write = (sources: string) =>
    writeFile(file, JSON.stringify({ sources, script: 'built', style: 'built' }))
  const fresh = openPage(file)
  assert(fresh.script.length > 1_000 && fresh.style.length > 1_000)
  await write(digestSources())
  assert.equal(openPage(file).script, 'built')
  await write('of an earlier version')
  assert.deepEqual(openPage(file), fresh)
})
