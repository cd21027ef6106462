/** Each reader has a few pages that are enough to read, and together they stay short. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arrangeChapters } from '../../../src/http/docs/chapters.ts'
import { readPages } from './blocks.ts'

/** Words with code and tables, as `wc -w` counts them: twenty minutes of reading. */
const limit = 5_000

/** The required reading of each reader. */
const required: Readonly<Record<string, readonly string[]>> = {
  owner: ['docs/owner.md'],
  developer: ['docs/first-shop.md', 'docs/build.md', 'docs/sdk.md'],
  agent: ['docs/x402.md'],
  operator: ['docs/deploying.md', 'docs/operating.md', 'docs/runbook.md'],
  contributor: ['CONTRIBUTING.md', 'docs/architecture.md'],
}

const pages = new Map(readPages().map(({ file, source }) => [file, source]))

for (const [reader, files] of Object.entries(required)) {
  test(`the required reading of the ${reader} has fewer than 5,000 words in all`, () => {
    const counts = files.map((file) => {
      const words = (pages.get(file) ?? assert.fail(`${file} does not exist`)).trim().split(/\s+/)
      return [file, words.length] as const
    })
    const sum = counts.reduce((total, [, count]) => total + count, 0)
    assert(sum < limit, `${sum} words: ${JSON.stringify(Object.fromEntries(counts))}`)
  })

  test(`the navigation lists the required reading of the ${reader} first`, () => {
    const chapter = arrangeChapters([]).chapters.find(({ title }) => title.toLowerCase() === reader)
    const first = (chapter ?? assert.fail()).pages.slice(0, files.length)
    assert.deepEqual(
      first.map(({ source }) => source),
      files.map((file) => pages.get(file)),
    )
  })
}
