/** What `.ci/advisories` says about published vulnerabilities of our packages. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from './support/at-end.ts'

const script = fileURLToPath(new URL('../../.ci/advisories', import.meta.url))
const cache = mkdtempSync(join(tmpdir(), 'farthing-advisories-'))
atEnd(() => rmSync(cache, { recursive: true, force: true }))

/** Runs it against a registry that answers so; null closes the connection. */
async function ask(answer: { readonly status: number; readonly body: unknown } | null) {
  const registry = createServer((request, response) => {
    if (!answer) return void request.socket.destroy()
    const isQuestion = request.url === '/-/npm/v1/security/advisories/bulk'
    response.writeHead(isQuestion ? answer.status : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify(isQuestion ? answer.body : {}))
  })
  registry.listen(0, '127.0.0.1')
  await once(registry, 'listening')
  const { port } = registry.address() as AddressInfo
  const child = spawn(script, {
    env: {
      ...process.env,
      npm_config_registry: `http://127.0.0.1:${port}/`,
      npm_config_fetch_retries: '0',
      npm_config_proxy: '',
      npm_config_cache: cache,
    },
  })
  atEnd(() => registry.close())
  const [out, errors, [status]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ])
  return { status, said: out + errors }
}

test('a package with a published vulnerability is named, and fails the run', async () => {
  const advisory = {
    ...{ id: 1, url: 'https://advisories.example/1', title: 'Reads too much', severity: 'high' },
    ...{ vulnerable_versions: '<99', cwe: [], cvss: { score: 7, vectorString: null } },
  }
  const { status, said } = await ask({ status: 200, body: { fastify: [advisory] } })
  assert.equal(status, 1, said)
  assert.match(said, /high: fastify .*Reads too much/)
})

test('packages without published vulnerabilities pass', async () => {
  const { status, said } = await ask({ status: 200, body: {} })
  assert.equal(status, 0, said)
})

for (const answer of [{ status: 405, body: {} }, { status: 500, body: {} }, null])
  test(`a registry that cannot be asked is no clean bill: ${answer?.status ?? 'no answer'}`, async () => {
    const { status, said } = await ask(answer)
    assert.equal(status, 2, said)
    assert.match(said, /could not be asked/)
  })
