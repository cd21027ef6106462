/** The server as an MCP client runs it: as a process on standard input and output, against a real deployment and chain. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Checkout, Payment } from '@farthing/sdk'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { openPaidStore } from '../../sdk/test/support/shops.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { readSettings } from '../src/settings.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const shop = await openPaidStore()
const payer = await shop.fund()

function newState(): string {
  const folder = mkdtempSync(join(tmpdir(), 'farthing-mcp-'))
  atEnd(() => rmSync(folder, { recursive: true }))
  return folder
}

const limits = { FARTHING_MAX_PER_PAYMENT: '1.00', FARTHING_MAX_PER_DAY: '1.50' }

/** Starts a server with the payer's key and these limits, unless changed, and connects to it. */
async function connect(environment: Readonly<Record<string, string>>) {
  const client = new Client({ name: 'test', version: '1' })
  const env = { FARTHING_URL: shop.baseUrl, FARTHING_PRIVATE_KEY: payer.key, ...limits, ...environment }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [main], env }))
  atEnd(() => client.close())
  const call = async <Result>(name: string, given: Record<string, unknown> = {}) => {
    const { content, isError = false } = await client.callTool({ name, arguments: given })
    const [{ text = '' } = {}] = content as { text?: string }[]
    const read = () => JSON.parse(text) as Result
    return { isError, text, read }
  }
  return { client, call }
}

async function create(priceAmount: string): Promise<Checkout> {
  return await shop.client.checkouts.create({ orderId: 'order-1', priceAmount, priceCurrency: 'USD' })
}

const paidUnits = async () =>
  (await shop.chain.transferLogs({ from: payer.address })).map(({ args }) => args.value)

type Paid = { outcome: string; code?: string; detail: string; checkout: Checkout; transaction: string }

