import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { operations } from '../support/document.ts'
import { playExamples } from '../support/examples.ts'

const file = new URL('../../../../docs/api/examples.json', import.meta.url)
const played = await playExamples()

// `npm run generate` runs this file to write what it compares.
if (process.env.GENERATE === 'examples') writeFileSync(file, `${JSON.stringify(played, null, 2)}\n`)

test('every operation has an example of a success that the application really gave', () => {
  for (const { id } of operations)
    assert(
      played[id]?.some(({ status }) => status < 300),
      `${id} is not called by server/test/http/support/examples.ts`,
    )
})

test('docs/api/examples.json is what the application answers, in every run', () => {
  const committed = JSON.parse(readFileSync(file, 'utf8'))
  assert.deepEqual(played, committed, 'Run npm run generate and commit the result.')
})
