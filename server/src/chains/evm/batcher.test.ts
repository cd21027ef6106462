import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { batchCalldata, batcher, isPackable, type Packed, readBatchCalldata } from './batcher.ts'
import { transferCalldata } from './eip3009.ts'
import { aggregateCalldata, multicall } from './multicall.ts'
import { readCalls } from './read-calls.ts'

const hex = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`)
const below = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n })
const anySignature = fc
  .record({ r: hex(32), s: below(255n), v: fc.constantFrom('1b', '1c') })
  .map(({ r, s, v }): Hex => `${r}${s.toString(16).padStart(64, '0')}${v}`)
// Few tokens and recipients, so that groups of several occur.
const [tokens, recipients] = [fc.sample(hex(20), 2), fc.sample(hex(20), 3)]
const plain = { noNullPrototype: true } as const
const anyPayment: fc.Arbitrary<Packed> = fc.record(
  {
    asset: fc.constantFrom(...tokens),
    authorization: fc.record(
      {
        from: hex(20),
        to: fc.constantFrom(...recipients),
        value: below(96n),
        validAfter: below(40n),
        validBefore: below(40n),
        nonce: hex(32),
      },
      plain,
    ),
    signature: anySignature,
    marker: fc.option(hex(16).filter((marker) => BigInt(marker) !== 0n)),
  },
  plain,
)
const anyBatch = fc.array(anyPayment, { maxLength: 12 })
const anyLimit = below(32n)

const byGroup = (payments: readonly Packed[]) => [
  ...Map.groupBy(payments, ({ asset, authorization }) => `${asset} ${authorization.to}`).values(),
]

test('what is written for the batcher is read back, group by group', () => {
  fc.assert(
    fc.property(anyBatch, anyLimit, (payments, limit) => {
      assert.deepEqual(readBatchCalldata(batchCalldata(payments, limit)), byGroup(payments).flat())
    }),
  )
})

test('a payment takes 154 bytes, and each token and recipient 42 bytes more', () => {
  fc.assert(
    fc.property(anyBatch, anyLimit, (payments, limit) => {
      const bytes = (batchCalldata(payments, limit).length - 2) / 2
      assert.equal(bytes, 4 + 42 * byGroup(payments).length + 154 * payments.length)
    }),
  )
})

test('a batch that is cut short or continues is not read', () => {
  fc.assert(
    fc.property(anyPayment, fc.nat(), (payment, cut) => {
      const data = batchCalldata([payment], 1n)
      const length = 2 + 2 * (cut % ((data.length - 2) / 2))
      // The gas limit alone is a batch of nothing.
      if (length !== 10) assert.equal(readBatchCalldata(data.slice(0, length) as Hex), null)
      assert.equal(readBatchCalldata(`${data}00`), null)
    }),
  )
})

test('a payment that does not fit the form is recognised, and never written wrongly', () => {
  fc.assert(
    fc.property(anyPayment, fc.nat({ max: 4 }), (payment, which) => {
      assert(isPackable(payment))
      const { authorization, signature } = payment
      const large: Partial<typeof authorization>[] = [
        { value: 2n ** 96n },
        { validAfter: 2n ** 40n },
        { validBefore: 2n ** 40n },
      ]
      const s = (BigInt(`0x${signature.slice(66, 130)}`) | (1n << 255n)).toString(16)
      const wrong: Packed = {
        ...payment,
        authorization: { ...authorization, ...large[which] },
        ...(which === 3 && { signature: `${signature.slice(0, 66)}${s}1b` as Hex }),
        ...(which === 4 && { signature: signature.slice(0, -2) as Hex }),
      }
      assert(!isPackable(wrong))
      assert.throws(() => batchCalldata([wrong], 1n))
    }),
  )
})

test('markers, payers, nonces and signatures are read alike from every form that was ever sent', () => {
  fc.assert(
    fc.property(fc.array(anyPayment, { minLength: 1, maxLength: 5 }), (payments) => {
      const [first] = payments
      assert(first)
      const expected = payments.map(({ authorization: { from, nonce }, signature, marker }) => ({
        payer: from,
        nonce,
        signature,
        marker,
      }))
      const calls = payments.map(({ asset, authorization, signature, marker }) => ({
        target: asset,
        callData: transferCalldata(authorization, signature, marker ?? '0x'),
      }))
      const toBatcher = readCalls({ to: batcher, data: batchCalldata(payments, 1n) })
      assert.deepEqual(new Set(toBatcher), new Set(expected))
      assert.deepEqual(readCalls({ to: multicall, data: aggregateCalldata(calls) }), expected)
      const alone = readCalls({ to: first.asset as Hex, data: calls[0]?.callData ?? '0x' })
      assert.deepEqual(alone, expected.slice(0, 1))
    }),
  )
})

test('calls that no lane ever sent read as none', () => {
  const abi = parseAbi(['function getBlockNumber() view returns (uint256)'])
  const foreign = encodeFunctionData({ abi })
  for (const to of [batcher, multicall, `0x${'11'.repeat(20)}`] as const)
    assert.deepEqual(readCalls({ to, data: foreign }), [])
  assert.deepEqual(readCalls({ to: batcher, data: '0x' }), [])
})