test('a checkout is read and paid once, however often and by whichever name it is paid', async () => {
  const { call, client } = await connect({ XDG_STATE_HOME: newState(), FARTHING_API_KEY: shop.key })
  const { tools } = await client.listTools()
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['read_checkout', 'read_docs', 'pay_checkout', 'list_payments'],
  )
  const { id, checkoutUrl } = await create('0.40')
  const open = (
    await call<{ state: string; ways: { amount: string }[] }>('read_checkout', { checkout: id })
  ).read()
  assert.deepEqual([open.state, open.ways[0]?.amount], ['payable', '0.40 USDC'])
  const before = await paidUnits()
  const results = await Promise.all(
    [id, checkoutUrl, id].map(async (checkout) => (await call<Paid>('pay_checkout', { checkout })).read()),
  )
  for (const { outcome, checkout } of results) assert.deepEqual([outcome, checkout.id], ['paid', id])
  assert.deepEqual(await paidUnits(), [...before, 400_000n])
  const again = (await call<Paid>('pay_checkout', { checkout: checkoutUrl })).read()
  assert.equal(again.transaction, results[0]?.transaction)
  assert.equal((await call<{ state: string }>('read_checkout', { checkout: id })).read().state, 'paid')
  const { payments } = (
    await call<{ payments: Payment[] }>('list_payments', { limit: 5, checkoutId: id })
  ).read()
  assert.deepEqual(
    payments.map(({ transaction }) => transaction),
    [again.transaction],
  )
  assert.equal((await call('list_payments')).isError, false)
  assert.match((await call('read_docs')).text, /^# Farthing/)
  assert.match((await call('read_docs', { path: '/docs/x402.md' })).text, /^# x402 for agents/)
})

test('nothing above a limit is signed, and no argument changes a limit', async () => {
  const state = newState()
  const { call } = await connect({ XDG_STATE_HOME: state })
  const before = await paidUnits()
  const { id } = await create('1.01')
  const over = await call<Paid>('pay_checkout', { checkout: id })
  assert.deepEqual([over.isError, over.read().code], [true, 'over_limit'])
  for (const more of [
    { max: '5.00' },
    { maxPerPayment: '5' },
    { limit: 5 },
    { FARTHING_MAX_PER_PAYMENT: '5' },
  ]) {
    const refused = await call('pay_checkout', { checkout: id, ...more })
    assert.equal(refused.isError, true)
    assert.match(refused.text, /[Uu]nrecognized key/)
  }
  assert.deepEqual(await paidUnits(), before)
  assert.throws(() => readFileSync(spentFile(state)), /ENOENT/)
})

const spentFile = (state: string) =>
  join(state, 'farthing/mcp', `spent-${new Date().toISOString().slice(0, 10)}.jsonl`)

test('the day’s limit survives a restart, and a payment that it forbids is not signed', async () => {
  const state = newState()
  const first = await connect({ XDG_STATE_HOME: state })
  assert.equal(
    (await first.call<Paid>('pay_checkout', { checkout: (await create('0.90')).id })).read().outcome,
    'paid',
  )
  await first.client.close()
  // A line that a crash cut off.
  writeFileSync(spentFile(state), '\n{"id":"cut', { flag: 'a' })
  const second = await connect({ XDG_STATE_HOME: state })
  const before = await paidUnits()
  const over = await second.call<Paid>('pay_checkout', { checkout: (await create('0.61')).id })
  assert.deepEqual([over.isError, over.read().code], [true, 'over_daily_limit'])
  assert.match(over.read().detail, /0\.60 of today's 1\.50/)
  assert.deepEqual(await paidUnits(), before)
  // Two processes share the folder: together they stay within the limit.
  const third = await connect({ XDG_STATE_HOME: state })
  const both = await Promise.all(
    [second, third].map(async ({ call }) => {
      const { id } = await create('0.40')
      return (await call<Paid>('pay_checkout', { checkout: id })).read().outcome
    }),
  )
  assert.deepEqual(both.sort(), ['paid', 'refused'])
  assert.deepEqual(await paidUnits(), [...before, 400_000n])
})

test('it goes to no other host, whatever URL or path it is given', async () => {
  const visits: string[] = []
  const stranger = createServer((request, response) => {
    visits.push(request.url ?? '')
    response.end()
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  atEnd(() => stranger.close())
  const elsewhere = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`
  const { call } = await connect({ XDG_STATE_HOME: newState() })
  const { id } = await create('0.10')
  const { host } = new URL(shop.baseUrl)
  for (const checkout of [
    `${elsewhere}/pay/${id}`,
    `http://${host}@${new URL(elsewhere).host}/pay/${id}`,
    `http://x@${host}/pay/${id}`,
    `${shop.baseUrl}/docs`,
    `//${host}/pay/${id}`,
    'file:///etc/passwd',
    `../${id}`,
    '',
  ])
    for (const tool of ['pay_checkout', 'read_checkout']) {
      const { isError, text } = await call(tool, { checkout })
      assert.equal(isError, true, checkout)
      assert.match(text, /not_here.*Nothing was requested or paid/s)
    }
  for (const path of ['/docs/../api/v1/store.md', `${elsewhere}/llms.txt`, '/metrics', '//x/llms.txt'])
    assert.equal((await call('read_docs', { path })).isError, true, path)
  assert.deepEqual(visits, [])
  assert.equal((await shop.client.checkouts.get(id)).status, 'OPEN')
})

test('without a key it only reads, and mistakes are reported without repeating a secret', async () => {
  const { client } = await connect({ XDG_STATE_HOME: newState(), FARTHING_PRIVATE_KEY: '' })
  assert.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['read_checkout', 'read_docs'],
  )
  const { status, stdout, stderr } = spawnSync(process.execPath, [main], {
    env: { FARTHING_PRIVATE_KEY: payer.key },
    encoding: 'utf8',
  })
  assert.deepEqual([status, stdout], [2, ''])
  assert.match(stderr, /^FARTHING_MAX_PER_PAYMENT must be.*\nFARTHING_MAX_PER_DAY must be/)
  const file = join(newState(), 'key')
  writeFileSync(file, `${payer.key}0`)
  for (const [environment, sentence] of [
    [{ FARTHING_PRIVATE_KEY: `${payer.key}0`, ...limits }, /private key must be/],
    [{ FARTHING_PRIVATE_KEY_FILE: file, ...limits }, /private key must be/],
    [{ FARTHING_PRIVATE_KEY_FILE: '/none', ...limits }, /FILE cannot be read: ENOENT/],
    [{ FARTHING_PRIVATE_KEY: payer.key, FARTHING_PRIVATE_KEY_FILE: file, ...limits }, /not both/],
    [{ FARTHING_PRIVATE_KEY: payer.key, ...limits }, /Set HOME or XDG_STATE_HOME/],
    [
      { FARTHING_PRIVATE_KEY: payer.key, ...limits, HOME: '', XDG_STATE_HOME: 'state' },
      /Set HOME or XDG_STATE/,
    ],
    [{ FARTHING_URL: 'http://shop.example' }, /FARTHING_URL must be/],
    [{ FARTHING_URL: 'https://a.example,https://b.example?x' }, /FARTHING_URL must be/],
  ] as const)
    assert.throws(
      () => readSettings(environment),
      ({ message }: Error) => sentence.test(message) && !message.includes(payer.key.slice(4, 20)),
    )
  writeFileSync(file, `${payer.key}\n`)
  assert.equal(
    readSettings({ FARTHING_PRIVATE_KEY_FILE: file, ...limits, HOME: '/root' }).wallet?.signer.address,
    payer.address,
  )
  assert.equal(readSettings({}).wallet, null)
})
