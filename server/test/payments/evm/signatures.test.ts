/**
 * Signatures in every form and with every kind of damage: a payment is accepted if and only if the token accepts its
 * signature, as it is or rewritten the way the token wants it. FULL=1 runs a million against the token's rules, and
 * 20,000 against the token on a chain. A failure prints its seed.
 */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { type Address, decodeFunctionResult, encodeFunctionData, type Hex } from 'viem'
import { openChain as reach, readHasCode } from '../../../src/chains/evm/chain.ts'
import { openSimulate, type SignedTransfer } from '../../../src/chains/evm/simulate.ts'
import { parseNode } from '../../../src/config/parse.ts'
import { type EvmVerifier, verifyPayment } from '../../../src/payments/evm/verify.ts'
import type { EvmPayment } from '../../../src/payments/payload.ts'
import type { Offer } from '../../../src/payments/rail.ts'
import { multicallAbi, multicallAddress } from '../../support/chain/evm.ts'
import {
  encodeTransfer,
  newNonce,
  newPayer,
  type Signed,
  signAuthorization,
} from '../../support/chain/evm-payment.ts'
import { openChain } from '../../support/chain/open.ts'
import { openCount, runs } from '../../support/full.ts'
import { payTo } from '../../support/shop.ts'

/** Nothing is known of the payers. */
const known = { inFlightUnits: 0n, isUsed: false, headNumber: null }

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const nobody: Address = '0x0000000000000000000000000000000000000001'
const units = 1_000_000n
const now = new Date()

const chain = await openChain()
const { token, domain, client, network } = chain
const engine = reach(network, [parseNode(chain.url)], () => now)
const offer = { network: network.caip2, asset: token, payTo, amount: `${units}` } as Offer

/** The presented authorization and a signature, made for it or for one that differs in one field. */
type Base = {
  readonly presented: Signed['authorization']
  readonly signature: Hex
  readonly isGenuine: boolean
}

const validBefore = BigInt(Math.floor(now.getTime() / 1_000) + 200)
const lies: readonly Partial<Parameters<typeof signAuthorization>[0]>[] = [
  { value: units - 1n },
  { value: units + 1n },
  { to: nobody },
  { validAfter: 1n },
  { validBefore: validBefore - 1n },
  { nonce: newNonce() },
  { key: newPayer().key },
  { type: 'ReceiveWithAuthorization' },
  { domain: { ...domain, name: `${domain.name} ` } },
  { domain: { ...domain, version: '1' } },
  { domain: { ...domain, chainId: domain.chainId + 1 } },
  { domain: { ...domain, verifyingContract: nobody } },
]
const payers = Array.from({ length: 3 * lies.length }, newPayer)
await chain.mint(
  payers.map(({ address }) => address),
  units,
)
const bases: Base[] = await Promise.all(
  payers.map(async ({ key, address }, i) => {
    const truth = { key, from: address, domain, to: payTo, value: units, validBefore, nonce: newNonce() }
    // Two of every six lie, so that there are always honest ones next to them.
    const lie = i % 6 < 2 ? lies[2 * Math.floor(i / 6) + (i % 6)] : undefined
    const { authorization: presented, signature } = await signAuthorization(truth)
    if (!lie) return { presented, signature, isGenuine: true }
    return {
      presented,
      signature: (await signAuthorization({ ...truth, ...lie })).signature,
      isGenuine: false,
    }
  }),
)

type Parts = { readonly r: bigint; readonly s: bigint; readonly yParity: number }

const forms: readonly ((parts: Parts) => Buffer)[] = [
  ({ r, s, yParity }) => join(r, s, 27 + yParity),
  ({ r, s, yParity }) => join(r, s, yParity),
  ({ r, s, yParity }) => join(r, order - s, 28 - yParity),
  ({ r, s, yParity }) => join(r, order - s, 1 - yParity),
  ({ r, s, yParity }) => join(r, s + (BigInt(yParity) << 255n)),
  // All forms from here on are wrong, each in its own way.
  ({ r, s, yParity }) => join(r, s, 28 - yParity),
  ({ r, s, yParity }) => join(r, order - s, 27 + yParity),
  ({ r, s, yParity }) => join(r, s + (BigInt(1 - yParity) << 255n)),
  ({ r, s, yParity }) => join(r, s, 29 + yParity),
  ({ r, s, yParity }) => join(r, s, 2 + yParity),
  ({ r, s, yParity }) => join(r, s, 37 + yParity),
  ({ r, s, yParity }) => join(s, r, 27 + yParity),
  ({ s, yParity }) => join(0n, s, 27 + yParity),
  ({ r, yParity }) => join(r, 0n, 27 + yParity),
  ({ r, yParity }) => join(r, order, 27 + yParity),
  ({ s, yParity }) => join(order, s, 27 + yParity),
  ({ s, yParity }) => join(1n + (s % 40n), s, 27 + yParity),
  ({ r, yParity }) => join(r, order >> 1n, 27 + yParity),
]

