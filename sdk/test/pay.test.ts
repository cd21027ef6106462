/** An agent pays on a real chain. Whatever fails, it signs once, pays once, and never guesses the outcome. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Checkout, PaymentRequired } from '@farthing/sdk'
import { type EvmSigner, knownAssets, type PayOptions, pay, resume } from '@farthing/sdk/pay'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { networks } from '../../server/src/networks.ts'
import { isBoundTo } from '../../server/src/payments/nonces.ts'
import { newPayer, type Payer, wrap } from '../../server/test/support/chain/evm-payment.ts'
import { payTo } from '../../server/test/support/shop.ts'
import { until } from '../../server/test/support/until.ts'
import { openPaidStore, watchedFetch } from './support/shops.ts'

const shop = await openPaidStore()

async function create(priceAmount = '0.50'): Promise<Checkout> {
  return await shop.client.checkouts.create({ orderId: 'order-1', priceAmount, priceCurrency: 'USD' })
}

/** A wallet that counts its signatures. A viem account is an EvmSigner without any adapter. */
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
  return { ...payer, wallet: walletOf(payer) }
}

async function paidBy({ address }: Pick<Payer, 'address'>): Promise<bigint[]> {
  return (await shop.chain.transferLogs({ from: address, to: payTo })).map(({ args }) => args.value)
}

/** Replaces the server's answers, as a machine in the middle could. */
function answerInstead(
  change: (answer: Response, isPaid: boolean) => Promise<Response> | Response,
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    return await change(await fetch(request), request.headers.has('payment-signature'))
  }
}

test('an agent pays at checkoutUrl and at the API’s URL, with a nonce that is bound to the checkout', async () => {
  const { address, wallet } = await openWallet()
  const first = await create('0.50')
  const second = await create('0.25')
  for (const [url, id] of [
    [first.checkoutUrl, first.id],
    [`${shop.baseUrl}/api/v1/checkouts/${second.id}`, second.id],
  ] as const) {
    const result = await pay(url, wallet, { max: '0.50' })
    assert(result.outcome === 'paid', JSON.stringify(result))
    assert.deepEqual([result.checkout.id, result.checkout.status], [id, 'COMPLETED'])
    assert.deepEqual([result.payer, result.network], [address, 'eip155:31337'])
    const hash = result.transaction as `0x${string}`
    assert.equal((await shop.chain.client.getTransactionReceipt({ hash })).status, 'success')
    const [claimed] = await shop.ctx.db.query<{ nonce: `0x${string}` }>(
      'select nonce from authorizations where checkout_id = $1',
      [id],
    )
    assert(claimed && isBoundTo(claimed.nonce, id))
  }
  assert.deepEqual(await paidBy({ address }), [500_000n, 250_000n])
})

test('nothing above the limit is signed; exactly the limit is', async () => {
  const { address, wallet } = await openWallet()
  const { checkoutUrl } = await create('1.000001')
  const refused = await pay(checkoutUrl, wallet, { max: '1' })
  assert(refused.outcome === 'refused')
  assert.equal(refused.code, 'over_limit')
  assert.match(refused.detail, /1\.000001 USDC/)
  for (const max of ['', '-1', '1e3', '1.0000001', 'Infinity'])
    await assert.rejects(pay(checkoutUrl, wallet, { max }), TypeError, max)
  assert.equal(wallet.signatures, 0)
  assert.equal((await pay(checkoutUrl, wallet, { max: '1.000001' })).outcome, 'paid')
  assert.deepEqual(await paidBy({ address }), [1_000_001n])
})

test('approve sees the exact terms, and nothing is signed if it returns false', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl, id } = await create('0.30')
  const refused = await pay(checkoutUrl, wallet, {
    max: '1',
    approve(offer) {
      assert.deepEqual([offer.amount, offer.payTo, offer.checkoutId], ['0.30', payTo, id])
      assert.deepEqual([offer.asset.symbol, offer.asset.networkName], ['USDC', 'Local chain'])
      assert.deepEqual([offer.typedData?.message.value, offer.typedData?.message.to], [300_000n, payTo])
      return false
    },
  })
  assert(refused.outcome === 'refused')
  assert.equal(refused.code, 'declined')
  assert.equal(wallet.signatures, 0)
})

