/** A program buys from the stock x402 server, and from servers that fail or lie: it signs once and pays at most once. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { type BuyOptions, buy, type EvmSigner } from '@farthing/sdk/pay'
import { privateKeyToAccount } from 'viem/accounts'
import type { Payer } from '../../server/test/support/chain/evm-payment.ts'
import { openShop, payTo } from '../../server/test/support/shop.ts'
import { openStockSeller } from './support/seller.ts'

const shop = await openShop({ worker: false })
const { terms, send, openSeller } = await openStockSeller(shop)

function walletOf({ key }: Payer): EvmSigner & { signatures: number } {
  const account: EvmSigner = privateKeyToAccount(key)
  return {
    address: account.address,
    signatures: 0,
    async signTypedData(typedData) {
      this.signatures++
      return await account.signTypedData(typedData)
    },
  }
}

async function openWallet() {
  const payer = await shop.fund()
  const charged = async () => (await shop.chain.transferLogs({ from: payer.address, to: payTo })).length
  return { wallet: walletOf(payer), charged }
}

const withTerms = (change: object) => {
  const [accepted] = terms.accepts
  return btoa(JSON.stringify({ ...terms, accepts: [{ ...accepted, ...change }] }))
}
const asking = (response: ServerResponse, required: string) =>
  Boolean(response.writeHead(402, { 'payment-required': required }).end('{}'))

const options = (more: Partial<BuyOptions> = {}): BuyOptions => ({ max: '1.00', kept: new Map(), ...more })

test('a call to the stock server is paid with one signature, and its answer comes with the transaction', async () => {
  const { wallet, charged } = await openWallet()
  const { url, seen } = await openSeller()
  const shown: string[] = []
  const result = await buy(
    { url, body: '{"q":1}', headers: { 'content-type': 'application/json' } },
    wallet,
    options({ approve: ({ amount, asset, url: at }) => shown.push(`${amount} ${asset.symbol} ${at}`) > 0 }),
  )
  assert.equal(result.outcome, 'paid')
  assert.match(result.settlement?.transaction ?? '', /^0x[0-9a-f]{64}$/)
  assert.deepEqual(
    seen.map(({ method, body, header }) => [method, body, header !== undefined]),
    [
      ['POST', '{"q":1}', false],
      ['POST', '{"q":1}', true],
    ],
  )
  assert.deepEqual([shown, wallet.signatures, await charged()], [[`1.00 USDC ${url}`], 1, 1])
})

test('what costs nothing is returned as it is, and nothing is signed', async () => {
  const { wallet } = await openWallet()
  const { url } = await openSeller((_, response) => Boolean(response.writeHead(404).end('gone')))
  const result = await buy(url, wallet, options())
  assert.equal(result.outcome, 'free')
  assert.deepEqual(
    [result.response.status, await result.response.text(), wallet.signatures],
    [404, 'gone', 0],
  )
})

describe('terms that are not safe are not signed', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['over_limit', 'more than the limit', withTerms({ amount: '1000001' })],
    ['unknown_asset', 'another token', withTerms({ asset: `0x${'1'.repeat(40)}` })],
    ['unknown_asset', 'another network', withTerms({ network: 'eip155:1' })],
    ['unknown_asset', 'another domain', withTerms({ extra: { name: 'Other', version: '2' } })],
    ['unknown_asset', 'another scheme', withTerms({ scheme: 'upto' })],
    ['malformed_terms', 'a window of a day', withTerms({ maxTimeoutSeconds: 86_400 })],
    ['malformed_terms', 'no amount', withTerms({ amount: '0' })],
    ['malformed_terms', 'no address', withTerms({ payTo: '0x12' })],
    ['malformed_terms', 'version 1', btoa('{"x402Version":1,"accepts":[]}')],
    ['malformed_terms', 'no terms', 'nothing'],
  ]
  for (const [code, name, required] of cases)
    test(`${name}: ${code}`, async () => {
      const { wallet } = await openWallet()
      const { url, seen } = await openSeller((_, response) => asking(response, required))
      const result = await buy(url, wallet, options())
      assert(result.outcome === 'refused')
      assert.deepEqual([result.code, result.signedUntil, wallet.signatures, seen.length], [code, null, 0, 1])
    })

  test('what is not approved: declined', async () => {
    const { wallet } = await openWallet()
    const { url } = await openSeller()
    const result = await buy(url, wallet, options({ approve: () => false }))
    assert(result.outcome === 'refused')
    assert.deepEqual([result.code, wallet.signatures], ['declined', 0])
  })
})

test('an answer that is lost after the money moved is asked for again with the same signature, and never paid twice', async () => {
  const { wallet, charged } = await openWallet()
  const kept = new Map<string, string>()
  const { url, seen } = await openSeller(async (header, response) => {
    if (header === undefined) return null
    // The seller is paid, and dies before it answers.
    await send(header)
    response.destroy()
    return true
  })
  const first = await buy(url, wallet, options({ kept, timeoutMs: 1_500 }))
  const second = await buy(url, wallet, options({ kept, timeoutMs: 1_500 }))
  assert.deepEqual([first.outcome, second.outcome], ['pending', 'pending'])
  const headers = new Set(seen.flatMap(({ header }) => header ?? []))
  assert.deepEqual([headers.size, wallet.signatures, await charged()], [1, 1, 1])
})

test('an answer that breaks off in its body is not taken for one: the same signature asks again', async () => {
  const { wallet, charged } = await openWallet()
  const kept = new Map<string, string>()
  const { url, seen } = await openSeller(async (header, response, count) => {
    if (header === undefined || count > 3) return null
    if (count === 2) await send(header)
    response.writeHead(200, { 'content-length': '100' }).write('half of it')
    setImmediate(() => response.destroy())
    return true
  })
  const result = await buy(url, wallet, options({ kept, timeoutMs: 1_200 }))
  assert.notEqual(result.outcome, 'paid')
  assert.equal(new Set(seen.flatMap(({ header }) => header ?? [])).size, 1)
  assert.deepEqual([kept.size, wallet.signatures, await charged()], [1, 1, 1])
})

test('what one wallet has signed is not used for another’s request', async () => {
  const [first, second] = [await openWallet(), await openWallet()]
  const kept = new Map<string, string>()
  const failing = { is: true }
  const { url } = await openSeller((header, response) =>
    failing.is && header !== undefined ? Boolean(response.writeHead(500).end()) : null,
  )
  assert.equal((await buy(url, first.wallet, options({ kept }))).outcome, 'refused')
  failing.is = false
  assert.equal((await buy(url, second.wallet, options({ kept }))).outcome, 'paid')
  assert.deepEqual([await first.charged(), await second.charged()], [0, 1])
})

test('of two processes that sign for one purchase, both send what was kept first', async () => {
  const { wallet, charged } = await openWallet()
  const { url, seen } = await openSeller((header, response) =>
    header === undefined ? null : Boolean(response.writeHead(500).end()),
  )
  const other = await openWallet()
  let keptFirst = ''
  const kept = {
    get: () => undefined,
    set: () => assert.fail('it would replace what another process has kept'),
    delete: () => {},
    keep: async (_: string, payment: string) => (keptFirst ||= payment),
  }
  await buy({ url, id: 'one' }, wallet, options({ kept }))
  await buy({ url, id: 'one' }, wallet, options({ kept }))
  assert.equal(new Set(seen.flatMap(({ header }) => header ?? [])).size, 1)
  assert.deepEqual([await charged(), await other.charged()], [0, 0])
})

for (const status of [202, 402, 429, 503])
  test(`${status} is definite once the signature has expired, and the next call may sign anew`, async () => {
    const { wallet } = await openWallet()
    const kept = new Map<string, string>()
    const settlement = btoa(JSON.stringify({ success: false, transaction: `0x${'ab'.repeat(32)}` }))
    const { url } = await openSeller((header, response) =>
      header === undefined
        ? null
        : Boolean(response.writeHead(status, { 'payment-response': settlement }).end('{}')),
    )
    assert.equal((await buy(url, wallet, options({ kept, timeoutMs: 1 }))).outcome, 'pending')
    const [[name, payment] = assert.fail('nothing is kept')] = [...kept]
    const header = JSON.parse(atob(payment)) as { payload: { authorization: { validBefore: string } } }
    header.payload.authorization.validBefore = '1'
    kept.set(name, btoa(JSON.stringify(header)))
    assert.equal((await buy(url, wallet, options({ kept, timeoutMs: 1 }))).outcome, 'refused')
    assert.equal(kept.size, 0)
  })

test('a settlement of any other shape names no transaction', async () => {
  const { wallet } = await openWallet()
  const { url } = await openSeller((header, response) =>
    header === undefined
      ? null
      : Boolean(
          response.writeHead(200, { 'payment-response': btoa('{"success":true,"transaction":1}') }).end('ok'),
        ),
  )
  const result = await buy(url, wallet, options())
  assert(result.outcome === 'paid')
  assert.deepEqual([result.settlement, await result.response.text()], [null, 'ok'])
})

for (const status of [202, 429, 502, 503, 504])
  test(`${status} is asked again with the same signature until there is an answer`, async () => {
    const { wallet, charged } = await openWallet()
    const { url, seen } = await openSeller((header, response, count) =>
      header !== undefined && count < 4 ? Boolean(response.writeHead(status).end()) : null,
    )
    const result = await buy(url, wallet, options())
    assert.equal(result.outcome, 'paid')
    assert.deepEqual([seen.length, wallet.signatures, await charged()], [4, 1, 1])
  })

test('a refusal names its reason and how long the signature lives; until then no other is made', async () => {
  const { wallet, charged } = await openWallet()
  const kept = new Map<string, string>()
  const { url, seen } = await openSeller((header, response) =>
    header === undefined ? null : Boolean(response.writeHead(500).end('the handler failed')),
  )
  for (let i = 0; i < 2; i++) {
    const result = await buy(url, wallet, options({ kept }))
    assert(result.outcome === 'refused')
    assert.equal(result.code, 'http_500')
    assert.equal(await result.response?.text(), 'the handler failed')
    assert(Date.parse(result.signedUntil ?? '') > Date.now())
  }
  const headers = seen.flatMap(({ header }) => header ?? [])
  assert.deepEqual([headers.length, new Set(headers).size, wallet.signatures, await charged()], [2, 1, 1, 0])
})

test('a wallet without money is refused by the stock server with its reason', async () => {
  const { wallet, charged } = await openWallet()
  const { url } = await openSeller()
  const poor = walletOf({ ...(await shop.fund(0n)) })
  const result = await buy(url, poor, options())
  assert(result.outcome === 'refused')
  assert.match(result.code, /insufficient/)
  assert.deepEqual([wallet.signatures, await charged()], [0, 0])
})

test('a server that names a transaction without success leaves the outcome open', async () => {
  const { wallet } = await openWallet()
  const transaction = `0x${'ab'.repeat(32)}`
  const settlement = btoa(JSON.stringify({ success: false, errorReason: 'timed_out', transaction }))
  const { url } = await openSeller((header, response) =>
    header === undefined
      ? null
      : Boolean(response.writeHead(402, { 'payment-response': settlement }).end('{}')),
  )
  const result = await buy(url, wallet, options({ timeoutMs: 1_000 }))
  assert.deepEqual(result, { outcome: 'pending', transaction })
})

test('a payment never follows a redirect', async () => {
  const { wallet } = await openWallet()
  const other = await openSeller()
  const { url } = await openSeller((header, response) =>
    header === undefined ? null : Boolean(response.writeHead(307, { location: other.url }).end()),
  )
  const result = await buy(url, wallet, options())
  assert(result.outcome === 'refused')
  assert.deepEqual([result.code, other.seen.length], ['http_307', 0])
})

test('two calls for one purchase at once sign once; another id is another purchase', async () => {
  const { wallet, charged } = await openWallet()
  const { url } = await openSeller()
  const kept = new Map<string, string>()
  const results = await Promise.all([
    buy(url, wallet, options({ kept })),
    buy(url, wallet, options({ kept })),
  ])
  results.push(await buy({ url, id: 'again' }, wallet, options({ kept })))
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['paid', 'pending', 'paid'],
  )
  assert.deepEqual([wallet.signatures, await charged(), kept.size], [2, 2, 0])
})

test('a checkout is not bought, because pay() binds the signature to it', async () => {
  const { wallet } = await openWallet()
  await assert.rejects(
    buy(`https://shop.test/pay/ch_${'0'.repeat(28)}?x=1`, wallet, options()),
    /use pay\(\)/,
  )
})
