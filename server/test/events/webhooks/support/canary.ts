/**
 * Runs inside a network namespace that `ssrf.test.ts` creates: nothing can leave it, whatever the client does. Listens as
 * a canary on every address that must never be reached, serves names that resolve differently each time, and makes the
 * attempts. Prints what it saw as one line of JSON.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { readConfig } from '../../../../src/config/read.ts'
import type { Context } from '../../../../src/context.ts'
import { openClient } from '../../../../src/events/webhooks/client.ts'
import { forms, privateAddresses, publicAddress } from './addresses.ts'

const tries = Number.parseInt(process.argv[2] ?? '', 10)
assert(tries > 0)

/** Canaries listen on these ports, at every address: the namespace has all of those added below. */
const ports = [80, 443, 8443, 9402, 5432]
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'inherit'] })
ip('link', 'set', 'lo', 'up')
for (const address of [...privateAddresses, publicAddress])
  ip('addr', 'add', address.includes(':') ? `${address}/128` : `${address}/32`, 'dev', 'lo')
// Route all other addresses to this namespace too, so that the canaries see every connection.
ip('route', 'add', 'local', '0.0.0.0/0', 'dev', 'lo')
ip('-6', 'route', 'add', 'local', '::/0', 'dev', 'lo')

const caught: string[] = []
let welcome = 0
for (const port of ports) {
  const server = createServer((socket) => {
    const address = String(socket.localAddress).replace(/^::ffff:/, '')
    // One address is public. The client may reach it, which shows that it would reach the others too.
    if (address === publicAddress && port !== 9402 && port !== 5432 && port !== 80) welcome++
    else caught.push(`${address}:${port}`)
    socket.on('error', () => {})
    socket.destroy()
  })
  server.listen(port, '::')
  await once(server, 'listening')
}

/** A name server with fixed names, and names that resolve to a public address first and to a private one next. */
const dns = createSocket('udp4')
let questions = 0
const asks = new Map<string, number>()
dns.on('message', (message, from) => {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += length + 1
  }
  const type = message.readUInt16BE(at + 1)
  const question = message.subarray(12, at + 5)
  const answers = answersTo(labels, type === 28)
  const header = Buffer.alloc(12)
  message.copy(header, 0, 0, 2)
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(answers.length, 6)
  const records = answers.map((address) => {
    const bytes = toBytes(address)
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(bytes.length === 4 ? 1 : 28, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt16BE(bytes.length, 10)
    return Buffer.concat([record, bytes])
  })
  dns.send(Buffer.concat([header, question, ...records]), from.port, from.address)
})
dns.bind(53, '127.0.0.1')
await once(dns, 'listening')

/** name-N.fixed: the Nth private address. rebind: alternately public and private. mixed: a public and a private one. */
function answersTo(labels: readonly string[], isSix: boolean): string[] {
  const [name = '', kind = ''] = labels
  const index = Number.parseInt(name.replace(/^\D+/, ''), 10) || 0
  const of = (list: readonly string[]) => list.filter((address) => address.includes(':') === isSix)
  const mine = of(privateAddresses)
  const secret = mine[index % mine.length] ?? ''
  questions++
  const asked = (asks.get(`${name} ${isSix}`) ?? 0) + 1
  asks.set(`${name} ${isSix}`, asked)
  if (kind === 'fixed') return [secret]
  if (kind === 'rebind') return asked % 2 === 1 ? of([publicAddress]) : [secret]
  if (kind === 'mixed') return [...of([publicAddress]), secret]
  if (kind === 'good') return of([publicAddress])
  return []
}

function toBytes(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map((part) => Number.parseInt(part, 10)))
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const missing = 8 - groups(head).length - groups(tail).length
  const all = address.includes('::')
    ? [...groups(head), ...Array.from({ length: missing }, () => '0'), ...groups(tail)]
    : groups(address)
  return Buffer.concat(all.map((group) => Buffer.from(group.padStart(4, '0'), 'hex')))
}

const context = (settings: Record<string, string>): Context =>
  ({
    config: readConfig({
      DATABASE_URL: 'postgres://unused',
      BASE_URL: 'https://farthing.example',
      ...settings,
    }),
  }) as Context
const live = openClient(context({}))
const post = async (post: typeof live, url: string, mode: 'live' | 'test', tries: number) =>
  await post({ url, mode, tries, headers: {}, body: '{}' })

const urls = [
  ...forms.filter((url) => URL.canParse(url)),
  ...privateAddresses.map((_, i) => `https://name-${i}.fixed.example/`),
  ...privateAddresses.map((_, i) => `https://name-${i}.rebind.example/`),
  ...privateAddresses.map((_, i) => `https://name-${i}.mixed.example/`),
]
const outcomes = new Map<string, number>()
const batch = 64
for (let i = 0; i < tries; i += batch) {
  await Promise.all(
    Array.from({ length: Math.min(batch, tries - i) }, async (_, j) => {
      const turn = i + j
      const url = urls[turn % urls.length] ?? ''
      const { status, error } = await post(live, url, turn % 2 === 0 ? 'live' : 'test', turn)
      const outcome = String(status ?? error)
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    }),
  )
}
const caughtByTries = [...caught]

// The canaries work: they see a client that may reach private addresses, by literal and by name.
caught.length = 0
const allowed = openClient(context({ WEBHOOK_DANGEROUS_PRIVATE_NETWORKS: '10.0.0.0/8,64:ff9b::/96' }))
await post(allowed, 'https://10.1.2.3/', 'live', 0)
await post(allowed, 'https://name-0.fixed.example/', 'live', 0)
const local = openClient(context({ BASE_URL: 'http://127.0.0.1:8402' }))
await post(local, 'http://127.0.0.1:9402/metrics', 'test', 0)
const caughtWhenAllowed = [...caught]
// A private range that is allowed opens no further port of a public host.
caught.length = 0
for (const port of [9402, 5432]) await post(allowed, `https://any.good.example:${port}/`, 'live', 0)
const caughtOutsidePorts = [...caught]
const before = welcome
await post(live, 'https://any.good.example/', 'live', 0)

process.stdout.write(
  `${JSON.stringify({
    tries,
    forms: forms.length,
    urls: urls.length,
    caught: caughtByTries,
    caughtWhenAllowed,
    caughtOutsidePorts,
    welcome: before,
    isGoodReached: welcome > before,
    questions,
    outcomes: Object.fromEntries(outcomes),
  })}\n`,
)
process.exit(0)