test('nothing is signed if the terms differ from the requested checkout', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl } = await create('0.50')
  const other = await create('0.50')
  type Accepted = PaymentRequired['accepts'][number]
  const each = (change: Partial<Accepted>) => (terms: PaymentRequired) => ({
    ...terms,
    accepts: terms.accepts.map((accepted) => ({ ...accepted, ...change })),
  })
  const lies: [string, (terms: PaymentRequired) => unknown, string][] = [
    [
      'another checkout',
      (terms) => ({ ...terms, resource: { ...terms.resource, url: other.checkoutUrl } }),
      'wrong_checkout',
    ],
    ['no resource', ({ resource: _, ...terms }) => terms, 'wrong_checkout'],
    ['another token', each({ asset: '0x4200000000000000000000000000000000000006' }), 'unknown_asset'],
    ['another chain', each({ network: 'eip155:1' }), 'unknown_asset'],
    ['another domain', each({ extra: { name: 'Dai', version: '2' } }), 'unknown_asset'],
    ['another scheme', each({ scheme: 'upto' as 'exact' }), 'unknown_asset'],
    ['no ways to pay', (terms) => ({ ...terms, accepts: [] }), 'unknown_asset'],
    ['a year to collect it', each({ maxTimeoutSeconds: 31_536_000 }), 'malformed_terms'],
    ['an invalid amount', each({ amount: '-5' }), 'malformed_terms'],
    ['more than the limit', each({ amount: '1000001' }), 'over_limit'],
    ['an invalid recipient', each({ payTo: 'the shop' }), 'malformed_terms'],
    ['a way to pay that is null', (terms) => ({ ...terms, accepts: [null] }), 'unknown_asset'],
    ['ways to pay that are not a list', (terms) => ({ ...terms, accepts: 'all' }), 'unknown_asset'],
  ]
  for (const [name, lie, code] of lies) {
    const lying = answerInstead(async (answer) =>
      Response.json(lie((await answer.json()) as PaymentRequired), { status: 402 }),
    )
    const result = await pay(checkoutUrl, wallet, { max: '1', fetch: lying })
    assert(result.outcome === 'refused', name)
    assert.deepEqual([name, result.code], [name, code])
  }
  assert.equal(wallet.signatures, 0)
})

test('unknown ways to pay are skipped', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl } = await create('0.50')
  const beside = answerInstead(async (answer, isPaid) => {
    if (isPaid) return answer
    const terms = (await answer.json()) as PaymentRequired
    const stranger = { scheme: 'exact', network: 'solana:x', asset: 'y', amount: '1', payTo: 'z', extra: {} }
    return Response.json({ ...terms, accepts: [stranger, 7, ...terms.accepts] }, { status: 402 })
  })
  assert.equal((await pay(checkoutUrl, wallet, { max: '1', fetch: beside })).outcome, 'paid')
})

test('after lost answers the same signature is submitted again and pays once', async () => {
  const { address, wallet } = await openWallet()
  const { checkoutUrl } = await create('0.20')
  let toLose = 3
  const { requests, fetch: losing } = watchedFetch(
    ({ headers }) => headers.has('payment-signature') && toLose-- > 0,
  )
  const result = await pay(checkoutUrl, wallet, { max: '1', fetch: losing })
  assert.equal(result.outcome, 'paid')
  const sent = requests.flatMap(({ headers }) => headers.get('payment-signature') ?? [])
  assert.deepEqual([sent.length, new Set(sent).size], [4, 1])
  assert.equal(wallet.signatures, 1)
  assert.deepEqual(await paidBy({ address }), [200_000n])
})

test('answers from a machine in the middle do not decide the outcome', async () => {
  const soon = { 'retry-after': '0' }
  const strangers = [
    () => new Response('<h1>Forbidden</h1>', { status: 403, headers: soon }),
    () => Response.json({ error: 'bad gateway' }, { status: 502, headers: soon }),
    () => Response.json({ code: 'rate_limited', detail: 'slow down' }, { status: 429, headers: soon }),
    () => new Response(null, { status: 302, headers: { ...soon, location: 'http://127.0.0.1:9/' } }),
    () => new Response('{"id":"ch_', { status: 200, headers: soon }),
    () => Response.json({ id: 'another', status: 'COMPLETED' }, { headers: soon }),
    () => Response.json({ status: 402 }, { status: 402, headers: soon }),
    () => Response.json({ code: 'something_new', detail: 'x' }, { status: 409, headers: soon }),
  ]
  const { address, wallet } = await openWallet()
  const { checkoutUrl } = await create('0.40')
  const count = strangers.length
  const lying = answerInstead((answer, isPaid) => (isPaid ? (strangers.shift()?.() ?? answer) : answer))
  const result = await pay(checkoutUrl, wallet, { max: '1', fetch: lying })
  assert.equal(result.outcome, 'paid')
  assert.deepEqual([count, strangers.length, wallet.signatures], [8, 0, 1])
  assert.deepEqual(await paidBy({ address }), [400_000n])
})

