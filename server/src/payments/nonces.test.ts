import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { sha256 } from 'viem/utils'
import { isBound, isBoundTo, makeBoundNonce } from './nonces.ts'

const random12 = fc.uint8Array({ minLength: 12, maxLength: 12 })
const nonce = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(toHex)

test('a bound nonce is the prefix, the random bytes, and half of SHA-256(checkout id, random bytes)', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), random12, (checkoutId, random) => {
      const hash = sha256(Buffer.concat([Buffer.from(checkoutId, 'utf8'), random]))
      assert.equal(
        makeBoundNonce(checkoutId, random),
        `0x66746867${toHex(random).slice(2)}${hash.slice(2, 34)}`,
      )
    }),
  )
})

test('the nonce for fixed inputs does not change, so that the page and the SDK can be tested against it', () => {
  const random = Uint8Array.from({ length: 12 }, (_, i) => i)
  assert.equal(
    makeBoundNonce('ch_00000000000000000000000000', random),
    '0x66746867000102030405060708090a0bf8dcc7174eb4f833695dfa514c7e2501',
  )
})

test('a bound nonce is bound to its checkout and no other, in lower-case and upper-case hex', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), random12, (checkoutId, other, random) => {
      fc.pre(checkoutId !== other)
      const bound = makeBoundNonce(checkoutId, random)
      assert(isBound(bound))
      assert(isBoundTo(bound, checkoutId))
      assert(isBoundTo(`0x${bound.slice(2).toUpperCase()}`, checkoutId))
      assert(!isBoundTo(bound, other))
    }),
  )
})

test('a bound nonce with any bit flipped is not bound to its checkout', () => {
  fc.assert(
    fc.property(random12, fc.nat({ max: 255 }), (random, bit) => {
      const bytes = Buffer.from(makeBoundNonce('ch_1', random).slice(2), 'hex')
      bytes.writeUInt8(bytes.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
      assert(!isBoundTo(toHex(bytes), 'ch_1'))
      assert.equal(isBound(toHex(bytes)), bit >= 32)
    }),
  )
})

test('different random bytes never give a checkout the same nonce', () => {
  fc.assert(
    fc.property(random12, random12, (a, b) => {
      fc.pre(Buffer.compare(a, b) !== 0)
      assert.notEqual(makeBoundNonce('ch_1', a), makeBoundNonce('ch_1', b))
    }),
  )
})

test('a random nonce is not bound', () => {
  fc.assert(fc.property(nonce, fc.string(), (random, id) => !isBound(random) && !isBoundTo(random, id)))
})

test('a text that only starts like a bound nonce is bound to no checkout', () => {
  const bound = makeBoundNonce('ch_1', new Uint8Array(12))
  for (const text of ['0x66746867', `${bound}00`, `${bound}\n`, bound.slice(0, -1), `${bound.slice(0, -1)}g`])
    assert(!isBoundTo(text as `0x${string}`, 'ch_1'), text)
})

test('a bound nonce requires exactly 12 random bytes', () => {
  for (const length of [0, 11, 13, 32]) assert.throws(() => makeBoundNonce('ch_1', new Uint8Array(length)))
})

test('the server, the SDK and the page bind nonces with the same prefix', () => {
  const prefixOf = (file: string) => {
    const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8')
    return [...text.matchAll(/`(0x[0-9a-f]{8})\$/g)].map(([, prefix]) => prefix)
  }
  const { 0: prefix } = /^0x.{8}/.exec(makeBoundNonce('ch_1', new Uint8Array(12))) ?? []
  assert.equal(Buffer.from(prefix?.slice(2) ?? '', 'hex').toString('ascii'), 'fthg')
  for (const file of ['sdk/src/agent/evm.ts', 'page/src/wallets/authorization.ts'])
    assert.deepEqual(prefixOf(file), [prefix], file)
})

function toHex(bytes: Uint8Array): `0x${string}` {
  return `0x${Buffer.from(bytes).toString('hex')}`
}
