/**
 * Smart wallets wrap their signatures by ERC-6492, some even when they are deployed. The wrapper is chosen by whoever
 * presents the payment: it changes nothing about who pays what, and nobody acts on it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Address,
  concat,
  encodeFunctionData,
  type Hex,
  pad,
  parseSignature,
  serializeCompactSignature,
  signatureToCompactSignature,
  size,
  slice,
  toHex,
} from 'viem'
import { attackerAbi, tokenAbi } from '../../support/chain/evm.ts'
import { newPayer, type Payer, type Wrapper, wrap } from '../../support/chain/evm-payment.ts'
import { dumpRows } from '../../support/dump.ts'
import { openFaultyNode } from '../../support/faulty-node.ts'
import { openShop, payTo } from '../../support/shop.ts'
import { alter, assertPaid, assertRefused, decode, eventsOf, untilReady } from '../../support/watch.ts'

const magic: Hex = `0x${'6492'.repeat(16)}`
const undeployed = 'invalid_exact_evm_payload_undeployed_smart_wallet'

const node = await openFaultyNode('')
const shop = await openShop({ worker: false, settings: { LOCAL_RPC_URLS: node.url } })
node.target = shop.chain.url
/** Everything that the service has sent to its node. */
let sent = ''
node.choose = (calls) => {
  sent += JSON.stringify(calls).toLowerCase()
  return null
}
shop.startWork()
await untilReady(shop)

const rewrite = (header: string, change: (signature: Hex) => Hex): string =>
  alter(header, ({ payload }) => Object.assign(payload, { signature: change(payload.signature as Hex) }))
const signatureOf = (header: string) => decode(header).payload.signature as Hex

/** A deployed wallet with five dollars. */
async function openWallet(): Promise<{ owner: Payer; from: Address }> {
  const owner = newPayer()
  const from = await shop.chain.deploy('OwnedWallet', [owner.address])
  await shop.chain.mint(from, 5_000_000n)
  return { owner, from }
}

async function storedSignatures(payer: Address): Promise<Hex[]> {
  const rows = await shop.ctx.db.query<{ signature: Hex }>(
    `select '0x' || encode(signature, 'hex') as signature from authorizations where payer = $1`,
    [payer.toLowerCase()],
  )
  return rows.map(({ signature }) => signature)
}

/** Asserts that nothing of a wrapper is in the database or was sent to a node. */
async function assertDropped(...parts: readonly Hex[]): Promise<void> {
  const kept = (await dumpRows(shop.ctx.db)).toLowerCase()
  for (const part of [...parts, magic]) {
    const text = part.slice(2).toLowerCase()
    assert(!kept.includes(text), `${part} is in the database`)
    assert(!sent.includes(text), `${part} was sent to a node`)
  }
}

test('a deployed wallet that wraps its signature pays, and only the signature inside is stored and sent', async () => {
  const { owner, from } = await openWallet()
  const id = await shop.create()
  const bare = await shop.sign(id, owner, { from })
  const wrapper = { factory: newPayer().address, calldata: toHex('a call that would create this wallet') }
  const paid = await shop.pay(
    id,
    rewrite(bare, (signature) => wrap(signature, wrapper)),
  )
  assertPaid(paid)
  assert.equal(shop.settlementOf(paid).payer, from)
  assert.equal(await shop.chain.balance(from), 4_000_000n)
  assert.deepEqual(await storedSignatures(from), [signatureOf(bare)])
  await assertDropped(wrapper.factory, wrapper.calldata)
})

test('an ordinary wallet’s signature, of 65 or 64 bytes, pays in a wrapper as it does without', async () => {
  const compact = (signature: Hex) =>
    serializeCompactSignature(signatureToCompactSignature(parseSignature(signature)))
  for (const form of [(signature: Hex) => signature, compact]) {
    const payer = await shop.fund()
    const id = await shop.create()
    const bare = await shop.sign(id, payer)
    assertPaid(
      await shop.pay(
        id,
        rewrite(bare, (signature) => wrap(form(signature))),
      ),
    )
    assert.equal(await shop.chain.balance(payer.address), 999_000_000n)
    assert.deepEqual(await storedSignatures(payer.address), [signatureOf(bare)])
  }
})

