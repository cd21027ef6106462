import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { openCount, runs } from '../../test/support/full.ts'
import { readPaymentHeader } from './payload.ts'

/** With FULL=1, each test reads a million headers. */
const size = runs(10_000, 1_000_000)

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((raw) => `0x${Buffer.from(raw).toString('hex')}`)
const integer = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }).map(String)
const nasty = fc.oneof(
  fc.constantFrom(
    null,
    true,
    2,
    '',
    '\0',
    'eip155:1\0',
    '0x',
    '-1',
    '01',
    '1e3',
    '0x10',
    ' 1',
    '1.0',
    '\ud800',
    '９',
  ),
  fc.constantFrom(`${2n ** 256n}`, '9'.repeat(80), [], {}, ['1'], { toString: 1 }),
  fc.string({ unit: 'binary', maxLength: 80 }),
)

/** A payment in which each field is right, or about once in thirty times anything else. */
const field = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: nasty })
const sent = fc.record({
  x402Version: field(fc.constant(2)),
  accepted: field(
    fc.record({
      scheme: field(fc.constant('exact')),
      network: field(fc.constant('eip155:8453')),
      asset: field(hex(20)),
    }),
  ),
  payload: field(
    fc.record({
      signature: field(fc.integer({ min: 1, max: 100 }).chain(hex)),
      authorization: field(
        fc.record({
          from: field(hex(20)),
          to: field(hex(20)),
          nonce: field(hex(32)),
          value: field(integer),
          validAfter: field(integer),
          validBefore: field(integer),
        }),
      ),
    }),
  ),
  extensions: field(fc.constant(undefined)),
})

const addressForm = /^0x[0-9a-f]{40}$/

test('a payment that is read has every field in canonical form and equal to what was sent; anything else is unreadable', (t) => {
  const count = openCount('headers')
  fc.assert(
    fc.property(sent, (value) => {
      count.add()
      const result = readPaymentHeader(Buffer.from(JSON.stringify(value)).toString('base64'))
      if (result.kind !== 'present') return assert.equal(result.kind, 'unreadable')
      count.add('read')
      assert(result.payment.family === 'EVM')
      const { scheme, network, asset, authorization, signature } = result.payment
      for (const name of [scheme, network]) assert.match(name, /^[\x21-\x7e]{1,64}$/)
      for (const address of [asset, authorization.from, authorization.to]) assert.match(address, addressForm)
      assert.match(authorization.nonce, /^0x[0-9a-f]{64}$/)
      assert.match(signature, /^0x([0-9a-f]{2})+$/)
      const { payload } = value as { payload: { authorization: Record<string, string> } }
      for (const name of ['value', 'validAfter', 'validBefore'] as const) {
        assert(authorization[name] >= 0n && authorization[name] < 2n ** 256n)
        assert.equal(String(authorization[name]), payload.authorization[name])
      }
    }),
    size,
  )
  count.say(t)
  const { headers = 0, read = 0 } = count.counts
  assert(read > headers / 4, `only ${read} of ${headers} could be read`)
})

test('any header is either read or refused without throwing, and only canonical base64 is read', (t) => {
  const count = openCount('headers')
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String(), fc.json()), (header) => {
      count.add()
      const result = readPaymentHeader(header)
      if (result.kind === 'present') assert.equal(Buffer.from(header, 'base64').toString('base64'), header)
    }),
    size,
  )
  count.say(t)
})
