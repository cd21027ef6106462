/**
 * No webhook reaches an address that is not public, however the URL spells it and whatever the name server answers. The
 * attempts run in the test's own network namespace, with canaries on every address. FULL=1: 100,000 attempts.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { forms } from './support/addresses.ts'

const tries = process.env.FULL === '1' ? 100_000 : 3_000
const canary = new URL('support/canary.ts', import.meta.url).pathname

type Report = {
  forms: number
  caught: string[]
  caughtWhenAllowed: string[]
  caughtOutsidePorts: string[]
  welcome: number
  isGoodReached: boolean
  questions: number
  outcomes: Record<string, number>
}

test(`none of ${tries} attempts with ${forms.length} forms of address and a rebinding name server reaches a canary`, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-netns-'))
  t.after(() => rm(folder, { recursive: true }))
  const resolver = join(folder, 'resolv.conf')
  await writeFile(resolver, 'nameserver 127.0.0.1\n')
  // A new namespace has no way out, not even an active loopback device. The mount makes it use our name server.
  const script = 'mount --bind "$1" /etc/resolv.conf && exec "$2" "$3" "$4"'
  const args = [
    '--net',
    '--mount',
    'sh',
    '-c',
    script,
    'sh',
    resolver,
    process.execPath,
    canary,
    String(tries),
  ]
  const child = spawn('unshare', process.getuid?.() === 0 ? args : ['--map-root-user', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  const status = await new Promise((resolve) => child.once('close', resolve))
  assert.equal(status, 0, output)
  const report = JSON.parse(output) as Report
  t.diagnostic(JSON.stringify({ ...report, caught: report.caught.length }))
  assert(report.forms >= 200, `${report.forms} forms`)
  assert.deepEqual(report.caught, [])
  assert.deepEqual(report.caughtOutsidePorts, [])
  // The canaries do respond to a client that is allowed to reach them, and the public address was reached.
  assert.equal(report.caughtWhenAllowed.length, 3, report.caughtWhenAllowed.join(' '))
  assert(report.isGoodReached && report.welcome > 0 && report.questions > 10)
  assert((report.outcomes.address_refused ?? 0) > tries / 2)
})