test('a wrapper makes nobody’s signature good: a stranger’s is refused, whoever is said to have deployed the wallet', async () => {
  const { from } = await openWallet()
  const stranger = newPayer()
  const others = await shop.chain.foresee(stranger.address)
  const id = await shop.create()
  const header = rewrite(await shop.sign(id, stranger, { from }), (signature) => wrap(signature, others))
  assertRefused(shop, await shop.pay(id, header), 'invalid_exact_evm_signature')
  assert.equal(await shop.chain.balance(from), 5_000_000n)
  await assertDropped(others.calldata)
})

const orders: readonly (readonly [string, (bare: string) => readonly string[]])[] = [
  ['wrapped, then bare', (bare) => [rewrite(bare, wrap), bare]],
  ['bare, then wrapped', (bare) => [bare, rewrite(bare, wrap)]],
  [
    'in two wrappers',
    (bare) =>
      [1, 2].map((i) =>
        rewrite(bare, (signature) => wrap(signature, { factory: payTo, calldata: toHex(i) })),
      ),
  ],
]

for (const [how, presentations] of orders)
  test(`a payment that is presented ${how} is one payment: the same answer, one charge, one claim`, async () => {
    const { owner, from } = await openWallet()
    const id = await shop.create()
    const [first = '', second = ''] = presentations(await shop.sign(id, owner, { from }))
    const answers = [await shop.pay(id, first), await shop.pay(id, second), await shop.pay(id, first)]
    for (const answer of answers) assertPaid(answer)
    const [one, ...more] = answers.map((answer) => shop.settlementOf(answer))
    for (const other of more) assert.deepEqual(other, one)
    assert.equal(await shop.chain.balance(from), 4_000_000n)
    assert.equal((await storedSignatures(from)).length, 1)
    assert.equal((await eventsOf(shop, id)).filter(({ type }) => type === 'checkout.processing').length, 1)
    const other = await shop.create()
    for (const header of [first, second]) {
      const elsewhere = await shop.pay(other, header)
      assert.equal(elsewhere.json().code, 'authorization_used', elsewhere.body)
    }
  })

test('a payment that is presented bare and wrapped at once, under one payment-identifier, is one payment', async () => {
  const { owner, from } = await openWallet()
  const id = await shop.create()
  const bare = alter(await shop.sign(id, owner, { from }), (payload) =>
    Object.assign(payload, {
      extensions: { 'payment-identifier': { info: { id: 'order_0000000000000001' } } },
    }),
  )
  const headers = [bare, rewrite(bare, wrap), bare, rewrite(bare, wrap)]
  const answers = await Promise.all(headers.map((header) => shop.pay(id, header)))
  for (const answer of answers) assertPaid(answer)
  assert.equal(new Set(answers.map((answer) => shop.settlementOf(answer).transaction)).size, 1)
  assert.equal(await shop.chain.balance(from), 4_000_000n)
  assert.deepEqual(await storedSignatures(from), [signatureOf(bare)])
})

test('a wallet that is not deployed is told so, nobody deploys it, and the same payment pays as soon as it is', async () => {
  const owner = newPayer()
  const { address: from, ...wrapper } = await shop.chain.foresee(owner.address)
  await shop.chain.mint(from, 5_000_000n)
  const id = await shop.create()
  const header = rewrite(await shop.sign(id, owner, { from }), (signature) => wrap(signature, wrapper))
  const refused = await shop.pay(id, header)
  assertRefused(shop, refused, undeployed)
  const { errorMessage = '' } = shop.settlementOf(refused)
  assert.match(errorMessage, new RegExp(`no wallet is deployed at ${from} on Local chain`))
  assert.match(errorMessage, /Nothing was charged/)
  await assertDropped(wrapper.calldata)
  assert.equal(await shop.chain.client.getCode({ address: from }), undefined)
  assert.equal((await shop.read(id)).status, 'OPEN')

  await shop.chain.perform({ to: wrapper.factory, data: wrapper.calldata })
  assertPaid(await shop.pay(id, header))
  assert.equal(await shop.chain.balance(from), 4_000_000n)
})

test('a signature that no key makes, from an address without code, is that of a wallet that is not deployed', async () => {
  const from = newPayer().address
  const id = await shop.create()
  const bare = await shop.sign(id, newPayer(), { from })
  assertRefused(
    shop,
    await shop.pay(
      id,
      rewrite(bare, (signature) => concat([signature, signature])),
    ),
    undeployed,
  )
  assertRefused(shop, await shop.pay(id, bare), 'invalid_exact_evm_signature')
})

