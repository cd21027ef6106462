import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import type { LightMyRequestResponse } from 'fastify'
import { languages } from '../../../src/http/page/languages/choose.ts'
import { openTestApp } from '../../support/app.ts'
import { completeByHand, setStatus } from '../../support/by-hand.ts'
import { openStore } from '../../support/store.ts'

const farthing = await openTestApp()
const shop = await openStore(farthing)
const browserAccept = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'

const get = async (path: string, headers: Record<string, string> = { accept: browserAccept }) =>
  await farthing.request({ url: `/c/${path}`, headers })

const isPage = (answer: LightMyRequestResponse) =>
  String(answer.headers['content-type']).startsWith('text/html')

test('at the same URL browsers get the page and programs get the same answer as from POST', async () => {
  const { id } = await shop.create()
  for (const accept of [browserAccept, 'text/html', 'TEXT/HTML', 'text/html;q=0.9,application/json;q=0.8'])
    assert(isPage(await get(id, { accept })), accept)
  const programs = [
    {},
    { accept: '*/*' },
    { accept: 'application/json' },
    { accept: 'application/json, text/html;q=0.9' },
    { accept: 'text/html;q=0' },
    { accept: browserAccept, 'payment-signature': '!' },
  ] as Record<string, string>[]
  for (const headers of programs) {
    const [got, posted] = [
      await get(id, headers),
      await farthing.request({ method: 'POST', url: `/c/${id}`, headers }),
    ]
    assert.equal(got.statusCode, posted.statusCode)
    assert.equal(got.headers['payment-required'], posted.headers['payment-required'])
    assert.equal(got.statusCode === 402, headers['payment-signature'] === undefined)
    assert.equal(got.headers.vary, 'accept')
  }
  const head = await farthing.request({
    method: 'HEAD',
    url: `/c/${id}`,
    headers: { accept: browserAccept, 'payment-signature': 'x' },
  })
  assert.equal(head.statusCode, 200)
})

test('every status has its own page, and an unknown checkout gets a page with 404', async () => {
  const pages = new Map<string, string>()
  for (const status of ['OPEN', 'PROCESSING', 'COMPLETED', 'EXPIRED', 'CANCELED']) {
    const { id } = await shop.create()
    if (status === 'COMPLETED') await completeByHand(farthing, id)
    else await setStatus(farthing, id, status)
    const answer = await get(id)
    assert.equal(answer.statusCode, 200)
    assert(answer.body.includes(id), 'the page shows the id, which a buyer can give to the store')
    pages.set(status, /id="status"[^>]*>([^<]+)/.exec(answer.body)?.[1] ?? '')
  }
  for (const id of ['ch_x', `ch_00${'0'.repeat(26)}`]) {
    const answer = await get(id)
    assert.equal(answer.statusCode, 404)
    assert(isPage(answer))
  }
  assert.equal(new Set(pages.values()).size, pages.size)
  assert(!pages.has(''))
})

