import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  domainSeparator as domainSeparatorOf,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  parseAbi,
  toEventSelector,
  verifyTypedData,
} from 'viem'
import {
  type Authorization,
  authorizationStateCalldata,
  type Domain,
  digest,
  domainSeparator,
  topics,
  transferCalldata,
} from './eip3009.ts'
import { recoverSigner, signDigest } from './recover.ts'

const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
])
const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

const hex = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(toHex)
const uint = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n })
const anyUint = fc.oneof(
  uint,
  fc.bigInt({ min: 0n, max: 10n ** 12n }),
  fc.constantFrom(2n ** 64n - 1n, 2n ** 64n),
)
const anyAuthorization: fc.Arbitrary<Authorization> = fc.record({
  from: hex(20),
  to: hex(20),
  value: anyUint,
  validAfter: anyUint,
  validBefore: anyUint,
  nonce: hex(32),
})
const anyDomain: fc.Arbitrary<Domain> = fc.record({
  name: fc.oneof(fc.constantFrom('USDC', 'USD Coin', ''), fc.string({ unit: 'grapheme' })),
  // viem takes an empty version for none.
  version: fc.oneof(fc.constantFrom('1', '2'), fc.string({ minLength: 1 })),
  chainId: fc.oneof(fc.nat(), fc.bigInt({ min: 0n, max: 2n ** 53n })),
  verifyingContract: hex(20),
})
const usdc: Domain = {
  name: 'USD Coin',
  version: '2',
  chainId: 8453,
  verifyingContract: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
}
const some: Authorization = {
  from: `0x${'11'.repeat(20)}`,
  to: `0x${'22'.repeat(20)}`,
  value: 1n,
  validAfter: 0n,
  validBefore: 2n ** 256n - 1n,
  nonce: `0x${'33'.repeat(32)}`,
}

test('the digest is the one viem hashes, thousands of times', () => {
  fc.assert(
    fc.property(anyDomain, anyAuthorization, (domain, authorization) => {
      const typedData = {
        domain: { ...domain, chainId: BigInt(domain.chainId) },
        types,
        message: authorization,
      }
      const expected = hashTypedData({ ...typedData, primaryType: 'TransferWithAuthorization' })
      assert.equal(toHex(digest(domain, authorization)), expected)
      assert.equal(toHex(digest({ ...domain }, { ...authorization })), expected)
    }),
    { numRuns: 3000 },
  )
})

test('the domain separator of USDC on Base is the one its contract answers', () => {
  const published = '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f'
  assert.equal(toHex(domainSeparator(usdc)), published)
})

test('no two domains are taken for each other, however their parts run together', () => {
  const names = ['', ':', '1', '1:', ':1', '2:1', '1:2:1']
  const domains = names.flatMap((name) =>
    names.slice(1).flatMap((version) => [1, 11, 12n].map((chainId) => ({ ...usdc, name, version, chainId }))),
  )
  for (let round = 0; round < 2; round++)
    for (const domain of domains) {
      const expected = domainSeparatorOf({ domain: { ...domain, chainId: BigInt(domain.chainId) } })
      assert.equal(toHex(domainSeparator(domain)), expected)
    }
})

test('viem finds the signature valid over the digest, and the recovered signer is the payer', async () => {
  await fc.assert(
    fc.asyncProperty(
      anyDomain,
      anyAuthorization,
      fc.bigInt({ min: 1n, max: 2n ** 255n }),
      async (domain, any, key) => {
        const privateKey = Buffer.from(key.toString(16).padStart(64, '0'), 'hex')
        const sign = (bytes: Uint8Array) => {
          const { r, s, yParity } = signDigest(bytes, privateKey)
          return Buffer.from(`${r.slice(2)}${s.slice(2)}${yParity === 0 ? '1b' : '1c'}`, 'hex')
        }
        const from = recoverSigner(new Uint8Array(32), sign(new Uint8Array(32)))?.address
        assert(from)
        const message = { ...any, from }
        const signature = sign(digest(domain, message))
        assert.equal(recoverSigner(digest(domain, message), signature)?.address, from)
        const typedData = { types, primaryType: 'TransferWithAuthorization', message } as const
        assert(
          await verifyTypedData({
            ...typedData,
            domain: { ...domain, chainId: BigInt(domain.chainId) },
            address: from,
            signature: toHex(signature),
          }),
        )
      },
    ),
    { numRuns: 200 },
  )
})

