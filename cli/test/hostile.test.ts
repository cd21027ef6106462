/** What a hijacked server or a stranger's checkout can get from a user of the command line. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { privateKeyToAccount } from 'viem/accounts'
import { atEnd } from '../../server/test/support/at-end.ts'
import { fundedKey } from '../../server/test/support/chain/evm.ts'
import { newPayer } from '../../server/test/support/chain/evm-payment.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const key = fundedKey(1)
const wallet = privateKeyToAccount(key)
const thief = '0x000000000000000000000000000000000000dEaD'
const buyer = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const asset = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const network = 'eip155:8453'
const paymentId = 'pay_00000000000000000000000000001'
const refundId = 'rf_000000000000000000000000000001'

/** Answers with JSON. `answer` gets the path, the body and the headers. */
async function serve(
  answer: (path: string, body: string, request: IncomingMessage) => { status?: number; json: unknown },
): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { status = 200, json } = answer(request.url ?? '', body, request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function newState(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'farthing-hostile-'))
  atEnd(() => rm(folder, { recursive: true }))
  return folder
}

async function run(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { FARTHING_API_KEY: 'sk_test', FARTHING_PRIVATE_KEY: key, NO_COLOR: '1', ...environment },
  })
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      out += chunk
    })
  const [code] = await once(child, 'close')
  return { out, code: code as number }
}

type Asked = { units: string; recipient: string; decimals?: number; nonce?: () => string; takes?: boolean }

/** A server that wants this signed, and keeps every signature. */
async function openTaken({ units, recipient, decimals = 6, nonce, takes = true }: Asked) {
  const signatures: { nonce: string; signature: string }[] = []
  let named = ''
  const refund = {
    ...{ id: refundId, paymentId, checkoutId: null, orderId: 'order-21', status: 'REQUESTED', way: 'signed' },
    ...{ network, asset, amount: units, from: wallet.address, recipient, reason: 'Late delivery' },
    ...{ transaction: null, finality: null, failure: null, isCanceling: false, completedAt: null },
    createdAt: new Date().toISOString(),
  }
  const url = await serve((path, body) => {
    if (path.endsWith('/networks')) {
      const assets = [{ symbol: 'USDC', address: asset, decimals }]
      const base = { chainId: 'BASE_MAINNET', network, name: 'Base', family: 'EVM', mode: 'live', assets }
      return { json: { data: [base], nextCursor: null } }
    }
    if (path.endsWith('/prepare')) {
      named = nonce?.() ?? `0x66746872${'ab'.repeat(28)}`
      const validBefore = Math.floor(Date.now() / 1_000) + 3_600
      const names = ['from', 'to', 'value', 'validAfter', 'validBefore', 'nonce']
      const types = ['address', 'address', 'uint256', 'uint256', 'uint256', 'bytes32']
      const typedData = {
        domain: { name: 'USD Coin', version: '2', chainId: 8453, verifyingContract: asset },
        types: { TransferWithAuthorization: names.map((name, i) => ({ name, type: types[i] })) },
        primaryType: 'TransferWithAuthorization',
        message: {
          ...{ from: wallet.address, to: recipient, value: units, validAfter: '0' },
          ...{ validBefore: `${validBefore}`, nonce: named },
        },
      }
      return { json: { refund, typedData, expiresAt: new Date(validBefore * 1_000).toISOString() } }
    }
    if (path.endsWith('/signature')) {
      signatures.push({ nonce: named, signature: JSON.parse(body).signature })
      const problem = {
        type: 'about:blank',
        title: 'x',
        status: 422,
        code: 'invalid_request',
        detail: 'Again.',
      }
      return takes ? { json: { ...refund, status: 'COMPLETED' } } : { status: 422, json: problem }
    }
    if (path.includes('/payments/') && !path.endsWith('/refunds')) {
      const payment = { id: paymentId, checkoutId: null, payTo: wallet.address, payer: buyer, network, asset }
      return { json: { ...payment, amount: '12000000', disposition: 'exact', hints: [] } }
    }
    return { json: takes && signatures.length > 0 ? { ...refund, status: 'COMPLETED' } : refund }
  })
  return { url, signatures }
}

