import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import type { Method, StoreClient } from '../../../support/store.ts'

/** A page's text as a browser shows it. */
export function textOf(markup: string): string {
  return markup.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
}

/** What a shell makes of the "same by API" lines of a page: the words that curl gets. */
function wordsOf(page: string): string[][] {
  const lines = [...page.matchAll(/ data-copy="(curl [^"]+)"/g)].map(([, line = '']) => textOf(line))
  assert(lines.length > 0, 'the page has no line for the API')
  return lines.map((line) => {
    const script = line.replace(/^curl /, "printf '%s\\n' ")
    const words = execFileSync('sh', ['-c', script], {
      env: { FARTHING_API_KEY: 'the-key' },
      encoding: 'utf8',
    })
    return words.trimEnd().split('\n')
  })
}

/** Sends the lines of a page to the API as curl would, and returns the answers, of which each has to be a success. */
// biome-ignore lint/suspicious/noExplicitAny: the tests name what they read.
export async function sendLines(store: StoreClient, page: string, baseUrl: string): Promise<any[]> {
  const answers: unknown[] = []
  for (const words of wordsOf(page)) {
    const after = (option: string) => words[words.indexOf(option) + 1]
    const method = (words.includes('-X') ? after('-X') : 'GET') as Method
    assert(words.includes('X-API-Key: the-key'), words.join(' '))
    const url = words.find((word) => word.startsWith('http')) ?? assert.fail(words.join(' '))
    assert(url.startsWith(`${baseUrl}/api/v1/`), url)
    // curl's own list of alternatives.
    const [, start = url, list = '', end = ''] = /^(.*)\{(.*)\}(.*)$/.exec(url) ?? []
    for (const one of list.split(',')) {
      const body = words.includes('-d') ? JSON.parse(after('-d') ?? '') : undefined
      const answer = await store.call(method, `${start}${one}${end}`.slice(baseUrl.length), body)
      assert(answer.statusCode < 300, `${method} ${url}: ${answer.statusCode} ${answer.body}`)
      answers.push(answer.json())
    }
  }
  return answers
}
