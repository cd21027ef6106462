import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openSigner } from '../../../src/chains/evm/signer.ts'
import { arrows } from '../../../src/checkouts/checkout.ts'
import { eventTypes } from '../../../src/http/api/event-types.ts'
import { openMetrics } from '../../../src/metrics.ts'
import { problems } from '../../../src/problems.ts'
import { listLoops } from '../../../src/worker.ts'
import { openTestApp } from '../../support/app.ts'
import { readPages, root } from './blocks.ts'

const farthing = await openTestApp()
const pages = readPages()
const reference = pages.find(({ file }) => file === 'docs/reference.md')?.source ?? assert.fail()

let readers = 0

/** Each request comes from an address of its own, because searches are limited per address. */
async function get(
  url: string,
  headers: Record<string, string> = {},
  remoteAddress = `10.0.0.${++readers % 256}`,
) {
  return await farthing.request({ url, headers, remoteAddress })
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

test('a page has no script but the one that copies code, and no frames or content from other origins', async () => {
  const own =
    /<script type="module" src="(\/docs\/assets\/copy\.[0-9a-f]{16}\.js)" integrity="(sha384-[\w+/=]+)"><\/script>/
  for (const [url, body] of site) {
    if (!body.startsWith('<!doctype html>')) continue
    assert.doesNotMatch(
      body.replace(own, ''),
      /<script|<iframe|\son\w+=|\sstyle=|(?:src|srcset)="(?!\/)/,
      url,
    )
  }
  const [, path = '', integrity] = own.exec(site.get('/docs') ?? '') ?? []
  const copy = await get(path)
  assert.equal(`sha384-${createHash('sha384').update(copy.body).digest('base64')}`, integrity)
  assert.match(String(copy.headers['cache-control']), /immutable/)
  const { headers } = await get('/docs')
  const policy = String(headers['content-security-policy'])
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'sha256-[\w+/=]+'/)
  assert.doesNotMatch(policy, /unsafe|\*/)
})

const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('at / people get a page that leads to the docs, and programs get JSON', async () => {
  const page = await get('/', browser)
  assert.match(String(page.headers['content-type']), /^text\/html/)
  assert.match(page.body, /Ready/)
  const links = [...page.body.matchAll(/href="(\/[^"]*)"/g)].map(([, href = '']) => href)
  assert(links.includes('/docs') && links.includes('/docs/api') && links.includes('/readyz'))
  for (const href of links) assert.equal((await get(href, browser)).statusCode, 200, href)
  const { docs, openapi } = (await get('/', { accept: 'application/json' })).json()
  assert.deepEqual(
    [docs, openapi],
    ['https://farthing.example/docs', 'https://farthing.example/openapi.json'],
  )
})

test('at a wrong address under /docs people get a page with a search and suggestions, and programs a problem', async () => {
  for (const path of ['/docs/webhook', '/docs/errors/none', '/docs/a/b?c', '/docs/<b>', '/docs/%00']) {
    const page = await get(path, browser)
    assert.equal(page.statusCode, 404, path)
    assert.match(String(page.headers['content-type']), /^text\/html/)
    assert.match(page.body, /<h1>Page not found<\/h1>[\s\S]*role="search"[\s\S]*id="contents"/)
    assert.doesNotMatch(page.body, /<b>/)
  }
  assert.match(
    (await get('/docs/webhook', browser)).body,
    /Perhaps you meant[\s\S]*href="\/docs\/build#webhooks/,
  )
  const problem = await get('/docs/none')
  assert.equal(problem.json().code, 'not_found')
})

test('a search finds the section that answers, marks the words, and shows no markup from the question', async () => {
  const first = async (query: string) => {
    const { body } = await get(`/docs/search?q=${encodeURIComponent(query)}`)
    return [...(body.split('class="found"')[1] ?? '').matchAll(/<li><a href="([^"]*)"/g)].map(
      ([, url = '']) => url,
    )
  }
  const questions = [
    ['verify webhook signature', '/docs/build#verify-it'],
    ['idempotency', '/docs/api/answers#idempotency'],
    ['payment_not_applied', '/docs/errors/payment_not_applied'],
    ['how do I cancel a checkout', '/docs/build#checkouts'],
    ['backups', '/docs/deploying#backups'],
  ] as const
  for (const [query, url] of questions)
    assert((await first(query)).slice(0, 4).includes(url), `${query}: ${await first(query)}`)
  const { body } = await get('/docs/search?q=WEBHOOK')
  assert.match(body, /<mark>webhooks?<\/mark>/i)
  assert.match((await get('/docs/search?q=%3Cxyzzy%3E')).body, /Nothing found for “&#60;xyzzy&#62;”/)
  for (const query of ['', '?q=', '?q=%00', '?q=a&q=b', `?q=${'x%20'.repeat(400)}`])
    assert.equal((await get(`/docs/search${query}`)).statusCode, 200, query)
})

test('one address cannot keep the process busy with searches, not even by wrong addresses', async () => {
  farthing.clock.now = new Date()
  const address = '192.0.2.7'
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await get('/docs/search?q=pay', {}, address)).statusCode)
  assert.deepEqual(statuses, [200, 200, 429])
  const page = await get('/docs/webhook', browser, address)
  assert.equal(page.statusCode, 404)
  assert.match(page.body, /Page not found/)
  assert.doesNotMatch(page.body, /Perhaps you meant/)
})

