import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { arrows } from '../../../src/checkouts/checkout.ts'
import { openMetrics } from '../../../src/metrics.ts'
import { problems } from '../../../src/problems.ts'
import { listLoops } from '../../../src/worker.ts'
import { openTestApp } from '../../support/app.ts'
import { readPages, root } from './blocks.ts'

const farthing = await openTestApp()
const pages = readPages()
const operating = pages.find(({ file }) => file === 'docs/operating.md')?.source ?? assert.fail()

async function get(url: string, headers: Record<string, string> = {}) {
  return await farthing.request({ url, headers })
}

/** All pages of this server that can be reached from /docs by links. */
async function crawl(): Promise<Map<string, string>> {
  const seen = new Map<string, string>()
  const queue = ['/docs']
  for (let url = queue.pop(); url !== undefined; url = queue.pop()) {
    if (seen.has(url)) continue
    const answer = await get(url)
    assert.equal(answer.statusCode, 200, url)
    seen.set(url, answer.body)
    if (!String(answer.headers['content-type']).startsWith('text/html')) continue
    for (const [, target = ''] of answer.body.matchAll(/(?:href|src)="(\/[^"#]*)/g)) queue.push(target)
  }
  return seen
}

const site = await crawl()

test('every Markdown file of the docs can be reached from /docs', () => {
  const served = new Set(site.values())
  for (const { file, source } of pages.filter((page) => page.file.startsWith('docs/')))
    assert(served.has(source), file)
})

test('every link to a section within the docs leads to an existing section', () => {
  for (const [url, body] of site) {
    for (const [, path = '', id = ''] of body.matchAll(/href="([^"#:]*)#([^"]*)"/g)) {
      const target = site.get(path || url)
      assert(target?.includes(`id="${id}"`), `${url} links to ${path}#${id}`)
    }
  }
})

test('every relative link in a Markdown file leads to a file in the repository', () => {
  for (const { file, source } of pages) {
    const text = source.replace(/^```[\s\S]*?^```/gm, '')
    for (const [, href = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|#)/.test(href)) continue
      assert(existsSync(join(root, dirname(file), href.split('#')[0] ?? '')), `${file}: ${href}`)
    }
  }
})

test('a page neither allows nor contains scripts, frames, or content from other origins', async () => {
  for (const [url, body] of site) {
    if (!body.startsWith('<!doctype html>')) continue
    assert.doesNotMatch(body, /<script|<iframe|\son\w+=|\sstyle=|(?:src|srcset)="(?!\/)/, url)
  }
  const { headers } = await get('/docs')
  const policy = String(headers['content-security-policy'])
  assert.match(policy, /default-src 'none'; style-src 'sha256-[\w+/=]+'/)
  assert.doesNotMatch(policy, /unsafe|script-src|\*/)
})

test('each page is also served as Markdown, and llms.txt lists it', async () => {
  const llms = await get('/llms.txt')
  assert.match(String(llms.headers['content-type']), /^text\/plain/)
  for (const file of ['docs/webhooks.md', 'docs/x402.md', 'docs/api/guide.md']) {
    assert(llms.body.includes(`https://farthing.example/${file}`), file)
    const answer = await get(`/${file}`)
    assert.match(String(answer.headers['content-type']), /^text\/markdown/)
    assert.equal(answer.body, pages.find((page) => page.file === file)?.source)
  }
})

test('a path that is not a page of the docs gets 404, whatever it contains', async () => {
  for (const path of [
    'none',
    'agents',
    '../package.json',
    '..%2fpackage.json',
    'page/../../.env.example',
    'errors/__proto__',
  ])
    assert.equal((await get(`/docs/${path}`)).statusCode, 404, path)
})

test('every error says what to do next, on its page and in the answer itself', async () => {
  for (const [code, [, title, advice]] of Object.entries(problems)) {
    assert.match(advice, /\.$/, code)
    const page = site.get(`/docs/errors/${code}`)
    assert(page?.includes(title), code)
  }
  const { advice, type } = (await get('/api/v1/checkouts')).json() as { advice: string; type: string }
  assert.equal(advice, problems.invalid_api_key[2])
  assert.equal(type, 'https://farthing.example/docs/errors/invalid_api_key')
})

test('docs/api/answers.md lists every error code with its status', () => {
  const answers = pages.find(({ file }) => file === 'docs/api/answers.md')?.source ?? ''
  const listed = [...answers.matchAll(/^\| `([a-z_]+)` \| (\d{3}) \|/gm)].map(
    ([, code, status]) => `${code} ${status}`,
  )
  assert.deepEqual(
    listed.sort(),
    Object.entries(problems)
      .map(([code, [status]]) => `${code} ${status}`)
      .sort(),
  )
})

test('docs/operating.md lists exactly the loops that work runs', () => {
  const node = [{ provider: 'none', url: 'http://127.0.0.1:9' }]
  const config = {
    ...farthing.ctx.config,
    networks: ['LOCAL', 'SOLANA_LOCAL'],
    nodes: { LOCAL: node, SOLANA_LOCAL: node },
  }
  const loops = listLoops({ ...farthing.ctx, config }, [openSigner(`0x${'1'.repeat(64)}`)])
  // Loops that run per network, or per network and key, are listed without these.
  const running = new Set(loops.map(({ name }) => name.replace(/ (eip155|solana):.*/, '')))
  const [, table = ''] = /## What each process does\n([\s\S]*?)\n\n[^|\n]*\n\n/.exec(operating) ?? []
  const named = [...table.matchAll(/^\| (`.*?`)/gm)].flatMap(
    ([, names = '']) => names.match(/[a-z][a-z -]+/g) ?? [],
  )
  assert.deepEqual(named.sort(), [...running].sort())
})

test('docs/operating.md lists exactly the metrics that exist', () => {
  const metrics = openMetrics()
    .registry.getMetricsAsArray()
    .map(({ name }) => name)
  const written = new Set(
    [...operating.matchAll(/\b(farthing_\w+|http_server_\w+)/g)].map(([, name = '']) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    ),
  )
  assert.deepEqual(
    [...written].filter((name) => !metrics.includes(name)),
    [],
  )
  assert.deepEqual(
    metrics.filter((name) => /^(farthing|http)_/.test(name) && !written.has(name)),
    [],
  )
})

test('docs/api/answers.md lists exactly the possible status changes, each with its event', () => {
  const answers = pages.find(({ file }) => file === 'docs/api/answers.md')?.source ?? ''
  const rows = [...answers.matchAll(/^\| (`[A-Z]+`(?:, `[A-Z]+`)*) \| `([A-Z]+)` \| .* \| `([a-z.]+)` \|$/gm)]
  const written = rows.flatMap(([, from = '', to, event]) =>
    (from.match(/[A-Z]+/g) ?? []).map((status) => `${status} ${to} ${event}`),
  )
  const real = Object.entries(arrows).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, event]) => `${from} ${to} ${event}`),
  )
  assert.deepEqual([...new Set(written)].sort(), real.sort())
})
