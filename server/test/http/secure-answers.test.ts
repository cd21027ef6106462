/** What every answer says about its connection, on every listener, and what it believes about it. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildConsole } from '../../src/http/console/app.ts'
import { openTestApp } from '../support/app.ts'
import { atEnd } from '../support/at-end.ts'
import { openStore } from '../support/store.ts'

const strict = 'strict-transport-security'
const places = ['/', '/api/v1/networks', '/api/v1/store', '/docs', '/docs/api', '/none', '/livez'] as const

test('where the service is reached by https, every answer keeps browsers there; where it is not, none does', async () => {
  const secure = await openTestApp()
  const { id } = await (await openStore(secure)).create()
  for (const url of [...places, `/c/${id}`]) {
    const { headers } = await secure.request({ method: 'GET', url })
    assert.match(String(headers[strict]), /^max-age=63072000/, url)
  }
  const plain = await openTestApp({
    BASE_URL: 'http://127.0.0.1:8402',
    CHECKOUT_PAGE_URL: 'http://127.0.0.1:8402/c',
  })
  for (const url of places)
    assert.equal((await plain.request({ method: 'GET', url })).headers[strict], undefined, url)
})

test('at a console that is reached by https every cookie is secure', async () => {
  const { ctx } = await openTestApp({ CONSOLE_URL: 'https://console.farthing.example' })
  const deployment = { ctx, examine: async () => [] } as unknown as Parameters<typeof buildConsole>[2]
  const console = buildConsole(ctx, { isDraining: false }, deployment)
  atEnd(() => console.close())
  const { headers } = await console.inject({ method: 'GET', url: '/sign-in?lang=es&theme=dark' })
  const cookies = [headers['set-cookie'] ?? []].flat()
  assert.deepEqual(cookies.map((cookie) => cookie.split('=')[0]).sort(), [
    '__Host-farthing',
    'language',
    'theme',
  ])
  for (const cookie of cookies) assert.equal(cookie.match(/; Secure/g)?.length, 1, cookie)
  assert.match(String(headers[strict]), /^max-age=63072000/)
})

test('no header but Host chooses which keys are published, and so which are cached', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-did-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'receipts.pem')
  writeFileSync(file, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }))
  const { app } = await openTestApp({ TRUSTED_PROXIES: '127.0.0.1', RECEIPT_KEYS_FILE: file })
  const read = async (headers: Readonly<Record<string, string>>) =>
    (
      await app.inject({ method: 'GET', url: '/.well-known/did.json', headers, remoteAddress: '127.0.0.1' })
    ).json().id
  const [api, page] = ['farthing.example', 'pay.farthing.example']
  assert.equal(await read({ host: api }), 'did:web:farthing.example')
  assert.equal(await read({ host: page }), 'did:web:pay.farthing.example')
  for (const name of ['x-forwarded-host', 'forwarded', 'x-host', 'x-original-host'])
    for (const value of [page, `${page}, ${api}`, `host=${page}`])
      assert.equal(await read({ host: api, [name]: value }), 'did:web:farthing.example', `${name}: ${value}`)
})
