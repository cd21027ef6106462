/** The program as people and scripts run it: as a separate process, against a real server and chain. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { Checkout, Event, Payment, StoreCheckout, Wallet } from '@farthing/sdk'
import type { PayResult } from '@farthing/sdk/pay'
import { verifyWebhook } from '@farthing/sdk/webhooks'
import { privateKeyToAccount } from 'viem/accounts'

import { openStockSeller } from '../../sdk/test/support/seller.ts'
import { openPaidStore } from '../../sdk/test/support/shops.ts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { creditByHand } from '../../server/test/support/by-hand.ts'
import { newPayer } from '../../server/test/support/chain/evm-payment.ts'
import { freePort } from '../../server/test/support/free-port.ts'
import { until } from '../../server/test/support/until.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const state = await mkdtemp(join(tmpdir(), 'farthing-cli-'))
const keysFile = join(state, 'receipt-keys.pem')
const { privateKey } = generateKeyPairSync('ed25519')
await writeFile(keysFile, privateKey.export({ format: 'pem', type: 'pkcs8' }))
const networks = 'LOCAL,SIMULATED'
const shop = await openPaidStore({ settings: { RECEIPT_KEYS_FILE: keysFile, NETWORKS: networks } })
atEnd(() => rm(state, { recursive: true }))

type Ran = { readonly code: number | null; readonly out: string; readonly err: string }

function start(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      FARTHING_API_KEY: shop.key,
      FARTHING_URL: shop.baseUrl,
      XDG_STATE_HOME: state,
      ...environment,
    },
  })
  atEnd(() => child.kill('SIGKILL'))
  const ran = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    ran.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    ran.err += chunk
  })
  const ended = once(child, 'close').then(([code]): Ran => ({ ...ran, code: code as number | null }))
  return { child, ran, ended }
}

const run = async (...given: Parameters<typeof start>): Promise<Ran> => await start(...given).ended

/** Runs a command that must succeed and returns the JSON lines it prints. */
async function read<Line>(...args: string[]): Promise<Line[]> {
  const { code, out, err } = await run(args)
  assert.equal(code, 0, err)
  assert.equal(err, '')
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

async function create(priceAmount = '0.50'): Promise<Checkout> {
  const [checkout] = await read<Checkout>('checkout', 'create', 'order-1', priceAmount)
  assert(checkout)
  return checkout
}

test('a case is made to happen in a test store', async () => {
  const [made] = await read<Checkout>('checkout', 'create', 'late', '3')
  const { code, out } = await run(['trigger', 'network.down', made?.id ?? '', '--text'])
  assert.equal(code, 0)
  assert.match(out, /payer told +503 settlement_unavailable/)
  const refused = await run(['trigger', 'payment.unheard', made?.id ?? ''])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /case/)
})

test('a checkout is created, shown, listed and canceled', async () => {
  const [made] = await read<Checkout>('checkout', 'create', 'Ordnung 7', '12.50', 'USD', '--expires', '600')
  assert(made)
  assert.deepEqual([made.orderId, made.priceAmount, made.status], ['Ordnung 7', '12.50', 'OPEN'])
  const [again] = await read<Checkout>('checkout', 'create', 'order-8', '1', '--key', 'a')
  const [same] = await read<Checkout>('checkout', 'create', 'order-8', '1', '--key', 'a')
  assert.deepEqual(again, same)
  assert.deepEqual(await read<StoreCheckout>('checkout', 'get', made.id), [{ ...made, payment: null }])
  const listed = await read<StoreCheckout>('checkout', 'list', '--limit', '2', '--status', 'open')
  assert.deepEqual(
    listed.map(({ id }) => id),
    [again?.id, made.id],
  )
  const [canceled] = await read<StoreCheckout>('checkout', 'cancel', made.id)
  assert.equal(canceled?.status, 'CANCELED')
  const { out } = await run(['checkout', 'list', '--text'])
  assert.match(out, new RegExp(`${made.id} +CANCELED +12.50 USD +Ordnung 7`))
})

test('a wallet is registered and listed', async () => {
  const address = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
  const other = await openPaidStore({ worker: false })
  const settings = { FARTHING_API_KEY: other.key, FARTHING_URL: other.baseUrl }
  const added = await run(['wallet', 'add', address, '--custodial'], settings)
  const wallet = JSON.parse(added.out) as Wallet
  assert.deepEqual([wallet.walletAddress, wallet.custodialType, wallet.current], [address, 'CUSTODIAL', true])
  const { out } = await run(['wallet', 'list', '--text'], settings)
  assert.match(out, new RegExp(`EVM +${address} +✔ paid here`))
})

