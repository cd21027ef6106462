/** The client that sends webhooks: TLS, which URLs can be registered, and how many endpoints a store may have. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { readConfig } from '../../../src/config/read.ts'
import type { Context } from '../../../src/context.ts'
import { openClient } from '../../../src/events/webhooks/client.ts'
import { openTestApp } from '../../support/app.ts'
import { atEnd } from '../../support/at-end.ts'
import { assertInvalid } from '../../support/store.ts'
import { openHookShop } from './support/endpoints.ts'

const open = (settings: Record<string, string>) =>
  openClient({ config: readConfig({ DATABASE_URL: 'postgres://unused', ...settings }) } as Context)
const local = open({ BASE_URL: 'http://127.0.0.1:8402' })
const post = async (client: typeof local, url: string, mode: 'live' | 'test' = 'test') =>
  await client({ url, mode, tries: 0, headers: { 'webhook-id': 'evt_1' }, body: '{"a":1}' })

test('the TLS certificate must match the URL’s host name and come from a trusted authority', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-tls-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=hooks.localhost', '-addext', 'subjectAltName=DNS:hooks.localhost']
  const kind = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' })
  const names: string[] = []
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
    names.push(`${request.headers.host} ${request.method} ${request.headers['webhook-id']}`)
    response.writeHead(200).end('thanks')
  })
  atEnd(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const untrusted = await post(local, `https://hooks.localhost:${port}/`)
  assert.deepEqual([untrusted.status, untrusted.error], [null, 'DEPTH_ZERO_SELF_SIGNED_CERT'])
  setDefaultCACertificates([...getCACertificates(), readFileSync(cert, 'utf8')])
  const other = await post(local, `https://other.localhost:${port}/`)
  assert.deepEqual([other.status, other.error], [null, 'ERR_TLS_CERT_ALTNAME_INVALID'])
  const literal = await post(local, `https://127.0.0.1:${port}/`)
  assert.deepEqual([literal.status, literal.error], [null, 'ERR_TLS_CERT_ALTNAME_INVALID'])
  assert.deepEqual(names, [])
  const right = await post(local, `https://hooks.localhost:${port}/`)
  assert.deepEqual([right.status, right.answer], [200, 'thanks'])
  assert.deepEqual(names, [`hooks.localhost:${port} POST evt_1`])
})

test('an unsafe endpoint URL is rejected when it is registered', async () => {
  const farthing = await openTestApp()
  const refused = [
    'http://shop.example/',
    'https://user:secret@shop.example/',
    'https://shop.example:22/',
    'https://10.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://0x7f.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://localhost/',
    'http://localhost:3000/',
    'ftp://shop.example/',
    'https:shop.example',
    'x',
    `https://shop.example/${'x'.repeat(2_048)}`,
  ]
  for (const mode of ['live', 'test'] as const) {
    const shop = await openHookShop(farthing, mode)
    for (const url of refused)
      assertInvalid(await shop.call('POST', '/api/v1/webhook-endpoints', { url }), '/url')
    await shop.register({ url: 'https://shop.example/hooks' })
    await shop.register({ url: 'https://shop.example:8443/hooks' })
  }
  // On a deployment that itself runs at a loopback address, test stores may use loopback URLs, live stores may not.
  const dev = await openTestApp({ BASE_URL: 'http://127.0.0.1:8402' })
  await (await openHookShop(dev, 'test')).register({ url: 'http://localhost:3000/' })
  const live = await (await openHookShop(dev, 'live')).call('POST', '/api/v1/webhook-endpoints', {
    url: 'https://localhost:3000/',
  })
  assert.equal(live.statusCode, 422)
})

test('a store has at most 16 endpoints with distinct URLs, and deleting one makes room', async () => {
  const farthing = await openTestApp()
  const shop = await openHookShop(farthing)
  const made = []
  for (let i = 0; i < 16; i++) made.push(await shop.register({ url: `https://shop.example/${i}` }))
  const ask = async (url: string) =>
    (await shop.call('POST', '/api/v1/webhook-endpoints', { url })).json<{ code?: string }>().code
  assert.equal(await ask('https://shop.example/3'), 'endpoint_exists')
  assert.equal(await ask('https://shop.example/16'), 'endpoint_limit')
  const removed = await shop.call('DELETE', `/api/v1/webhook-endpoints/${made[3]?.id}`)
  assert.deepEqual([removed.statusCode, removed.json().status], [200, 'disabled'])
  assert.equal(await ask('https://shop.example/3'), undefined)
})
