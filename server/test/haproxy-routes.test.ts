/** The shipped proxy sends every route where it belongs. Its configuration is real, the cells behind it only say who they are. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { newId } from '../src/ids.ts'
import { newToken } from '../src/members/token.ts'
import { toLinkKey } from '../src/refunds/address-requests/address-request.ts'
import { openConsole } from './http/console/support/console.ts'
import { listRoutes } from './http/console/support/routes.ts'
import { makeStore } from './support/app.ts'
import { atEnd } from './support/at-end.ts'
import { openFakeCell } from './support/fake-cell.ts'
import { openProxy } from './support/proxy.ts'

const tags = ['00', 'z9'] as const
const consoleHostOf = (tag: string) => `console-${tag}.example.com`

/** Only for the routes that it has. Building it takes long: no process behind the proxy answers meanwhile. */
const console = await openConsole({ settings: { SIGN_UP: 'open' } })

const cells = await Promise.all(
  tags.map(async (tag) => ({
    serve: await openFakeCell(tag),
    console: await openFakeCell(`console ${tag}`),
  })),
)
const proxy = await openProxy({
  cells: cells.map(({ serve, console }) => ({
    tag: serve.tag,
    servers: [serve.url],
    console: { host: consoleHostOf(serve.tag), servers: [console.url] },
  })),
  signUp: { host: 'console.example.com', url: `https://${consoleHostOf('z9')}` },
})
atEnd(async () => {
  await proxy.close()
  for (const { serve, console } of cells) {
    serve.close()
    console.close()
  }
})

const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
  const answer = await proxy.ask(method, path, { headers })
  return { ...answer, by: answer.headers['x-answered-by'] }
}

const keyOf = (tag: string, mode = 'live') => `sk_${mode}_${tag}${'a'.repeat(16)}_${'b'.repeat(52)}`

/** What stands for each parameter of a path. */
function fill(path: string, tag: string): string {
  const id = (prefix: string) => newId(prefix, tag, new Date())
  const values: Readonly<Record<string, string>> = {
    checkoutId: id('ch'),
    paymentId: id('pay'),
    refundId: id('rf'),
    storeId: id('st'),
    walletId: id('wal'),
    changeId: id('wch'),
    linkId: id('lnk'),
    keyId: `${tag}${'a'.repeat(16)}`,
    endpointId: id('we'),
    deliveryId: id('dlv'),
    eventId: id('evt'),
    memberId: id('mem'),
    id: id('st'),
    key: toLinkKey(tag, newToken()),
    token: newToken(),
    name: 'page.0123456789abcdef.js',
  }
  return path.replaceAll(/:(\w+)|\{(\w+)\}/g, (_, a: string, b: string) => {
    const value = values[a ?? b]
    assert(value !== undefined, `${path} has a parameter that this test does not know`)
    return value
  })
}

type Operation = { readonly operationId: string; readonly security: readonly object[] }

test('every operation of openapi.json reaches the cell of its id or key, and those that name neither reach some cell', async () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../docs/api/openapi.json', import.meta.url), 'utf8'))
  let count = 0
  for (const [path, operations] of Object.entries<Record<string, Operation>>(paths))
    for (const [method, { operationId, security }] of Object.entries(operations)) {
      if (operationId === undefined) continue
      count++
      for (const tag of tags) {
        const needsKey = security.length > 0
        const belongs = needsKey || path.includes('{')
        const { by, status } = await ask(
          method.toUpperCase(),
          fill(path, tag),
          needsKey ? { 'x-api-key': keyOf(tag) } : {},
        )
        assert.equal(status, 200, operationId)
        if (belongs) assert.equal(by, tag, operationId)
        else assert(tags.some((each) => each === by))
      }
    }
  assert(count > 45, `${count} operations`)
})

test('every page, feed, form and address request link reaches the cell of its id or token', async () => {
  const routes = listRoutes(console.farthing.app).filter(({ path }) => !path.startsWith('/api/v1/'))
  const belonging = routes.filter(({ path }) => /:(checkoutId|key)\b/.test(path))
  assert(belonging.length >= 10, belonging.map(({ path }) => path).join(' '))
  for (const tag of tags) {
    for (const { method, path } of belonging)
      assert.equal((await ask(method, fill(path, tag))).by, tag, `${method} ${path}`)
    // After an address request link was opened, its page has the refund's id.
    for (const method of ['GET', 'POST'])
      assert.equal((await ask(method, `/pay/refund/${newId('rf', tag, new Date())}?lang=es`)).by, tag)
    for (const mode of ['live', 'test'])
      assert.equal((await ask('GET', '/api/v1/events', { 'x-api-key': keyOf(tag, mode) })).by, tag)
    // What a browser asks before another site's page pays, and an id written with escapes.
    assert.equal((await ask('OPTIONS', fill('/api/v1/checkouts/:checkoutId', tag))).by, tag)
    assert.equal((await ask('GET', fill('/pay/:checkoutId', tag).replace('_', '%5f'))).by, tag)
    // The script of a page, whose URL names the cell that made the page.
    assert.equal((await ask('GET', `/pay/assets/page.0123456789abcdef.js?cell=${tag}`)).by, tag)
    // Payment pages at the root of a host of their own.
    assert.equal((await ask('GET', fill('/:checkoutId/live', tag), { host: 'buy.example.com' })).by, tag)
  }
  for (const { method, path } of routes.filter((route) => !belonging.includes(route))) {
    const { by, status } = await ask(method, fill(path, '00'))
    assert.equal(status, 200, path)
    assert(
      tags.some((tag) => tag === by),
      path,
    )
  }
})