test('code is highlighted with classes alone', () => {
  assert.match(site.get('/docs/sdk') ?? '', /<span class="hljs-keyword">import<\/span>/)
  assert.match(
    site.get('/docs/errors/invalid_request') ?? '',
    /<span class="hljs-attr">&quot;errors&quot;<\/span>/,
  )
})

test('each page is also served as Markdown, and llms.txt lists it', async () => {
  const llms = await get('/llms.txt')
  assert.match(String(llms.headers['content-type']), /^text\/plain/)
  for (const file of ['docs/build.md', 'docs/x402.md', 'docs/api/answers.md']) {
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

test('/docs/errors lists every error code with its status', () => {
  const listed = [
    ...(site.get('/docs/errors') ?? '').matchAll(/<code>([a-z_]+)<\/code><\/a><\/td><td>(\d{3})<\/td>/g),
  ].map(([, code, status]) => `${code} ${status}`)
  assert.deepEqual(
    listed.sort(),
    Object.entries(problems)
      .map(([code, [status]]) => `${code} ${status}`)
      .sort(),
  )
})

test('docs/build.md lists exactly the event types', () => {
  const build = pages.find(({ file }) => file === 'docs/build.md')?.source ?? ''
  const [, table = ''] = /### Event types\n\n([\s\S]*?)\n\n/.exec(build) ?? []
  let kind = ''
  // `checkout.created`, `.processing`: the second is of the first one's kind.
  const listed = table.split('\n').flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([a-z_]*)\.([a-z_]+)`/g)].map(([, named = '', what]) => {
      if (named !== '') kind = named
      return `${kind}.${what}`
    }),
  )
  assert.deepEqual(listed.sort(), [...eventTypes].sort())
})

test('docs/x402.md quotes rows of the comparison with the stock server as they were found', () => {
  const x402 = pages.find(({ file }) => file === 'docs/x402.md')?.source ?? ''
  const found = readFileSync(`${root}server/test/payments/evm/matrix.md`, 'utf8').split('\n')
  const [, table = ''] = /\n\| Request \| Stock server .*\n.*\n([\s\S]*?)\n\n/.exec(x402) ?? []
  const quoted = table.split('\n')
  assert(quoted.length > 3)
  assert.deepEqual(
    quoted.filter((row) => !found.includes(row)),
    [],
  )
})

test('every page of the docs that a program links to exists, with the section', () => {
  const sources = globSync('{server/src,page/src,sdk/src,cli/src,mcp/src,examples}/**/*.{ts,js}', {
    cwd: root,
  })
  const links = sources.flatMap((file) =>
    [...readFileSync(root + file, 'utf8').matchAll(/["'`}](\/docs(?:\/[a-z0-9-]+)*)(#[\w-]+)?["'`]/g)].map(
      ([, path = '', hash = '']) => ({ file, path, id: hash.slice(1) }),
    ),
  )
  assert(links.length > 10)
  for (const { file, path, id } of links.filter(({ path }) => path !== '/docs/search')) {
    const body = site.get(path)
    assert(body !== undefined && (id === '' || body.includes(`id="${id}"`)), `${file}: ${path}#${id}`)
  }
})

test('docs/reference.md lists exactly the loops that work runs', () => {
  const node = [{ provider: 'none', url: 'http://127.0.0.1:9' }]
  const config = {
    ...farthing.ctx.config,
    networks: ['LOCAL', 'SOLANA_LOCAL'],
    nodes: { LOCAL: node, SOLANA_LOCAL: node },
    smtpUrl: 'smtp://127.0.0.1:9',
  }
  const ctx = { ...farthing.ctx, config, directory: farthing.ctx.db }
  const loops = listLoops(ctx, [openSigner(`0x${'1'.repeat(64)}`)])
  // Loops that run per network, or per network and key, are listed without these.
  const running = new Set(loops.map(({ name }) => name.replace(/ (eip155|solana):.*/, '')))
  const [, table = ''] = /## What each process does\n([\s\S]*?)\n\n[^|\n]*\n\n/.exec(reference) ?? []
  const named = [...table.matchAll(/^\| (`.*?`)/gm)].flatMap(
    ([, names = '']) => names.match(/[a-z][a-z -]+/g) ?? [],
  )
  assert.deepEqual(named.sort(), [...running].sort())
})

test('docs/reference.md lists exactly the metrics that exist, and operators read of no other', () => {
  const metrics = openMetrics()
    .registry.getMetricsAsArray()
    .map(({ name }) => name)
  const namesIn = (text: string) =>
    new Set(
      [...text.matchAll(/\b(farthing_\w+|http_server_\w+)/g)].map(([, name = '']) =>
        name.replace(/_(bucket|count|sum)$/, ''),
      ),
    )
  const written = namesIn(reference)
  for (const { file, source } of pages.filter((page) =>
    /\/(reference|operating|runbook)\.md$/.test(page.file),
  ))
    for (const name of namesIn(source)) assert(metrics.includes(name), `${file} names ${name}`)
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