const at = fc.noBias(fc.nat({ max: 64 }))
const damage: fc.Arbitrary<(bytes: Buffer) => Buffer> = fc.oneof(
  fc.tuple(at, fc.integer({ min: 1, max: 255 })).map(([i, mask]) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes)
    changed[i] = (changed[i] ?? 0) ^ mask
    return changed
  }),
  fc.tuple(at, fc.nat({ max: 7 })).map(([i, bit]) => (bytes: Buffer) => {
    const changed = Buffer.from(bytes)
    changed[i] = (changed[i] ?? 0) ^ (1 << bit)
    return changed
  }),
  fc.tuple(at, fc.uint8Array({ maxLength: 3 })).map(
    ([i, added]) =>
      (bytes: Buffer) =>
        Buffer.concat([bytes.subarray(0, i), added, bytes.subarray(i)]),
  ),
  fc.tuple(at, fc.integer({ min: 1, max: 3 })).map(
    ([i, count]) =>
      (bytes: Buffer) =>
        Buffer.concat([bytes.subarray(0, i), bytes.subarray(i + count)]),
  ),
  at.map((end) => (bytes: Buffer) => bytes.subarray(0, Math.max(1, end))),
  fc.uint8Array({ minLength: 65, maxLength: 65 }).map((random) => () => Buffer.from(random)),
)
type Case = { readonly base: Base; readonly signature: Hex }
/**
 * The same damage to two of every three forms, each from another payer, so that a single call can ask the token about
 * all of them. The third stays intact in every draw: by chance alone, a small run could have few good ones.
 */
const cases: fc.Arbitrary<Case[]> = fc
  .record({
    first: fc.noBias(fc.nat({ max: bases.length - 1 })),
    damages: fc.array(damage, { minLength: 1, maxLength: 2 }),
    whole: fc.noBias(fc.nat({ max: 2 })),
  })
  .map(({ first, damages, whole }) =>
    forms.map((form, i) => {
      const base = bases[(first + i) % bases.length] as Base
      const bytes = form(parse(base.signature))
      const isWhole = i % 3 === whole
      return {
        base,
        signature: hex(isWhole ? bytes : damages.reduce((spoilt, spoil) => spoil(spoilt), bytes)),
      }
    }),
  )

test('a signature is accepted and shown to the token if and only if the token’s rules accept its normal form', async (t) => {
  const genuine = new Map(
    bases.flatMap(({ presented, signature, isGenuine }) =>
      isGenuine ? [[presented.nonce, signature] as const] : [],
    ),
  )
  let asked: SignedTransfer[] = []
  /** Stands in for the token, for payers without code: it accepts the normal form of a genuine signature, nothing else. */
  const verifier: EvmVerifier = {
    chain: engine,
    hasCode: async () => false,
    simulate: async (transfer) => {
      asked.push(transfer)
      const isGood = genuine.get(transfer.authorization.nonce) === transfer.signature
      return { isGood, isNonceUsed: false, balance: units, revertReason: '', blockNumber: 1 }
    },
  }
  const count = openCount('signatures')
  await fc.assert(
    fc.asyncProperty(cases, async (all) => {
      for (const { base, signature } of all) {
        asked = []
        const expected = base.isGenuine && normalForm(signature) === base.signature
        const verified = await verifyPayment(
          verifier,
          { checkoutId: 'ch_x', offers: [offer] },
          paymentOf(base, signature),
          known,
          now,
        )
        assert.equal(verified.isValid, expected, signature)
        assert.equal(asked.length, expected ? 1 : 0, `asked about ${signature}`)
        count.add()
        if (expected) count.add('accepted')
      }
    }),
    runsOf(10_000, 1_000_000),
  )
  report(t, count)
})

