import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCounted, readKept } from './report.ts'

test('the runs in docs/proof can be added up, and one that fell short does not count', () => {
  const runs = readKept(new URL('../../docs/proof', import.meta.url).pathname)
  const left = runs.filter((run) => !isCounted(run))
  assert(runs.length > left.length && left.length > 0)
  for (const { broken, shortcomings } of left) assert(broken.length + shortcomings.length > 0)
})
