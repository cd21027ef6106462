/** The shipped proxy while cells come, go, and run different releases. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { test } from 'node:test'
import { newId } from '../src/ids.ts'
import { problems } from '../src/problems.ts'
import { atEnd } from './support/at-end.ts'
import { openFakeCell } from './support/fake-cell.ts'
import { openProxy, type ProxiedCell } from './support/proxy.ts'
import { until } from './support/until.ts'

const shipped = new URL('../../ops/haproxy/', import.meta.url).pathname
const read = (file: string) => readFileSync(join(shipped, file), 'utf8')
const page = (tag: string) => `/pay/${newId('ch', tag, new Date())}`

async function open(cells: readonly ProxiedCell[]) {
  const proxy = await openProxy({ cells })
  atEnd(() => proxy.close())
  return proxy
}

async function cellWith(...parameters: Parameters<typeof openFakeCell>) {
  const cell = await openFakeCell(...parameters)
  atEnd(() => cell.close())
  return cell
}

const key = `sk_live_00${'a'.repeat(16)}_${'b'.repeat(52)}`
const feeds: ServerResponse[] = []
const payments: ServerResponse[] = []
const first = await cellWith('00', (request, response) => {
  if (request.url?.endsWith('/live')) return void feeds.push(response.writeHead(200))
  if (request.method === 'POST') return void payments.push(response)
  if (request.headers['x-api-key'] === key) response.setHeader('RateLimit-Policy', '"key";q=10;w=1')
  response.end()
})
const second = await cellWith('01')
const cellsBefore = [{ tag: '00', servers: [first.url] }]
/** Opened first, because it is reloaded last: see there. */
const reloaded = await open(cellsBefore)

test('HAProxy accepts the shipped files as they are, and units drain longer than it takes to notice', () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-haproxy-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const made = ['-keyout', key, '-out', certificate, '-days', '1', '-subj', '/CN=pay.example.com']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ed25519', '-nodes', ...made], { stdio: 'pipe' })
  mkdirSync(join(folder, 'certificates'))
  writeFileSync(join(folder, 'certificates/pay.pem'), readFileSync(certificate, 'utf8') + readFileSync(key))
  for (const map of ['cells', 'consoles', 'placement']) writeFileSync(join(folder, `${map}.map`), '')
  const env = {
    PATH: `${process.env.PATH}:/usr/sbin`,
    MAPS: folder,
    CERTIFICATES: join(folder, 'certificates'),
  }
  const files = ['haproxy.cfg', 'cells.cfg'].flatMap((file) => ['-f', join(shipped, file)])
  execFileSync('haproxy', ['-c', ...files], { env, stdio: 'pipe' })

  const [, every, times] = /inter (\d+)s fall (\d+)/.exec(read('haproxy.cfg')) ?? []
  const [, drained] = /DRAIN_SECONDS=(\d+)/.exec(read('../systemd/farthing-serve@.service')) ?? []
  assert(Number(drained) > Number(every) * Number(times))
})

test('the proxy’s own problems have the titles and the advice of the cells’', () => {
  const bodies = [...read('haproxy.cfg').matchAll(/lf-string '(\{.*?\})'/g)].map(([, text = '']) =>
    JSON.parse(text),
  )
  assert.equal(bodies.length, 5)
  for (const { code, title, advice, type } of bodies) {
    const [, expectedTitle, expectedAdvice] = problems[code as keyof typeof problems]
    assert.deepEqual([title, advice, type], [expectedTitle, expectedAdvice, `/docs/errors/${code}`])
  }
})

test('a cell that is down gets 503 with a problem for programs and a sentence for people; the other goes on', async () => {
  const [lost, other] = [await cellWith('00'), await cellWith('01')]
  const proxy = await open([lost, other].map(({ tag, url }) => ({ tag, servers: [url] })))
  lost.close()
  const html = { headers: { accept: 'text/html' } }
  await until('people get a sentence', async () => {
    const { status, body } = await proxy.ask('GET', page('00'), html)
    assert.equal(status, 503)
    assert.equal((await proxy.ask('GET', page('01'), html)).status, 200)
    return body.includes('do not pay again')
  })
  const { status, headers, body } = await proxy.ask('POST', page('00'))
  assert.equal(status, 503)
  assert.equal(headers['retry-after'], '2')
  assert.equal(headers['content-type'], 'application/problem+json')
  assert.equal(JSON.parse(body).code, 'cell_unavailable')
  assert.equal(JSON.parse(body).requestId, headers['x-request-id'])
  // What any cell can answer is answered by the other.
  assert.equal((await proxy.ask('GET', '/docs')).headers['x-answered-by'], '01')
})