test('a payment never follows a redirect', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl } = await create()
  const modes: unknown[] = []
  const watched: typeof fetch = async (input, init) => {
    modes.push(init?.redirect)
    return await fetch(input, init)
  }
  assert.equal((await pay(checkoutUrl, wallet, { max: '1', fetch: watched })).outcome, 'paid')
  assert.deepEqual(new Set(modes), new Set(['manual']))
})

test('concurrent calls for one checkout result in one signature and one payment', async () => {
  const { address, wallet } = await openWallet()
  const { checkoutUrl } = await create('0.60')
  const results = await Promise.all(Array.from({ length: 10 }, () => pay(checkoutUrl, wallet, { max: '1' })))
  assert.deepEqual(new Set(results.map(({ outcome }) => outcome)), new Set(['paid']))
  assert.equal(wallet.signatures, 1)
  assert.deepEqual(await paidBy({ address }), [600_000n])
})

test('an unknown outcome is pending, and calling again never signs again', async (t) => {
  t.after(() => shop.chain.client.setIntervalMining({ interval: 1 }))
  const { address, wallet } = await openWallet()
  const { checkoutUrl, id } = await create('0.70')
  // No blocks, so nothing settles.
  await shop.chain.client.setIntervalMining({ interval: 0 })
  const abort = new AbortController()
  const kept = new Map<string, string>()
  const options: PayOptions = { max: '1', kept }
  const first = pay(checkoutUrl, wallet, { ...options, signal: abort.signal })
  await until(
    'the payment is claimed',
    async () => (await shop.client.checkouts.get(id)).status === 'PROCESSING',
  )
  abort.abort()
  const pending = await first
  assert(pending.outcome === 'pending')
  assert.deepEqual([...kept.values()], [pending.payment])

  // A program that has lost its state learns that a payment is in progress.
  const forgetful = await pay(checkoutUrl, wallet, { max: '1', kept: new Map(), timeoutMs: 0 })
  assert(forgetful.outcome === 'pending')
  assert.equal(forgetful.payment, null)

  await shop.chain.client.setIntervalMining({ interval: 1 })
  const paid = await pay(checkoutUrl, wallet, options)
  assert.equal(paid.outcome, 'paid')
  assert.equal(kept.size, 0)
  assert.deepEqual(await resume(checkoutUrl, pending.payment ?? '', {}), paid)
  assert.equal(wallet.signatures, 1)
  assert.deepEqual(await paidBy({ address }), [700_000n])
})

test('a refused payment says why, is kept while it could be used, and the same one pays once it can succeed', async () => {
  const payer = newPayer()
  const wallet = walletOf(payer)
  const { checkoutUrl } = await create('0.80')
  const kept = new Map<string, string>()
  const refused = await pay(checkoutUrl, wallet, { max: '1', kept })
  assert(refused.outcome === 'refused')
  assert.deepEqual([refused.code, refused.charged], ['invalid_exact_evm_insufficient_balance', null])
  assert.match(refused.detail, /not hold enough/)
  assert.equal(kept.size, 1)
  assert(Date.parse(refused.signedUntil ?? '') > Date.now())
  await shop.chain.mint(payer.address, 1_000_000n)
  assert.equal((await pay(checkoutUrl, wallet, { max: '1', kept })).outcome, 'paid')
  assert.equal(wallet.signatures, 1)
  assert.equal(kept.size, 0)
  assert.deepEqual(await paidBy(payer), [800_000n])
})