test('whatever a wrapper says would deploy the wallet is not run: neither another wallet nor a call that drains', async () => {
  const [owner, thief] = [newPayer(), newPayer()]
  const victim = await shop.fund()
  const { address: from } = await shop.chain.foresee(owner.address)
  await shop.chain.mint(from, 5_000_000n)
  const attacker = await shop.chain.deploy('Attacker')
  const toThief = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [thief.address, 1n] })
  const wrappers: readonly Wrapper[] = [
    await shop.chain.foresee(thief.address),
    { factory: shop.chain.token, calldata: toThief },
    {
      factory: attacker,
      calldata: encodeFunctionData({
        abi: attackerAbi,
        functionName: 'run',
        args: [[{ target: shop.chain.token, data: toThief }]],
      }),
    },
    { factory: from, calldata: toHex('anything') },
    { factory: `0x${'00'.repeat(20)}`, calldata: toHex('or another thing') },
  ]
  const id = await shop.create()
  for (const wrapper of wrappers) {
    const header = rewrite(await shop.sign(id, owner, { from }), (signature) => wrap(signature, wrapper))
    assertRefused(shop, await shop.pay(id, header), undeployed)
    await assertDropped(wrapper.calldata)
  }
  assert.equal(await shop.chain.client.getCode({ address: from }), undefined)
  assert.deepEqual(
    [await shop.chain.balance(from), await shop.chain.balance(victim.address)],
    [5_000_000n, 1_000_000_000n],
  )
})

const cut = (wrapped: Hex, from: number, to: number, put: Hex): Hex =>
  concat([slice(wrapped, 0, from), put, slice(wrapped, to)])
const word = (value: number): Hex => pad(toHex(value), { size: 32 })

const malformed: Readonly<Record<string, (signature: Hex) => Hex>> = {
  'a wrapper in a wrapper': (signature) => wrap(wrap(signature)),
  'a wrapper in a wrapper of another factory': (signature) =>
    wrap(wrap(signature, { factory: payTo, calldata: '0x00' })),
  'magic bytes at the end of what is inside': (signature) => wrap(concat([signature, magic])),
  'nothing inside': () => wrap('0x'),
  'more inside than a signature may have': () => wrap(`0x${'ab'.repeat(4_097)}`),
  'calldata longer than a signature may be': (signature) =>
    wrap(signature, { factory: payTo, calldata: `0x${'ab'.repeat(4_096)}` }),
  'magic bytes alone': () => magic,
  'a signature and magic bytes': (signature) => concat([signature, magic]),
  'a cut wrapper': (signature) => concat([slice(wrap(signature), 0, 160), magic]),
  'an offset to the outside': (signature) => cut(wrap(signature), 64, 96, word(65_536)),
  'an offset of all ones': (signature) => cut(wrap(signature), 64, 96, `0x${'ff'.repeat(32)}`),
  'both offsets to one place': (signature) => cut(wrap(signature), 64, 96, word(96)),
  'offsets into each other': (signature) => cut(wrap(signature), 32, 64, word(64)),
  'a length beyond the end': (signature) => {
    const wrapped = wrap(signature)
    return cut(wrapped, size(wrapped) - 160, size(wrapped) - 128, word(4_000))
  },
  'bytes that nobody reads': (signature) => concat([slice(wrap(signature), 0, -32), word(7), magic]),
  'a factory longer than an address': (signature) => cut(wrap(signature), 0, 12, `0x${'11'.repeat(12)}`),
}

test('a wrapper that is nested, empty, too long or not what abi.encode writes gets 400 with the terms, and no node is asked', async () => {
  const { owner, from } = await openWallet()
  const id = await shop.create()
  const bare = await shop.sign(id, owner, { from })
  const before = sent.length
  for (const [what, make] of Object.entries(malformed)) {
    const answer = await shop.pay(id, rewrite(bare, make))
    assert.equal(answer.statusCode, 400, what)
    assert.equal(answer.json().code, 'malformed_payment', what)
    assert.match(answer.json().detail, /payload\.signature must/, what)
    assert(answer.headers['payment-required'], what)
    assert(!sent.slice(before).includes(from.slice(2).toLowerCase()), `a node was asked about ${what}`)
  }
  assertPaid(await shop.pay(id, bare))
  assert.equal(await shop.chain.balance(from), 4_000_000n)
})