test('a page’s policy allows no other origins, no framing, and no markup created by scripts', async () => {
  const { id } = await shop.create()
  await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { accentColor: '#0a7f5a' })
  for (const path of [id, 'ch_x']) {
    const { headers, body } = await get(path)
    const policy = new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((part) => [part.split(' ')[0] ?? '', part.split(' ').slice(1).join(' ')]),
    )
    assert.equal(policy.get('default-src'), "'none'")
    assert.equal(policy.get('script-src'), "'self'")
    assert.equal(policy.get('connect-src'), "'self'")
    assert.equal(policy.get('form-action'), "'self'")
    assert.equal(policy.get('base-uri'), "'none'")
    assert.equal(policy.get('frame-ancestors'), "'none'")
    assert.equal(policy.get('require-trusted-types-for'), "'script'")
    assert.equal(policy.get('trusted-types'), "'none'")
    assert.doesNotMatch(String(headers['content-security-policy']), /unsafe|\*|https?:/)
    const hashes = [...body.matchAll(/<style>([^<]*)<\/style>/g)].map(
      ([, style = '']) => `'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    )
    assert.equal(hashes.length, path === id ? 2 : 1)
    assert.equal(policy.get('style-src'), hashes.join(' '))
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.match(String(headers['strict-transport-security']), /max-age=\d{8}/)
    assert.doesNotMatch(body, / on\w+=| style=/)
  }
})

test('the script’s URL contains a hash of its content and the cell, is cacheable forever, and matches the integrity in the page', async () => {
  const { body } = await get((await shop.create()).id)
  const loads = [...body.matchAll(/(?:href|src)="(\/c\/assets\/[^"]+)" integrity="sha384-([^"]+)"/g)]
  assert.equal(loads.length, 1)
  for (const [, url = '', integrity] of loads) {
    assert.match(url, /\.js\?cell=00$/)
    const plain = await farthing.request({ url })
    assert.equal(createHash('sha384').update(plain.rawPayload).digest('base64'), integrity)
    assert.match(String(plain.headers['cache-control']), /immutable/)
    for (const [encoding, unpack] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const packed = await farthing.request({ url, headers: { 'accept-encoding': encoding } })
      assert.equal(packed.headers['content-encoding'], encoding)
      assert.deepEqual(unpack(packed.rawPayload), plain.rawPayload)
    }
  }
  const missing = await farthing.request({ url: '/c/assets/page.0000000000000000.js' })
  assert.equal(missing.statusCode, 404)
})

test('in every way and language the page with its script is at most 20 KB, and the script at most 8 KB', async () => {
  const { id } = await shop.create()
  const { body } = await get(id)
  const [script = ''] = /\/c\/assets\/[^"]+/.exec(body) ?? []
  const sizeOf = async (url: string, encoding: string) =>
    (await farthing.request({ url, headers: { accept: browserAccept, 'accept-encoding': encoding } }))
      .rawPayload.length
  assert(script !== '' && (await sizeOf(script, 'gzip')) <= 8 * 1_024)
  const scriptBytes = await sizeOf(script, 'br')
  for (const way of ['wallet', 'phone', 'send'])
    for (const { tag } of languages) {
      const bytes = (await sizeOf(`/c/${id}?way=${way}&lang=${tag}`, 'br')) + scriptBytes
      assert(bytes > scriptBytes && bytes <= 20 * 1_024, `${way} in ${tag}: ${bytes} bytes`)
    }
})

test('where nothing can be signed for on a network, the page says so and not that there is no wallet', async () => {
  const { id } = await shop.create()
  await farthing.ctx.db.query(
    "update checkouts set options = replace(options::text, 'eip155:8453', 'eip155:31337')::json where id = $1",
    [id],
  )
  for (const way of ['wallet', 'phone']) {
    const { body } = await get(`${id}?way=${way}`)
    assert.match(body, /This payment can’t be signed in a wallet on <bdi>Local chain<\/bdi> right now\./)
    assert.doesNotMatch(body, /We found no wallet|class="(qr|apps)"/)
    assert.match(body, /Pay from an exchange or another wallet/)
  }
  assert.match((await get(`${id}?way=send`)).body, /Show amount and address/)
})

test('the language is the requested one, or else the browser’s, or else English', async () => {
  const { id } = await shop.create()
  for (const [query, accepted, lang, dir] of [
    ['', '', 'en', 'ltr'],
    ['', 'nl-BE, es;q=0.9, ar;q=0.8', 'es', 'ltr'],
    ['', 'fr-CH, de;q=0.9', 'fr', 'ltr'],
    ['', 'de-AT', 'de', 'ltr'],
    ['', 'zh-Hant-TW', 'zh', 'ltr'],
    ['', 'ar-EG', 'ar', 'rtl'],
    ['?lang=ar', 'es', 'ar', 'rtl'],
    ['?lang=xx', 'es', 'es', 'ltr'],
    ['?lang=zh&lang=ar', '', 'en', 'ltr'],
    ['', 'es;q=0', 'en', 'ltr'],
  ] as const) {
    const { body } = await get(`${id}${query}`, { accept: browserAccept, 'accept-language': accepted })
    assert.match(body, new RegExp(`<html lang="${lang}" dir="${dir}">`), `${query} ${accepted}`)
  }
})

test('every language has every text, with the same placeholders', () => {
  const [first, ...others] = languages.map(({ texts }) => flatten(texts))
  assert(first && others.length > 0)
  for (const other of others) {
    assert.deepEqual([...other.keys()], [...first.keys()])
    for (const [name, text] of other) {
      assert.notEqual(text, '', name)
      assert.deepEqual(placesIn(text), placesIn(first.get(name) ?? ''), name)
    }
  }
})

function flatten(texts: object, prefix = ''): Map<string, string> {
  return new Map(
    Object.entries(texts).flatMap(([name, value]) =>
      typeof value === 'string' ? [[prefix + name, value]] : [...flatten(value, `${prefix}${name}.`)],
    ),
  )
}

function placesIn(text: string): string[] {
  return [...new Set(text.match(/\{\w+\}/g) ?? [])].sort()
}

test('a store’s colour never makes its button unreadable', async () => {
  const { id } = await shop.create()
  for (const [accentColor, onAccent] of [
    ['#ffffff', '#000'],
    ['#000000', '#fff'],
    ['#ffd400', '#000'],
    ['#1d4ed8', '#fff'],
    ['#777777', '#000'],
  ]) {
    await shop.call('PATCH', `/api/v1/stores/${shop.id}`, { accentColor })
    assert((await get(id)).body.includes(`--accent:${accentColor};--on-accent:${onAccent}`), accentColor)
  }
})

test('an error is shown to browsers as a page and to programs as a problem', async () => {
  const broken = await openTestApp({ ADDRESS_REQUESTS_PER_SECOND: '1' })
  const [accept, url] = [browserAccept, '/c/ch_x']
  await broken.request({ url, headers: { accept } })
  const page = await broken.request({ url, headers: { accept } })
  assert.equal(page.statusCode, 429)
  assert(isPage(page))
  assert.match(page.body, /We can’t show this page right now/)
  const problem = await broken.request({ url, headers: { accept: 'application/json' } })
  assert.equal(problem.statusCode, 429)
  assert.equal(problem.json().code, 'rate_limited')
})

test('after a restore nobody is asked to pay until every network of the checkout has been reconciled', async () => {
  const { id } = await shop.create()
  await farthing.ctx.db.query(
    `insert into restores (network, started_at)
     select options -> -1 ->> 'network', clock() from checkouts where id = $1`,
    [id],
  )
  const post = async (path: string) =>
    await farthing.request({
      method: 'POST',
      url: `/c/${id}${path}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      payload: '',
    })
  const page = await get(id)
  assert.equal(page.statusCode, 503)
  assert(isPage(page))
  assert.equal((await get(id, {})).statusCode, 503)
  assert.equal((await post('/prepare')).statusCode, 503)
  assert.match(String((await post('/transfer')).headers.location), /notice=unavailable/)
  await farthing.ctx.db.query('update restores set finished_at = clock()')
  assert.equal((await get(id)).statusCode, 200)
  assert.equal((await get(id, {})).statusCode, 402)
})
