import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { invariants } from '../checker/history.ts'
import { catalog } from './catalog.ts'

const root = new URL('../..', import.meta.url).pathname
const patches = readdirSync(new URL('.', import.meta.url)).filter((name) => name.endsWith('.patch'))

describe('the catalog of planted bugs', () => {
  test('has at least 25 bugs, each with its patch', () => {
    assert(catalog.length >= 25)
    assert.deepEqual(patches.toSorted(), catalog.map(({ name }) => `${name}.patch`).toSorted())
  })

  for (const planted of catalog) {
    test(`${planted.name} still applies, and the test that catches it still exists`, () => {
      execFileSync('git', ['apply', '--check', `chaos/planted/${planted.name}.patch`], { cwd: root })
      if ('invariant' in planted) assert(planted.invariant in invariants)
      else assert(readFileSync(`${root}${planted.file}`, 'utf8').includes(planted.test))
    })
  }
})