test('a signature is accepted if and only if the token on the chain accepts it as it is or in its normal form', async (t) => {
  const verifier: EvmVerifier = {
    chain: engine,
    hasCode: async (address) => (await readHasCode(engine, [address]))[0] ?? false,
    simulate: openSimulate(engine, nobody),
  }
  const count = openCount('signatures')
  await fc.assert(
    fc.asyncProperty(cases, async (all) => {
      const [given, rewritten, verified] = await Promise.all([
        askToken(all.map(({ base, signature }) => ({ authorization: base.presented, signature }))),
        askToken(
          all.map(({ base, signature }) => ({
            authorization: base.presented,
            signature: normalForm(signature) ?? signature,
          })),
        ),
        Promise.all(
          all.map(({ base, signature }) =>
            verifyPayment(
              verifier,
              { checkoutId: 'ch_x', offers: [offer] },
              paymentOf(base, signature),
              known,
              now,
            ),
          ),
        ),
      ])
      for (const [i, { isValid }] of verified.entries()) {
        assert.equal(isValid, given[i] || rewritten[i], all[i]?.signature)
        count.add()
        if (isValid) count.add('accepted')
      }
    }),
    runsOf(1_000, 20_000),
  )
  report(t, count)
})

/** Whether the token accepts each of them. */
async function askToken(all: readonly Signed[]): Promise<boolean[]> {
  const calls = all.map((signed) => ({ target: token, allowFailure: true, callData: encodeTransfer(signed) }))
  const data = encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] })
  const answer = await client.call({ to: multicallAddress, data })
  return decodeFunctionResult({
    abi: multicallAbi,
    functionName: 'aggregate3',
    data: answer.data ?? '0x',
  }).map(({ success }) => success)
}

function runsOf(some: number, all: number) {
  return runs(Math.ceil(some / forms.length), Math.ceil(all / forms.length))
}

function report(t: TestContext, count: ReturnType<typeof openCount>): void {
  count.say(t)
  const { signatures = 0, accepted = 0 } = count.counts
  // Otherwise the run tried little more than noise.
  assert(accepted > signatures / 25 && accepted < signatures / 2)
}

function paymentOf({ presented }: Base, signature: Hex): EvmPayment {
  const { from, to, value, validAfter, validBefore: before, nonce } = presented
  const lower = (text: string) => text.toLowerCase() as Hex
  return {
    family: 'EVM',
    scheme: 'exact',
    network: network.caip2,
    asset: lower(token),
    payer: lower(from),
    nonce,
    identifier: null,
    signature,
    hasContractForm: false,
    authorization: {
      from: lower(from),
      to: lower(to),
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(before),
      nonce,
    },
  }
}

/** A signature as the token wants it, by EIP-2, EIP-2098 and common practice; null if it has no such form. */
function normalForm(signature: Hex): Hex | null {
  const bytes = Buffer.from(signature.slice(2), 'hex')
  if (bytes.length !== 64 && bytes.length !== 65) return null
  const r = BigInt(hex(bytes.subarray(0, 32)))
  let s = BigInt(hex(bytes.subarray(32, 64)))
  let v = [27, 28, 0, 1].indexOf(bytes[64] ?? 0) % 2
  if (bytes.length === 64) [s, v] = [s % 2n ** 255n, s >> 255n === 1n ? 1 : 0]
  if (v < 0 || r === 0n || r >= order || s === 0n || s >= order) return null
  return hex(s > order / 2n ? join(r, order - s, 28 - v) : join(r, s, 27 + v))
}

function parse(signature: Hex): Parts {
  return {
    r: BigInt(signature.slice(0, 66)),
    s: BigInt(`0x${signature.slice(66, 130)}`),
    yParity: Number.parseInt(signature.slice(130), 16) - 27,
  }
}

function join(r: bigint, s: bigint, v?: number): Buffer {
  const words = [r, s].map((word) => word.toString(16).padStart(64, '0')).join('')
  return Buffer.from(v === undefined ? words : words + v.toString(16).padStart(2, '0'), 'hex')
}

function hex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