test('every route of the console reaches the console of the host, whatever ids it names', async () => {
  const routes = listRoutes(console.app)
  assert(routes.length > 80)
  for (const [tag, other] of [tags, tags.toReversed()] as const)
    for (const { method, path } of routes) {
      const { by } = await ask(method, fill(path, other as string), {
        host: `${consoleHostOf(tag as string)}:443`,
      })
      assert.equal(by, `console ${tag}`, `${method} ${path}`)
    }
})

test('the host that strangers open leads to the console that takes new stores, and says nothing else', async () => {
  const host = 'Console.Example.Com'
  const answer = await ask('GET', '/sign-up?lang=es', { host })
  assert.equal(answer.status, 302)
  assert.equal(answer.headers.location, `https://${consoleHostOf('z9')}/sign-up?lang=es`)
  const other = await ask('GET', '/sign-in', { host })
  assert.equal(other.status, 404)
  assert.match(other.body, /address of its own/)
  // A console that had the host before there were cells keeps it, and everything but sign-up.
  const grown = await openProxy({
    cells: cells.map(({ serve, console }, i) => ({
      tag: serve.tag,
      servers: [serve.url],
      console: { host: ['console.example.com', 'console-z9.example.com'][i] ?? '', servers: [console.url] },
    })),
    signUp: { host: 'console.example.com', url: 'https://console.example.com' },
  })
  atEnd(() => grown.close())
  for (const path of ['/sign-up', '/sign-in'])
    assert.equal((await grown.ask('GET', path, { headers: { host } })).headers['x-answered-by'], 'console 00')
})

test('an id or key of a cell that is not there gets 421, and what looks like neither is left to the cells', async () => {
  for (const [path, headers] of [
    [fill('/pay/:checkoutId', '77'), {}],
    [fill('/pay/refund/:key', '77'), {}],
    ['/api/v1/store', { 'x-api-key': keyOf('77') }],
  ] as const) {
    const { status, headers: answered, body } = await ask('GET', path, headers)
    assert.equal(status, 421)
    assert.equal(answered['content-type'], 'application/problem+json')
    assert.equal(JSON.parse(body).code, 'wrong_cell')
  }
  const opened = await ask('GET', fill('/pay/:checkoutId', '77'), { accept: 'text/html,*/*' })
  assert.equal(opened.status, 200, 'people get a page, which any cell has')
  for (const path of ['/pay/ch_77', '/pay/refund/77', '/nothing'])
    assert.equal((await ask('GET', path)).status, 200)
  assert.equal((await ask('GET', '/api/v1/store', { 'x-api-key': 'sk_live_77' })).status, 200)
})

test('a cell sees the address of the client, and nothing that the client claims about it', async () => {
  const [first] = cells
  await ask('GET', fill('/pay/:checkoutId', '00'), { 'x-forwarded-for': '192.0.2.1' })
  assert.equal(first?.serve.asked.at(-1)?.headers['x-forwarded-for'], '127.0.0.1')
})

test('a real cell tells the proxy which keys are valid', async () => {
  const { app, ctx } = console.farthing
  const { key } = await makeStore(ctx)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const single = await openProxy({ cells: [{ tag: '00', servers: [url] }] })
  atEnd(() => single.close())
  const wrong = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`
  const hashOf = (text: string) => createHash('sha256').update(text).digest('hex').toUpperCase()
  for (const [each, path, status] of [
    [key, '/api/v1/store', 200],
    [wrong, '/api/v1/store', 401],
    [wrong, '/api/v1/networks', 200],
    [wrong, '/docs/nothing', 404],
  ] as const)
    assert.equal((await single.ask('GET', path, { headers: { 'x-api-key': each } })).status, status, path)
  const table = await single.command('show table keys')
  assert(table.includes(hashOf(key)) && !table.includes(hashOf(wrong)), table)
})
