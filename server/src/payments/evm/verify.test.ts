import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openCount, runs } from '../../../test/support/full.ts'
import { openChain } from '../../chains/evm/chain.ts'
import type { Hex } from '../../chains/hex.ts'
import { networks } from '../../networks.ts'
import { makeBoundNonce } from '../nonces.ts'
import type { EvmPayment } from '../payload.ts'
import type { Offer } from '../rail.ts'
import { type EvmVerifier, findMismatch } from './verify.ts'

const checkoutId = `ch_00${'0'.repeat(26)}`
const [network = assert.fail()] = networks.filter(({ family }) => family === 'EVM')
assert(network.family === 'EVM')
const [{ address = assert.fail() } = {}] = network.assets
const asset = address.toLowerCase() as Hex
const payTo: Hex = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
const now = new Date('2026-01-01T12:00:00.500Z')
const seconds = BigInt(Math.floor(now.getTime() / 1_000))
const offers = [{ network: network.caip2, asset: address, payTo, amount: '1000000' } as Offer]
/** findMismatch only compares terms and must not query a node. */
const verifier: EvmVerifier = {
  chain: openChain(network, [{ provider: 'none', url: 'http://127.0.0.1:9' }], () => now),
  simulate: () => assert.fail(),
  hasCode: () => assert.fail(),
}

/** Mostly the right value, sometimes a wrong one close to it. */
function near<T>(right: T, ...wrong: T[]): fc.Arbitrary<{ value: T; isRight: boolean }> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constant({ value: right, isRight: true }) },
    { weight: 1, arbitrary: fc.constantFrom(...wrong).map((value) => ({ value, isRight: false })) },
  )
}

const boundTo = (id: string) => makeBoundNonce(id, new Uint8Array(12).fill(7))
const number = network.caip2.replace('eip155:', '')
const terms = fc.record({
  scheme: near('exact', 'Exact', 'upto', ''),
  network: near(
    network.caip2,
    ...['eip155:1', `eip155:0${number}`, `EIP155:${number}`, `${network.caip2} `, number, 'base', 'eip155:'],
  ),
  asset: near<Hex>(asset, `0x${'11'.repeat(20)}`, payTo, `${asset}00`),
  to: near<Hex>(payTo.toLowerCase() as Hex, asset, `0x${'00'.repeat(20)}`),
  value: near(1_000_000n, 999_999n, 1_000_001n, 0n, 1n, 2n ** 256n - 1n),
  nonce: near<Hex>(
    boundTo(checkoutId),
    ...Array.from({ length: 5 }, (_, i) => boundTo(`ch_00${String(i + 1).repeat(26)}`)),
  ),
})
const window = fc.record({
  after: fc.oneof(fc.bigInt({ min: -400n, max: 400n }), fc.constantFrom(-1n, 0n, 1n)),
  before: fc.oneof(fc.bigInt({ min: -400n, max: 400n }), fc.constantFrom(9n, 10n, 11n, 359n, 360n, 361n)),
})

function paymentOf(given: {
  scheme?: string
  network?: string
  asset?: Hex
  to?: Hex
  value?: bigint
  nonce?: Hex
  after?: bigint
  before?: bigint
}): EvmPayment {
  const { scheme = 'exact', to = payTo.toLowerCase() as Hex, value = 1_000_000n } = given
  const from: Hex = `0x${'22'.repeat(20)}`
  const nonce: Hex = given.nonce ?? `0x${'33'.repeat(32)}`
  return {
    family: 'EVM',
    scheme,
    network: given.network ?? network?.caip2 ?? '',
    asset: given.asset ?? asset,
    payer: from,
    nonce,
    identifier: null,
    signature: '0x00',
    hasContractForm: false,
    authorization: {
      from,
      to,
      value,
      nonce,
      validAfter: seconds + (given.after ?? -1n),
      validBefore: seconds + (given.before ?? 100n),
    },
  }
}

test('a payment matches if and only if its scheme, network, token, payee, amount and bound checkout were offered', (t) => {
  const count = openCount('payments')
  fc.assert(
    fc.property(terms, ({ scheme, network, asset, to, value, nonce }) => {
      const all = [scheme, network, asset, to, value, nonce]
      const payment = paymentOf({
        scheme: scheme.value,
        network: network.value,
        asset: asset.value,
        to: to.value,
        value: value.value,
        nonce: nonce.value,
      })
      const isRight = all.every((term) => term.isRight)
      count.add()
      if (isRight) count.add('right')
      assert.equal(findMismatch(verifier, checkoutId, offers, payment, now) === null, isRight)
    }),
    runs(5_000, 1_000_000),
  )
  count.say(t)
})

test('a window is accepted if and only if the token would accept it from 1 to 9 seconds from now and it ends within 360 seconds', (t) => {
  const count = openCount('windows')
  fc.assert(
    fc.property(window, ({ after, before }) => {
      // The token requires the block's time to be strictly between the two. The next block comes at least a second from
      // now.
      const isOpen = (second: bigint) => after < second && second < before
      const isGood = isOpen(1n) && isOpen(9n) && before <= 360n
      count.add()
      if (isGood) count.add('taken')
      const payment = paymentOf({ after, before })
      assert.equal(findMismatch(verifier, checkoutId, offers, payment, now) === null, isGood)
    }),
    runs(5_000, 1_000_000),
  )
  count.say(t)
})
