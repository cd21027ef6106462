/** The shipped proxy counts requests once for all processes of all cells, by address and by key. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { newId } from '../src/ids.ts'
import { atEnd } from './support/at-end.ts'
import { openFakeCell } from './support/fake-cell.ts'
import { openProxy } from './support/proxy.ts'
import { until } from './support/until.ts'

const limits = { address: 5, key: 10 }
/** So many that some are refused even on a machine that takes seconds for them. */
const flood = 150

const keyWith = (secret: string) => `sk_live_00${'a'.repeat(16)}_${secret.repeat(52)}`
const right = keyWith('r')
/** As the cells do: only a request whose key was checked is counted by key. */
const valid = new Set([right])

const processes = await Promise.all(
  ['00', '00', '01', '01'].map((tag) =>
    openFakeCell(tag, (request, response) => {
      const isOpen = request.url === '/api/v1/networks' || request.url?.startsWith('/pay/')
      if (valid.has(String(request.headers['x-api-key'])) && !isOpen)
        response.setHeader('RateLimit-Policy', '"key";q=10;w=1')
      else response.setHeader('RateLimit-Policy', '"address";q=5;w=1')
      const isRight = isOpen || valid.has(String(request.headers['x-api-key']))
      response.writeHead(isRight ? 200 : 401).end()
    }),
  ),
)
const proxy = await openProxy({
  cells: ['00', '01'].map((tag) => ({
    tag,
    servers: processes.filter((each) => each.tag === tag).map(({ url }) => url),
  })),
  limits,
})
atEnd(async () => {
  await proxy.close()
  for (const process of processes) process.close()
})

const page = (tag: string) => `/pay/${newId('ch', tag, new Date())}`

/** How many of a flood of requests were let through and refused, and how many the limit allows in the time it took. */
async function pour(limit: number, one: (i: number) => ReturnType<typeof proxy.ask>) {
  const startedAt = performance.now()
  const answers = await Promise.all(Array.from({ length: flood }, (_, i) => one(i)))
  const seconds = (performance.now() - startedAt) / 1_000
  return {
    passed: answers.filter(({ status }) => status !== 429).length,
    refused: answers.filter(({ status }) => status === 429),
    // A full second before the first, and one request more per thread that looks at the same moment.
    most: Math.ceil(limit * (seconds + 1)) + 2,
  }
}

const keyTable = async () => await proxy.command('show table keys')
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex').toUpperCase()

test('an address has its limit once, however many processes and cells it asks', async () => {
  const { passed, refused, most } = await pour(limits.address, (i) =>
    proxy.ask('GET', page(i % 2 === 0 ? '00' : '01'), { from: '192.0.2.1' }),
  )
  assert(passed >= limits.address && passed <= most, `${passed} passed, at most ${most} may`)
  const [{ headers, body } = assert.fail('nothing was refused')] = refused
  assert.equal(headers['retry-after'], '1')
  assert.equal(headers['access-control-allow-origin'], '*')
  assert.equal(JSON.parse(body).code, 'rate_limited')
  assert.equal((await proxy.ask('GET', page('00'), { from: '192.0.2.2' })).status, 200)
})

test('addresses of one IPv6 /64 are one address, those of another are not', async () => {
  const { passed, refused, most } = await pour(limits.address, (i) =>
    proxy.ask('GET', page('00'), { from: `2001:db8:1:2:${i.toString(16)}::1` }),
  )
  assert(refused.length > 0 && passed <= most, `${passed} passed, at most ${most} may`)
  assert.equal((await proxy.ask('GET', page('00'), { from: '2001:db8:1:3::1' })).status, 200)
})

test('a valid key has a limit of its own, whoever knows its id or shares its address', async () => {
  const from = '192.0.2.10'
  const ask = (key: string) => proxy.ask('GET', '/api/v1/store', { headers: { 'x-api-key': key }, from })
  assert.equal((await ask(right)).status, 200)
  const guesses = await pour(limits.address, () => ask(keyWith('w')))
  assert(guesses.refused.length > 0 && guesses.passed <= guesses.most, `${guesses.passed} guesses passed`)
  assert.equal((await ask(right)).status, 200, 'guessing used up what the key may ask for')

  const { passed, refused, most } = await pour(limits.key, () => ask(right))
  assert(refused.length > 0 && passed <= most, `${passed} passed, at most ${most} may`)
  // Paying and looking at networks need no key, so they count for the address even if they carry one.
  for (const [method, path, place] of [
    ['GET', '/api/v1/networks', '192.0.2.11'],
    ['POST', `/api/v1/checkouts/${newId('ch', '00', new Date())}`, '192.0.2.12'],
  ] as const) {
    const open = await pour(limits.address, () =>
      proxy.ask(method, path, { headers: { 'x-api-key': right }, from: place }),
    )
    assert(open.refused.length > 0 && open.passed <= open.most, `${open.passed} passed`)
  }
})

test('the proxy remembers only keys that a cell has checked, by their hash, and forgets one that was revoked', async () => {
  const from = '192.0.2.20'
  const other = keyWith('t')
  const ask = (path: string, key: string) => proxy.ask('GET', path, { headers: { 'x-api-key': key }, from })
  valid.add(other)
  assert.equal((await ask('/api/v1/networks', keyWith('x'))).status, 200)
  assert.equal((await ask('/api/v1/store', other)).status, 200)
  const table = await keyTable()
  assert.match(table, new RegExp(`key=${hashOf(other)} .*gpt0=1`))
  for (const key of [right, other, keyWith('x')])
    assert(!table.includes(key.slice(8)) && !table.includes(key))
  assert(!table.includes(hashOf(keyWith('x'))) && !table.includes(hashOf(keyWith('w'))))
  valid.delete(other)
  assert.equal((await ask('/api/v1/store', other)).status, 401)
  assert.match(await keyTable(), new RegExp(`key=${hashOf(other)} .*gpt0=0`))
  assert(!proxy.readLog().includes('sk_live'))
})

test('an address cannot take all connections', async () => {
  const held: ServerResponse[] = []
  const cell = await openFakeCell('00', (_request, response) => void held.push(response))
  const narrow = await openProxy({ cells: [{ tag: '00', servers: [cell.url] }], limits: { connections: 2 } })
  atEnd(async () => {
    await narrow.close()
    cell.close()
  })
  const waiting = [1, 2].map(() => narrow.ask('GET', page('00'), { from: '192.0.2.30' }))
  await until('two connections are open', async () => held.length === 2)
  await assert.rejects(narrow.ask('GET', page('00'), { from: '192.0.2.30' }), /hang up|ECONNRESET|EPIPE/)
  const other = narrow.ask('GET', page('00'), { from: '192.0.2.31' })
  await until('somebody else is served', async () => held.length === 3)
  for (const response of held) response.end()
  for (const { status } of await Promise.all([...waiting, other])) assert.equal(status, 200)
})
