/**
 * The hosts whose receipts `farthing verify` accepts. No server runs: the test passes the keys, and a request for any
 * would fail.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openIssuer } from '../../server/src/payments/receipts.ts'
import { atEnd } from '../../server/test/support/at-end.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'farthing-verify-'))
atEnd(() => rmSync(folder, { recursive: true }))

function write(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

/** A receipt for this URL, signed by its host, and that host's keys. */
function sign(url: string): { readonly receipt: string; readonly did: string } {
  const { privateKey } = generateKeyPairSync('ed25519')
  const issuer = openIssuer(write('keys.pem', String(privateKey.export({ format: 'pem', type: 'pkcs8' }))))
  assert(issuer)
  const payment = { network: 'eip155:8453', payer: '0x1', transaction: '0x2', amount: '1', payTo: '0x3' }
  const { receipt } = issuer.signReceipt(url, payment as never, new Date())['offer-receipt'].info
  return {
    receipt: write('receipt.json', JSON.stringify(receipt)),
    did: write('did.json', JSON.stringify(issuer.describeKeys(url))),
  }
}

function verify(args: readonly string[], url = 'https://shop.example') {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'verify', ...args], {
    env: { FARTHING_URL: url },
    encoding: 'utf8',
  })
  return { status, stderr, code: stdout === '' ? undefined : (JSON.parse(stdout) as { code?: string }).code }
}

const id = `ch_${'1'.repeat(28)}`
const page = `https://shop.example/pay/${id}`
const api = `https://shop.example/api/v1/checkouts/${id}`

test('a receipt for a checkout is accepted from no host but the checkout’s, and no other is asked for keys', () => {
  const { receipt, did } = sign(`https://evil.example/pay/${id}`)
  for (const checkout of [id, page])
    for (const keys of [['--did', did], []]) {
      const { status, code } = verify([receipt, '--checkout', checkout, ...keys])
      assert.deepEqual([status, code], [1, 'mismatch'], checkout)
    }
})

test('a checkout is named by the URL that was paid, or by its id and FARTHING_URL', () => {
  for (const [signed, checkout, status] of [
    [page, page, 0],
    [page, id, 0],
    [api, api, 0],
    [api, id, 0],
    [page, api, 1],
    [`${page}0`, id, 1],
    [`https://shop.example:8443/pay/${id}`, id, 1],
  ] as const) {
    const { receipt, did } = sign(signed)
    assert.equal(verify([receipt, '--checkout', checkout, '--did', did]).status, status, signed)
  }
  const { receipt, did } = sign(page)
  const unknown = verify([receipt, '--checkout', id, '--did', did], '')
  assert.equal(unknown.status, 2)
  assert.match(unknown.stderr, /whole URL/)
})

test('keys are asked for over http on this machine only if the checkout’s URL was given', () => {
  const url = `http://127.0.0.1:9/pay/${id}`
  const { receipt } = sign(url)
  assert.deepEqual(verify([receipt]).code, 'wrong_host')
  assert.match(verify([receipt, '--checkout', url]).stderr, /can't be fetched/)
})
