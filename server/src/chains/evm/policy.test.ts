import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decodeFunctionData, encodeFunctionData, type Hex, parseAbi } from 'viem'
import { networks } from '../../networks.ts'
import { toCall } from '../../payments/evm/choose.ts'
import type { Authorized } from '../../payments/rows.ts'
import { type Guard, unlimited } from '../signers/signing.ts'
import { openSpending } from '../signers/spending.ts'
import { batcher, deployData, deployer, type Packed } from './batcher.ts'
import { multicall } from './multicall.ts'
import { findRefusal, type Unsigned } from './policy.ts'

const network = networks.find(({ id }) => id === 'BASE_MAINNET')
assert(network?.family === 'EVM')
const token = (network.assets[0]?.address.toLowerCase() ?? '') as Hex
const foreign: Hex = '0x00000000000000000000000000000000deadbeef'
const self: Hex = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8'
const tokenAbi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function transfer(address to, uint256 value)',
  'function approve(address spender, uint256 value)',
])
const multicallAbi = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable',
  'function aggregate3Value((address target, bool allowFailure, uint256 value, bytes callData)[] calls) payable',
])

const fees = { nonce: 7, maxFeePerGas: 1_000_000n, maxPriorityFeePerGas: 1_000n }
const refusalOf = (changes: Partial<Unsigned> & Pick<Unsigned, 'to' | 'data'>, guard: Guard = unlimited) =>
  findRefusal(network, self, { gas: 21_000n, ...fees, ...changes }, guard)