test('a smart wallet that wraps its signature (ERC-6492) is told if it is not deployed, and pays once it is', async () => {
  const owner = newPayer()
  const { address, ...wrapper } = await shop.chain.foresee(owner.address)
  await shop.chain.mint(address, 1_000_000n)
  const key = walletOf(owner)
  const wallet: EvmSigner = {
    address,
    signTypedData: async (typedData) => wrap((await key.signTypedData(typedData)) as Hex, wrapper),
  }
  const { checkoutUrl } = await create('0.80')
  const refused = await pay(checkoutUrl, wallet, { max: '1' })
  assert(refused.outcome === 'refused')
  assert.equal(refused.code, 'invalid_exact_evm_payload_undeployed_smart_wallet')
  assert.match(refused.detail, /not deployed on this network/)
  await shop.chain.perform({ to: wrapper.factory, data: wrapper.calldata })
  assert.equal((await pay(checkoutUrl, wallet, { max: '1' })).outcome, 'paid')
  assert.deepEqual(await paidBy({ address }), [800_000n])
})

test('a payment that arrived without completing the checkout is returned as charged', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl } = await create()
  const charged = { id: 'pay_1', disposition: 'overpaid' }
  const late = answerInstead((answer, isPaid) =>
    isPaid
      ? Response.json(
          { code: 'payment_not_applied', detail: 'It is overpaid.', payment: charged },
          { status: 409 },
        )
      : answer,
  )
  const result = await pay(checkoutUrl, wallet, { max: '1', fetch: late })
  assert(result.outcome === 'refused')
  const { signedUntil, ...told } = result
  assert.deepEqual(told, {
    outcome: 'refused',
    code: 'payment_not_applied',
    detail: 'It is overpaid.',
    charged,
  })
  assert(Date.parse(signedUntil ?? '') > Date.now())
})

test('a checkout that refuses every signature gets one until that has expired, then another', async () => {
  const wallet = walletOf(newPayer())
  const { checkoutUrl } = await create('0.85')
  const kept = new Map<string, string>()
  for (let i = 0; i < 3; i++)
    assert.equal((await pay(checkoutUrl, wallet, { max: '1', kept })).outcome, 'refused')
  assert.equal(wallet.signatures, 1)
  const [url = '', payment = ''] = [...kept].flat()
  const header = JSON.parse(atob(payment))
  header.payload.authorization.validBefore = `${Math.floor(Date.now() / 1_000) - 61}`
  kept.set(url, btoa(JSON.stringify(header)))
  const expired = await pay(checkoutUrl, wallet, { max: '1', kept })
  assert(expired.outcome === 'refused')
  assert(Date.parse(expired.signedUntil ?? '') < Date.now())
  assert.equal(kept.size, 0)
  await pay(checkoutUrl, wallet, { max: '1', kept })
  assert.equal(wallet.signatures, 2)
})

test('nothing is signed for a checkout that is paid, canceled or unknown', async () => {
  const [rich, late] = [await openWallet(), await openWallet()]
  const { checkoutUrl } = await create('0.10')
  await pay(checkoutUrl, rich.wallet, { max: '1' })
  const paid = await pay(checkoutUrl, late.wallet, { max: '1' })
  assert(paid.outcome === 'paid')
  assert.equal(paid.payer, rich.address)

  const canceled = await create()
  await shop.client.checkouts.cancel(canceled.id)
  const none = checkoutUrl.replace(/.{26}$/, '0'.repeat(26))
  for (const [url, code] of [
    [canceled.checkoutUrl, 'checkout_canceled'],
    [none, 'not_found'],
  ] as const) {
    const result = await pay(url, late.wallet, { max: '1' })
    assert(result.outcome === 'refused')
    assert.deepEqual([result.code, result.charged], [code, null])
  }
  await assert.rejects(pay(`${shop.baseUrl}/pay/order-1`, late.wallet, { max: '1' }), TypeError)
  assert.equal(late.wallet.signatures, 0)
})

test('an unreachable server throws, and nothing is signed', async () => {
  const { wallet } = await openWallet()
  const { checkoutUrl } = await create()
  const { fetch: losing } = watchedFetch(() => true)
  const options = { max: '1', timeoutMs: 0, fetch: losing }
  await assert.rejects(pay(checkoutUrl, wallet, options), { name: 'FarthingError', code: 'no_answer' })
  assert.equal(wallet.signatures, 0)
})

test('the SDK knows exactly the tokens that the server accepts', () => {
  const offered = networks.flatMap(({ caip2, name, family, assets }) =>
    family === 'EVM' ? assets.map((asset) => ({ ...asset, network: caip2, networkName: name })) : [],
  )
  assert.deepEqual(
    knownAssets.filter(({ network }) => network.startsWith('eip155:')),
    offered,
  )
})