test('a wallet is proven by the signature of its challenge, and marked as shared', async () => {
  const other = await openPaidStore({ worker: false })
  const settings = { FARTHING_API_KEY: other.key, FARTHING_URL: other.baseUrl }
  const holder = privateKeyToAccount(newPayer().key)
  await run(['wallet', 'add', holder.address], settings)
  const asked = await run(['wallet', 'challenge', holder.address, '--text'], settings)
  const message = asked.out.trimEnd()
  assert.match(message, new RegExp(`Store: ${other.store.id}\\nWallet: ${holder.address}\\n`))
  const signature = await holder.signMessage({ message })
  const proven = await run(['wallet', 'prove', holder.address.toLowerCase(), signature], settings)
  assert((JSON.parse(proven.out) as Wallet).provenAt, proven.err)
  const shared = await run(['wallet', 'shared', holder.address, 'yes'], settings)
  assert.equal((JSON.parse(shared.out) as Wallet).sharedElsewhere, true)
  assert.match((await run(['wallet', 'list', '--text'], settings)).out, new RegExp(`${holder.address} +✔`))
  const unknown = await run(['wallet', 'prove', newPayer().address, signature], settings)
  assert.match(unknown.err, /not one of the store’s wallets/)
})

test('payments that do not match their checkout are listed, accepted and dismissed', async () => {
  const { id } = await create()
  const [first, second] = [await creditByHand(shop, id), await creditByHand(shop, id)]
  const listed = await read<Payment>('payment', 'list', '--disposition', 'unmatched')
  assert.deepEqual(new Set(listed.map((each) => each.id)), new Set([first, second]))
  const { out } = await run(['payment', 'list', '--text'])
  assert.match(out, new RegExp(`${first} +unmatched +0.500001 USDC`))
  const [accepted] = await read<Payment>('payment', 'accept', first, '--checkout', id)
  assert.equal(accepted?.checkoutId, id)
  const [dismissed] = await read<Payment>('payment', 'dismiss', second, '--note', 'sent back')
  assert(dismissed?.dismissedAt)
  assert.equal(dismissed.note?.text, 'sent back')
  const [noted] = await read<Payment>('payment', 'note', first, 'for two orders')
  assert.equal(noted?.note?.text, 'for two orders')
  const found = await read<Payment>('payment', 'list', '--transaction', noted.transaction, '--min', '1')
  assert.deepEqual(
    found.map((each) => each.id),
    [first],
  )
})

test('verify says whether a receipt is genuine and what it proves, with and without a network', async () => {
  const payer = await shop.fund()
  const { checkoutUrl, id } = await create()
  const paid = await run(['pay', checkoutUrl, '--yes'], { FARTHING_PRIVATE_KEY: payer.key })
  const [file, did, changed] = ['paid.json', 'did.json', 'changed.jws'].map((name) => join(state, name))
  assert(file && did && changed)
  await writeFile(file, paid.out)
  await writeFile(did, await (await fetch(`${shop.baseUrl}/.well-known/did.json`)).text())
  const { out, code, err } = await run(['verify', file, '--text', '--payer', payer.address, '--checkout', id])
  assert.equal(code, 0, err)
  for (const shown of ['0.50 USDC on Local chain', payer.address, checkoutUrl, 'does not prove'])
    assert(out.includes(shown), out)
  const { receipt } = JSON.parse(paid.out) as { receipt: { signature: string } }
  await writeFile(changed, receipt.signature.replace(/.{6}$/, 'AAAAAA'))
  const nowhere = { FARTHING_URL: 'http://127.0.0.1:9' }
  assert.equal((await run(['verify', file, '--did', did], nowhere)).code, 0)
  for (const [args, reason] of [
    [[changed], 'bad_signature'],
    [[file, '--payer', newPayer().address], 'mismatch'],
    [[file, '--checkout', `ch_${'0'.repeat(28)}`], 'mismatch'],
  ] as const) {
    const refused = await run(['verify', ...args, '--did', did])
    assert.equal(refused.code, 1)
    assert.equal((JSON.parse(refused.out) as { code: string }).code, reason)
  }
  assert.equal((await run(['verify', keysFile])).code, 2)
})