const hex = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`)
const below = (bits: bigint) => fc.bigInt({ min: 0n, max: 2n ** bits - 1n })
const anyAuthorized = fc
  .record(
    {
      authorization: fc.record(
        {
          ...{ from: hex(20), to: fc.constantFrom(self, foreign), nonce: hex(32) },
          ...{ value: below(96n), validAfter: below(40n), validBefore: below(40n) },
        },
        { noNullPrototype: true },
      ),
      s: below(255n),
      checkoutId: fc.constantFrom(null, 'ch_0001m7f6egj0pj5kgr03g9syb7xk'),
    },
    { noNullPrototype: true },
  )
  .map(({ authorization, s, checkoutId }) => {
    const signature: Hex = `0x${'5a'.repeat(32)}${s.toString(16).padStart(64, '0')}1b`
    const transfer = { asset: token, authorization, signature, isContract: false }
    return { transfer, checkoutId, sends: 0 } as unknown as Authorized
  })
/** Everything that a lane ever asks for, with the gas that it asks for. */
const anyForm: fc.Arbitrary<Pick<Unsigned, 'to' | 'data' | 'gas'>> = fc.oneof(
  fc
    .tuple(fc.array(anyAuthorized, { minLength: 1, maxLength: 6 }), fc.boolean())
    .map(([payments, hasBatcher]) => toCall(hasBatcher, payments)),
  fc.constant({ to: self, data: '0x' as const, gas: 21_000n }),
  fc.constant({ to: deployer, data: deployData, gas: 200_000n }),
)

/** The tokens that a call reaches, read by another project's decoder; throws if it is not one of our forms. */
function reach(to: string, data: Hex): readonly string[] {
  if (to === token) {
    assert.equal(decodeFunctionData({ abi: tokenAbi, data }).functionName, 'transferWithAuthorization')
    return [to]
  }
  if (to === multicall) {
    const call = decodeFunctionData({ abi: multicallAbi, data })
    assert(call.functionName === 'aggregate3')
    return call.args[0].flatMap(({ target, callData }) => reach(target.toLowerCase(), callData))
  }
  assert.equal(to, batcher)
  const tokens: string[] = []
  // As Batcher.sol reads it: a limit, then groups of payments.
  for (let at = 2 + 8; at < data.length; ) {
    tokens.push(`0x${data.slice(at, at + 40)}`)
    at += 84 + 308 * Number.parseInt(data.slice(at + 80, at + 84), 16)
    assert(at <= data.length)
  }
  return tokens
}

test('everything that a lane asks for is signed, at the gas it asks for', () => {
  fc.assert(fc.property(anyForm, (form) => assert.equal(refusalOf(form), null)))
})

test('of 5,000 changed calls none is signed that reaches anything but transferWithAuthorization of a known token', () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), by: fc.integer({ min: 1, max: 255 }) }),
    fc.record({ kind: fc.constantFrom('cut' as const, 'insert' as const), at: fc.nat(), by: fc.nat(255) }),
    fc.record({ kind: fc.constant('append' as const), at: fc.nat(), by: fc.integer({ min: 1, max: 64 }) }),
  )
  const targets = fc.option(fc.constantFrom(token, batcher, multicall, deployer, foreign, self), { freq: 4 })
  let refused = 0
  fc.assert(
    fc.property(
      anyForm,
      fc.array(change, { minLength: 1, maxLength: 3 }),
      targets,
      (form, changes, target) => {
        let bytes = Buffer.from(form.data.slice(2), 'hex')
        for (const { kind, at, by } of changes) {
          const place = at % (bytes.length + 1)
          if (kind === 'flip') {
            if (place < bytes.length) bytes[place] = (bytes[place] ?? 0) ^ by
          } else if (kind === 'append') bytes = Buffer.concat([bytes, Buffer.alloc(by)])
          else {
            const inserted = kind === 'insert' ? Buffer.of(by) : Buffer.alloc(0)
            bytes = Buffer.concat([
              bytes.subarray(0, place),
              inserted,
              bytes.subarray(place + (kind === 'cut' ? 1 : 0)),
            ])
          }
        }
        const changed = { ...form, to: target ?? form.to, data: `0x${bytes.toString('hex')}` as Hex }
        const isFill = changed.to === self && changed.data === '0x'
        if (refusalOf(changed) !== null || isFill) return void refused++
        if (changed.to === deployer) return void assert.equal(changed.data, deployData)
        const reached = reach(changed.to, changed.data)
        assert(reached.length > 0 && reached.every((one) => one === token))
      },
    ),
    { numRuns: 5_000 },
  )
  // The others changed what a payer has signed, which the token refuses.
  assert(refused > 2_500, `${refused}`)
})

const one: Packed & { checkoutId: null } = {
  asset: token,
  authorization: {
    from: foreign,
    to: self,
    value: 5n,
    validAfter: 0n,
    validBefore: 9n,
    nonce: `0x${'11'.repeat(32)}`,
  },
  signature: `0x${'5a'.repeat(32)}${'2b'.repeat(32)}1b`,
  marker: null,
  checkoutId: null,
}
const carry = (hasBatcher: boolean, ...payments: readonly Partial<typeof one>[]) =>
  toCall(
    hasBatcher,
    payments.map((changes) => {
      const { asset, authorization, signature } = { ...one, ...changes }
      const transfer = { asset, authorization, signature, isContract: false }
      return { transfer, checkoutId: null } as unknown as Authorized
    }),
  )

test('other targets, other functions, foreign tokens, calls with value and stray bytes are refused by name', () => {
  const [alone, batch, aggregate] = [carry(true, one), carry(true, one, one), carry(false, one, one)]
  const calls = [{ target: token, allowFailure: true, callData: alone.data }] as const
  const withValue = encodeFunctionData({
    abi: multicallAbi,
    functionName: 'aggregate3Value',
    args: [calls.map((call) => ({ ...call, value: 1n }))],
  })
  const inner = (target: Hex, callData: Hex, allowFailure = true) =>
    encodeFunctionData({
      abi: multicallAbi,
      functionName: 'aggregate3',
      args: [[...calls, { target, allowFailure, callData }]],
    })
  const transfer = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [foreign, 1n] })
  const approve = encodeFunctionData({ abi: tokenAbi, functionName: 'approve', args: [foreign, 1n] })
  const refused: readonly [string, Hex, RegExp][] = [
    [foreign, alone.data, /must not call 0x0+deadbeef/],
    [foreign, '0x', /must not call/],
    [self, '0x00', /must not call/],
    [token, '0x', /only be called with transferWithAuthorization/],
    [token, transfer, /only be called with transferWithAuthorization/],
    [token, approve, /only be called with transferWithAuthorization/],
    [token, `${alone.data}00`, /only be called with transferWithAuthorization/],
    [multicall, withValue, /a batch may only carry/],
    [multicall, inner(token, approve), /a batch may only carry/],
    [multicall, inner(token, `${alone.data}00`), /a batch may only carry/],
    [multicall, inner(token, alone.data, false), /a batch may only carry/],
    [multicall, inner(foreign, alone.data), /deadbeef is not a known token/],
    [multicall, inner(multicall, aggregate.data), /a batch may only carry/],
    [multicall, `${aggregate.data}${'00'.repeat(32)}`, /a batch may only carry/],
    [
      multicall,
      encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [[]] }),
      /may only carry/,
    ],
    [batcher, '0x', /a batch may only carry/],
    [batcher, '0x000186a0', /a batch may only carry/],
    [batcher, `${batch.data}00`, /a batch may only carry/],
    [batcher, `0xffffffff${batch.data.slice(10)}`, /a batch may only carry/],
    [batcher, carry(true, one, { asset: foreign }).data, /deadbeef is not a known token/],
    [deployer, '0x', /only deploy the batcher/],
    [deployer, `${deployData}00`, /only deploy the batcher/],
  ]
  for (const [to, data, reason] of refused)
    assert.match(refusalOf({ to, data }) ?? '', reason, `${to} ${data}`)
})

test('gas, fee and tip are limited by what the form needs', () => {
  const batch = carry(true, one, one)
  const fill = { to: self, data: '0x' } as const
  assert.match(refusalOf({ ...batch, gas: 320_001n }) ?? '', /gas 320001 is above the limit of 320000/)
  assert.match(refusalOf({ ...carry(true, one), gas: 200_001n }) ?? '', /above the limit of 200000/)
  assert.match(refusalOf({ ...fill, gas: 21_001n }) ?? '', /above the limit of 21000/)
  const cap = network.maxFeePerGas
  assert.match(refusalOf({ ...batch, maxFeePerGas: cap + 1n }) ?? '', /fee \d+ is above the limit/)
  assert.equal(refusalOf({ ...fill, maxFeePerGas: 10n * cap }), null)
  assert.match(refusalOf({ ...fill, maxFeePerGas: 10n * cap + 1n }) ?? '', /fee \d+ is above/)
  assert.match(
    refusalOf({ ...batch, maxPriorityFeePerGas: 1_000_001n }) ?? '',
    /tip 1000001 is above the fee/,
  )
  for (const nonce of [-1, 0.5, Number.NaN]) assert.match(refusalOf({ ...fill, nonce }) ?? '', /not a nonce/)
  const low = { ...unlimited, limits: { ...unlimited.limits, gasPerTransaction: 200_000n } }
  assert.match(refusalOf(batch, low) ?? '', /above the limit of 200000/)
})

test('a key signs away no more than its limits per transaction and per day, and replacements count once', () => {
  let now = new Date('2026-11-16T23:59:00Z')
  const fill = { to: self, data: '0x', maxFeePerGas: 1_000_000n } as const
  const cost = 21_000n * 1_000_000n
  const limits = { ...unlimited.limits, etherPerTransaction: 2n * cost, etherPerDay: 3n * cost }
  const guard = { limits, spending: openSpending(() => now, null) }
  assert.match(refusalOf({ ...fill, maxFeePerGas: 2_000_001n }, guard) ?? '', /one transaction may cost/)
  for (const nonce of [1, 2, 2, 3, 1]) assert.equal(refusalOf({ ...fill, nonce }, guard), null)
  assert.match(refusalOf({ ...fill, nonce: 4 }, guard) ?? '', /today's limit of \d+ is used up/)
  assert.match(refusalOf({ ...fill, nonce: 3, maxFeePerGas: 1_000_001n }, guard) ?? '', /used up/)
  assert.equal(refusalOf({ ...fill, nonce: 3 }, guard), null, 'what was signed before may be signed again')
  now = new Date('2026-11-17T00:00:00Z')
  assert.equal(refusalOf({ ...fill, nonce: 4 }, guard), null)
})