test('every field is signed: changing one changes the digest', () => {
  const changed: Partial<Authorization>[] = [
    { from: some.to },
    { to: some.from },
    { value: 2n },
    { validAfter: 1n },
    { validBefore: 5n },
    { nonce: `0x${'34'.repeat(32)}` },
  ]
  const digests = [some, ...changed.map((change) => ({ ...some, ...change }))].map((a) =>
    toHex(digest(usdc, a)),
  )
  for (const change of [{ name: 'USDC' }, { version: '1' }, { chainId: 1 }, { verifyingContract: some.from }])
    digests.push(toHex(digest({ ...usdc, ...change }, some)))
  assert.equal(new Set(digests).size, digests.length)
})

test('what does not fit its field is refused, and leaves nothing behind for the next digest', () => {
  const before = toHex(digest(usdc, some))
  const wrong = [
    { from: '0x11' },
    { from: `0x${'11'.repeat(21)}` },
    { from: `0x${'11'.repeat(19)}zz` },
    { from: `zz${'11'.repeat(20)}` },
    { to: '' },
    { value: -1n },
    { value: 2n ** 256n },
    { validAfter: -(2n ** 64n) },
    { validBefore: 2n ** 300n },
    { nonce: `0x${'33'.repeat(31)}3` },
    { nonce: `0x${'33'.repeat(31)}3g` },
    { nonce: `0x${'33'.repeat(33)}` },
  ] as Partial<Authorization>[]
  for (const change of wrong) {
    assert.throws(() => digest(usdc, { ...some, ...change }), Object.keys(change)[0])
    assert.throws(() => transferCalldata({ ...some, ...change }, '0x'))
    assert.equal(toHex(digest(usdc, some)), before)
  }
  assert.throws(() => domainSeparator({ ...usdc, verifyingContract: '0x11' }))
  assert.throws(() => domainSeparator({ ...usdc, chainId: 1.5 }))
})

test('the calldata is the one viem encodes, and the marker stands behind it', () => {
  fc.assert(
    fc.property(
      anyAuthorization,
      fc.uint8Array({ maxLength: 200 }).map(toHex),
      hex(16),
      (a, signature, marker) => {
        const args = [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature] as const
        const expected = encodeFunctionData({ abi, functionName: 'transferWithAuthorization', args })
        assert.equal(transferCalldata(a, signature), expected)
        assert.equal(transferCalldata(a, signature, marker), `${expected}${marker.slice(2)}`)
        const state = encodeFunctionData({ abi, functionName: 'authorizationState', args: [a.from, a.nonce] })
        assert.equal(authorizationStateCalldata(a.from, a.nonce), state)
      },
    ),
    { numRuns: 1000 },
  )
})

test('a marker is 16 bytes, and signatures are whole bytes of hex', () => {
  for (const marker of [`0x${'00'.repeat(15)}`, `0x${'00'.repeat(17)}`, `0x${'0g'.repeat(16)}`] as const)
    assert.throws(() => transferCalldata(some, '0x', marker))
  for (const signature of ['', '0x1', '0xzz', '1234'])
    assert.throws(() => transferCalldata(some, signature as Hex), signature)
})

test('the topics are those of the events', () => {
  assert.deepEqual(topics, {
    authorizationUsed: toEventSelector('AuthorizationUsed(address,bytes32)'),
    authorizationCanceled: toEventSelector('AuthorizationCanceled(address,bytes32)'),
    transfer: toEventSelector('Transfer(address,address,uint256)'),
  })
})

function toHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