test('pay stays within its limit, shows what it signs, and keeps nothing once the outcome is known', async () => {
  const payer = await shop.fund()
  const wallet = { FARTHING_PRIVATE_KEY: payer.key }
  const { checkoutUrl } = await create('1.01')
  const refused = await run(['pay', checkoutUrl, '--yes'], wallet)
  assert.equal(refused.code, 1)
  const { code, detail } = JSON.parse(refused.out) as { code: string; detail: string }
  assert.equal(code, 'over_limit')
  assert.match(detail, /--max/)
  const unasked = await run(['pay', checkoutUrl], wallet)
  assert.deepEqual([unasked.code, unasked.out], [2, ''])
  assert.match(unasked.err, /Pass --yes and --max/)
  const paid = await run(['pay', checkoutUrl, '--yes', '--max', '1.01', '--text'], wallet)
  assert.equal(paid.code, 0, paid.err)
  for (const shown of ['1.01 USDC on Local chain', payer.address, 'for order order-1', '✔ Paid'])
    assert(paid.out.includes(shown), paid.out)
  assert.deepEqual(await readdir(join(state, 'farthing/payments')), [])
  assert.deepEqual(
    (await shop.chain.transferLogs({ from: payer.address })).map(({ args }) => args.value),
    [1_010_000n],
  )
})

test('a pay command that is killed and run again submits the same signature', async (t) => {
  t.after(() => shop.chain.client.setIntervalMining({ interval: 1 }))
  const payer = await shop.fund()
  const { id, checkoutUrl } = await create('0.90')
  await shop.chain.client.setIntervalMining({ interval: 0 })
  const args = ['pay', checkoutUrl, '--yes']
  const first = start(args, { FARTHING_PRIVATE_KEY: payer.key })
  await until('it is claimed', async () => (await shop.client.checkouts.get(id)).status === 'PROCESSING')
  first.child.kill('SIGKILL')
  await first.ended
  await shop.chain.client.setIntervalMining({ interval: 1 })
  const second = await run(args, { FARTHING_PRIVATE_KEY: payer.key })
  assert.equal(second.code, 0, second.err)
  const result = JSON.parse(second.out) as PayResult
  assert(result.outcome === 'paid')
  assert.equal(result.payer, payer.address)
  assert.deepEqual(
    (await shop.chain.transferLogs({ from: payer.address })).map(({ args: { value } }) => value),
    [900_000n],
  )
})

test('a refused payment says why, and until when its signature could be used', async () => {
  const { checkoutUrl } = await create('0.10')
  const { code, out } = await run(['pay', checkoutUrl, '--yes', '--text'], {
    FARTHING_PRIVATE_KEY: newPayer().key,
  })
  assert.equal(code, 1)
  assert.match(out, /insufficient_balance[\s\S]*could use it\s+until\s+20/)
  assert.doesNotMatch(out, /Nothing was/)
})

test('without a server, pay says so within seconds, and says whether anything is signed', async () => {
  const [unsigned, signed] = ['0', '1'].map((digit) => `/pay/ch_${digit.repeat(28)}`)
  const nowhere = `http://127.0.0.1:${await freePort()}`
  const wallet = { FARTHING_PRIVATE_KEY: newPayer().key }
  const kept = join(state, 'farthing/payments', encodeURIComponent(nowhere + signed))
  await mkdir(dirname(kept), { recursive: true })
  await writeFile(kept, 'signed earlier')
  const resumed = start(['pay', nowhere + signed, '--yes', '--text'], wallet)
  const begun = performance.now()
  const { code, err } = await run(['pay', nowhere + unsigned, '--yes', '--text'], wallet)
  const ms = performance.now() - begun
  assert.equal(code, 1)
  assert.match(err, /No server answers at 127\.0\.0\.1:\d+\.[\s\S]*Nothing was signed/)
  await until('it says what it waits for', async () => resumed.ran.err !== '')
  assert.match(resumed.ran.err, /No server answers at [\s\S]*signed and kept/)
  // Three seconds, and the start of a process on a busy machine. If it did not give up, it would take two minutes.
  assert(ms < 60_000, `after ${ms} ms`)
  resumed.child.kill('SIGINT')
  await resumed.ended
  await rm(kept)
})