test('what is not valid HTTP gets 400 from the proxy and reaches no cell', async () => {
  const cell = await cellWith('00')
  const proxy = await open([{ tag: '00', servers: [cell.url] }])
  assert.equal((await proxy.ask('GET', page('00'))).status, 200)
  const long = `X-Long: ${'a'.repeat(40_000)}`
  for (const header of ['Content-Length: 1\r\nContent-Length: 2', 'No header: 1', long]) {
    const socket = connect(proxy.port, '127.0.0.1')
    socket.end(`POST ${page('00')} HTTP/1.1\r\nHost: pay.example\r\n${header}\r\n\r\n`)
    assert.match(await readText(socket), /^HTTP\/1\.1 400 /, header.slice(0, 40))
  }
  assert.equal(cell.asked.length, 1)
})

test('a process that is going to stop gets no more requests, and none is lost until then', async () => {
  const [going, staying] = [await cellWith('00'), await cellWith('00')]
  const proxy = await open([{ tag: '00', servers: [going.url, staying.url] }])
  going.isReady = false
  await until('the other process gets them all', async () => {
    const before = going.asked.length
    for (let i = 0; i < 4; i++) assert.equal((await proxy.ask('GET', page('00'))).status, 200)
    return going.asked.length === before
  })
})

test('while processes run different releases every page finds its script, and only scripts are looked for twice', async () => {
  const releases = ['00', '01', '00', '01']
  const cells = await Promise.all(
    releases.map((tag, i) =>
      cellWith(tag, (request, response) => {
        const isMine = request.url?.startsWith(`/pay/assets/page.${i}.js`)
        response.writeHead(isMine ? 200 : 404).end()
      }),
    ),
  )
  const proxy = await open(
    ['00', '01'].map((tag) => ({
      tag,
      servers: cells.filter((cell) => cell.tag === tag).map(({ url }) => url),
    })),
  )
  const scripts = releases.map((tag, i) => [`/pay/assets/page.${i}.js`, tag] as const)
  const many = Array.from({ length: 20 }, () => scripts).flat()
  const answers = await Promise.all(many.map(([path, tag]) => proxy.ask('GET', `${path}?cell=${tag}`)))
  assert(answers.every(({ status }) => status === 200))
  // One that does not say whose page it belongs to is looked for everywhere.
  for (const [path] of scripts) assert.equal((await proxy.ask('GET', path)).status, 200)
  assert.equal((await proxy.ask('GET', '/pay/assets/page.none.js')).status, 404)
  const count = () => cells.reduce((sum, { asked }) => sum + asked.length, 0)
  const before = count()
  for (const method of ['GET', 'POST']) assert.equal((await proxy.ask(method, page('00'))).status, 404)
  assert.equal((await proxy.ask('POST', '/pay/assets/page.none.js')).status, 404)
  assert.equal(count() - before, 3)
})

test('a reload with another cell drops no connection and no request, and forgets no key', async () => {
  // A worker that has just started from nothing waits five seconds for one before it, and hands nothing over until then.
  await until('the worker counts on its own', async () =>
    /^\S+ \[.*\] id=reloads .*flags=0x\w*3 /m.test(await reloaded.command('show peers')),
  )
  assert.equal((await reloaded.ask('GET', '/api/v1/store', { headers: { 'x-api-key': key } })).status, 200)
  assert.equal((await reloaded.ask('GET', page('01'))).status, 421)

  let heard = ''
  let isCut = false
  const live = get(`${reloaded.url}${page('00')}/live`, (response) => {
    response.on('data', (chunk) => {
      heard += chunk
    })
    response.on('error', () => {
      isCut = true
    })
  })
  const paying = reloaded.ask('POST', page('00'))
  await until('the feed and the payment are open', async () => feeds.length === 1 && payments.length === 1)
  feeds[0]?.write('before ')
  await until('the feed is heard', async () => heard === 'before ')

  let isReloading = true
  const statuses: number[] = []
  const asking = (async () => {
    while (isReloading) statuses.push((await reloaded.ask('GET', page('00'))).status)
  })()
  await reloaded.reload([...cellsBefore, { tag: '01', servers: [second.url] }])
  isReloading = false
  await asking
  assert(statuses.length > 0 && statuses.every((status) => status === 200))

  const answer = await reloaded.ask('GET', page('01'))
  assert.equal(answer.headers['x-answered-by'], '01')
  feeds[0]?.write('after')
  await until('the feed goes on', async () => heard === 'before after' || isCut)
  payments[0]?.end('paid')
  assert.equal((await paying).body, 'paid')
  assert(!isCut)
  live.destroy()
  const hash = createHash('sha256').update(key).digest('hex').toUpperCase()
  await until('the key is still known', async () =>
    new RegExp(`key=${hash} .*gpt0=1`).test(await reloaded.command('show table keys')),
  )
})
