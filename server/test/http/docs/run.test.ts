/**
 * Follows the docs: all blocks of a page in order, in a second terminal beside `npm run dev` in a clean clone.
 * CONTRIBUTING.md explains the info strings of blocks.
 */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { isFollowed, isOutput, isRun, readPages, root } from './blocks.ts'
import { followPage } from './support/follow.ts'

/** A `dev` is several processes, some of which wait: more than this would only wait for each other. */
const pagesAtOnce = 2

const pages = readPages().filter((page) => isFollowed(page) && page.blocks.some(isRun))

const ran = new Set<string>()

describe('a reader beside `npm run dev`', { concurrency: pagesAtOnce }, () => {
  for (const { file, blocks } of pages) {
    test(`${file}: every block that can run does what the page says`, async () => {
      const { results, operations, alarms } = await followPage(blocks)
      for (const operation of operations) ran.add(operation)
      assert.equal(
        results.length,
        blocks.length,
        `the shell of ${file} exited early:\n${results.at(-1)?.output}\n${results.at(-1)?.errors}`,
      )
      for (const [i, block] of blocks.entries()) {
        const { output, errors } = results[i] ?? assert.fail()
        const report = `${file}, block ${i + 1}:\n${block.text}\n--- stdout\n${output}\n--- stderr\n${errors}`
        if (!isRun(block)) continue
        assert.doesNotMatch(errors, /^@failed/m, report)
        const statuses = [...errors.matchAll(/^@status (\d+)$/gm)].map(([, status]) => status ?? '')
        const unexpected = statuses.filter((status) => !/^2/.test(status))
        assert.deepEqual(unexpected, block.statuses, report)
        const documented = blocks[i + 1]
        if (!documented || !isOutput(documented)) continue
        if (documented.language === 'text') assert.equal(output.trim(), documented.text, report)
        else assertSameShape(JSON.parse(documented.text), lastJson(output, report), report)
      }
      assert.deepEqual(alarms, [])
    })
  }
})

test('every operation of the API has an example that ran', async () => {
  const { paths } = JSON.parse(await readFile(`${root}docs/api/openapi.json`, 'utf8')) as {
    paths: Record<string, Record<string, unknown>>
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(
    operations.filter((operation) => !ran.has(operation)),
    [],
  )
})

function lastJson(output: string, report: string): unknown {
  const line = output.split('\n').findLast((text) => /^[{[]/.test(text))
  assert(line !== undefined, report)
  return JSON.parse(line)
}

/** Both have the same fields with values of the same type. "…" matches anything, and a list shows its first entries. */
function assertSameShape(documented: unknown, actual: unknown, report: string): void {
  if (documented === null || actual === null || documented === '…') return
  assert.equal(typeof actual, typeof documented, report)
  if (typeof documented !== 'object' || typeof actual !== 'object') return
  if (Array.isArray(documented)) {
    assert(Array.isArray(actual), report)
    for (const [i, entry] of actual.entries()) assertSameShape(documented[i] ?? documented[0], entry, report)
    return
  }
  if ('…' in documented) return
  assert.deepEqual(Object.keys(actual).sort(), Object.keys(documented).sort(), report)
  for (const [name, value] of Object.entries(documented))
    assertSameShape(value, (actual as Record<string, unknown>)[name], report)
}