test('while the server cannot settle, pay says within seconds what it waits for, and the signature is kept', async () => {
  const idle = await openPaidStore({ worker: false })
  const payer = await idle.fund()
  const checkoutUrl = `${idle.baseUrl}/pay/${await idle.create('0.10')}`
  const wallet = { FARTHING_PRIVATE_KEY: payer.key }
  const paying = start(['pay', checkoutUrl, '--yes', '--text'], wallet)
  await until('it says what it waits for', async () => paying.ran.err !== '')
  assert.match(paying.ran.err, /Waiting: [\s\S]*signed and kept/)
  paying.child.kill('SIGINT')
  await paying.ended
  const kept = join(state, 'farthing/payments', encodeURIComponent(checkoutUrl))
  assert.notEqual(await readFile(kept, 'utf8'), '')
  await rm(kept)
})

test('control characters from a stranger’s server do not reach the terminal', async () => {
  const detail = 'Gone.\u001b[2K\u001b[1A\u202eevil\rPaid'
  const stranger = createServer((_request, response) => {
    response.writeHead(410, { 'content-type': 'application/problem+json' })
    response.end(JSON.stringify({ code: 'checkout_expired', detail }))
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  atEnd(() => stranger.close())
  const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/pay/ch_${'0'.repeat(28)}`
  const { out } = await run(['pay', url, '--yes', '--text'], { FARTHING_PRIVATE_KEY: newPayer().key })
  assert.match(out, /Gone\.�\[2K�\[1A�evil�Paid/)
})

test('events shows the end of the log and follows it', async () => {
  const { id } = await create()
  await until('its event is in the log', async () => {
    const { data } = await shop.client.events.list({ checkoutId: id })
    return data.length === 1
  })
  type Line = { event: Event; cursor: string }
  const of = await read<Line>('events', '--last', '1000', '--checkout', id)
  assert.deepEqual(
    of.map(({ event }) => [event.type, event.checkoutId]),
    [['checkout.created', id]],
  )
  // The chain keeps producing events, so more may have happened since the log's end was read.
  const last = await read<Line>('events', '--last', '3')
  const [first] = last
  assert(first && last.length >= 3 && last.length < 10)
  assert.deepEqual(
    last.map(({ event }) => event.sequence),
    last.map((_, i) => first.event.sequence + i),
  )
  const following = start(['events', '--follow', '--after', first.cursor, '--text'])
  const next = await create()
  await until('it is shown', async () => following.ran.out.includes(next.id))
  following.child.kill('SIGINT')
  assert.equal((await following.ended).code, 0)
  assert.match(following.ran.out, /checkout\.created/)
})

test('listen forwards events with valid signatures, shows failed deliveries, and replays', async () => {
  const received: { body: string; headers: Record<string, string | string[] | undefined> }[] = []
  const receiver = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    received.push({ body, headers: request.headers })
    response.writeHead(received.length === 1 ? 500 : 204).end()
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  atEnd(() => receiver.close())
  const { port } = receiver.address() as AddressInfo

  const listening = start(['listen', String(port), '--type', 'checkout.created'])
  await until('it listens', async () => listening.ran.out.includes('\n'))
  const { secret } = JSON.parse(listening.ran.out.split('\n')[0] ?? '') as { secret: string }
  const [first, second] = [await create(), await create()]
  await until('both arrived', async () => received.length === 2)
  listening.child.kill('SIGINT')
  assert.equal((await listening.ended).code, 0)
  const events = await Promise.all(received.map((each) => verifyWebhook({ ...each, secrets: secret })))
  assert.deepEqual(
    events.map(({ checkoutId }) => checkoutId),
    [first.id, second.id],
  )
  const outcomes = listening.ran.out.split('\n').slice(1, 3)
  assert.deepEqual(
    outcomes.map((line) => (JSON.parse(line) as { status: number }).status),
    [500, 204],
  )

  const replay = ['--replay', '100', '--type', 'checkout.created']
  const replaying = start(['listen', `http://127.0.0.1:${port}/hook`, ...replay])
  const repeated = () => received.slice(2).map(({ headers }) => headers['webhook-id'])
  await until('both arrived again', async () => events.every(({ id }) => repeated().includes(id)))
  replaying.child.kill('SIGINT')
  await replaying.ended
  assert.deepEqual(
    repeated().slice(-2),
    events.map(({ id }) => id),
  )
})

test('a mistake is reported on stderr with what to do, and usage errors exit with 2', async () => {
  const mistakes = [
    [['checkout', 'get'], 2, /Usage: farthing checkout get <checkoutId>/],
    [['checkout', 'get', 'ch_none'], 1, /not_found {2}req_/],
    [['checkout', 'create', 'order-1', '-1'], 2, /Unknown option|ambiguous/],
    [['checkout', 'create', 'order-1', '1,5'], 1, /✖ priceAmount/],
    [['checkout', 'create', 'order-1', '1', '--redirect', 'x'], 1, /✖ --redirect/],
    [['checkout', 'create', 'order-1', '1', '--cancel', 'x'], 1, /✖ --cancel/],
    [['checkout', 'list', '--status', 'paid'], 1, /✖ --status/],
    [['checkout', 'list', '--url', 'x'], 2, /not x. Set FARTHING_URL/],
    [['checkout', 'list', '--limit', 'x'], 2, /--limit must be a number/],
    [['nonsense'], 2, /Unknown command "nonsense"/],
    [['pay', 'x', '--yes'], 2, /FARTHING_PRIVATE_KEY/],
    [['listen', 'x'], 2, /neither a port/],
  ] as const
  const check = async ([args, code, said]: (typeof mistakes)[number]) => {
    const ran = await run([...args, '--text'])
    assert.deepEqual([args, ran.code, ran.out], [args, code, ''])
    assert.match(ran.err, said)
  }
  await Promise.all(mistakes.map(check))
  const none = await run(['checkout', 'list', '--text'], { FARTHING_API_KEY: '' })
  assert.match(none.err, /Set FARTHING_API_KEY/)
  const json = await run(['checkout', 'get', 'ch_none'])
  const { error } = JSON.parse(json.err) as { error: { code: string; requestId: string } }
  assert.equal(error.code, 'not_found')
  assert.match(error.requestId, /^req_/)
})

test('--version prints the version of the package', async () => {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  assert.deepEqual(await run(['--version']), { code: 0, out: `${version}\n`, err: '' })
})

test('every command has help text, and no line of it is wider than 80 columns', async () => {
  const { out } = await run(['--help'])
  const names = [...out.matchAll(/^ {2}([a-z]+(?: [a-z-]+)?) {2}/gm)].map(([, name = '']) => name.split(' '))
  assert.equal(names.length, 35)
  const texts = await Promise.all(names.map(async (name) => (await run([...name, '--help'])).out))
  for (const text of [out, ...texts]) {
    assert.match(text, /^farthing /)
    for (const line of text.split('\n')) assert(line.length <= 80, line)
  }
})

test('buy pays for an answer, within its limit, and shows what strangers wrote without their control characters', async () => {
  const payer = await shop.fund()
  const wallet = { FARTHING_PRIVATE_KEY: payer.key }
  const { openSeller } = await openStockSeller(shop)
  const { url, seen } = await openSeller()
  const refused = await run(['buy', url, '--yes'], wallet)
  assert.deepEqual([refused.code, JSON.parse(refused.out).code], [1, 'over_limit'])
  const unasked = await run(['buy', url], wallet)
  assert.deepEqual([unasked.code, unasked.out], [2, ''])
  const args = ['buy', url, '--yes', '--max', '1', '--data', '{"q":1}', '--header', 'accept: text/plain']
  const bought = await run(args, wallet)
  assert.equal(bought.code, 0, bought.err)
  const { outcome, status, body } = JSON.parse(bought.out) as Record<string, unknown>
  assert.deepEqual([outcome, status, body], ['paid', 200, '{}'])
  assert.deepEqual([seen.at(-1)?.method, seen.at(-1)?.body], ['POST', '{"q":1}'])
  assert.deepEqual(
    (await shop.chain.transferLogs({ from: payer.address })).map(({ args: { value } }) => value),
    [1_000_000n],
  )
  assert.deepEqual(await readdir(join(state, 'farthing/purchases')), [])
  const hostile = await openSeller((_, response) => Boolean(response.writeHead(200).end('a\u001b[2Jb\nc')))
  const free = await run(['buy', hostile.url, '--yes', '--text'], wallet)
  assert.equal(free.code, 0, free.err)
  assert(free.out.startsWith('a�[2Jb\nc\n'), JSON.stringify(free.out))
})