const asked = ['--amount', '2.00', '--to', buyer, '--yes', '--text']

for (const [what, lie] of [
  ['another amount and recipient', { units: '987654000000', recipient: thief }],
  ['another amount', { units: '987654000000', recipient: buyer }],
  ['another recipient', { units: '2000000', recipient: thief }],
  [
    'other decimals, so that the amount looks right',
    { units: '2000000000000', recipient: buyer, decimals: 12 },
  ],
] as const)
  for (const command of [
    ['refund', paymentId],
    ['refund', 'sign', refundId],
  ])
    test(`${command.slice(0, -1).join(' ')}: a server that names ${what} gets no signature`, async () => {
      const taken = await openTaken(lie)
      const state = { FARTHING_URL: taken.url, XDG_STATE_HOME: await newState() }
      const { out, code } = await run([...command, ...asked], state)
      assert.deepEqual(taken.signatures, [], out)
      assert.equal(code, 1, out)
      assert.match(out, /Nothing was signed/)
    })

test('without a person to ask, amount and recipient are required before the server gets any request', async () => {
  const taken = await openTaken({ units: '2000000', recipient: buyer })
  const state = { FARTHING_URL: taken.url, XDG_STATE_HOME: await newState() }
  for (const options of [['--amount', '2.00'], ['--to', buyer], []])
    for (const command of [
      ['refund', paymentId],
      ['refund', 'sign', refundId],
    ]) {
      const { out, code } = await run([...command, ...options, '--yes'], state)
      assert.equal(code, 2, out)
    }
  assert.deepEqual(taken.signatures, [])
  assert.equal((await run(['refund', paymentId, ...asked], state)).code, 0)
  assert.equal(taken.signatures.length, 1)
})

test('however often a refund is signed, the server gets one nonce, also from two runs at once', async () => {
  let count = 0
  const taken = await openTaken({
    units: '2000000',
    recipient: buyer,
    takes: false,
    nonce: () => `0x66746872${(++count).toString(16).padStart(56, '0')}`,
  })
  const state = { FARTHING_URL: taken.url, XDG_STATE_HOME: await newState() }
  const sign = () => run(['refund', 'sign', refundId, ...asked], state)
  const ran = [...(await Promise.all([sign(), sign()])), await sign()]
  assert.equal(new Set(taken.signatures.map(({ nonce }) => nonce)).size, 1)
  assert(ran.some(({ out }) => /message\.nonce[\s\S]*Nothing was signed/.test(out)))
})

test('a checkout that refuses a payment gets the same signature again, and the command does not say that nothing was charged', async () => {
  const id = `ch_${'0'.repeat(28)}`
  const nonces: string[] = []
  const url: string = await serve((_path, _body, request) => {
    const header = request.headers['payment-signature']
    if (typeof header === 'string')
      nonces.push(JSON.parse(Buffer.from(header, 'base64').toString()).payload.authorization.nonce)
    const accepts = [
      {
        ...{ scheme: 'exact', network, asset, amount: '900000', payTo: thief, maxTimeoutSeconds: 600 },
        extra: { name: 'USD Coin', version: '2' },
      },
    ]
    const resource = { url: `http://${request.headers.host}/c/${id}`, description: 'A mug', mimeType: 'x' }
    const error = header ? { error: 'invalid_exact_evm_insufficient_balance' } : {}
    return { status: 402, json: { x402Version: 2, ...error, resource, accepts } }
  })
  const state = { FARTHING_PRIVATE_KEY: newPayer().key, XDG_STATE_HOME: await newState() }
  for (let i = 0; i < 3; i++) {
    const { out, code } = await run(['pay', `${url}/c/${id}`, '--yes', '--text'], state)
    assert.equal(code, 1, out)
    assert.match(out, /could use it\s+until/)
    assert.doesNotMatch(out, /Nothing was/)
  }
  assert.equal(nonces.length, 3)
  assert.equal(new Set(nonces).size, 1)
})

test('the API key goes to no other machine in plain http', async () => {
  const { out, code } = await run(['refunds', '--url', 'http://farthing.example'], {
    XDG_STATE_HOME: await newState(),
  })
  assert.equal(code, 2)
  assert.match(out, /not encrypted/)
})
