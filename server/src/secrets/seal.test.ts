import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import type { SecretsKey } from './key-file.ts'
import { SealError, seal, unseal } from './seal.ts'

const makeKey = (id: string): SecretsKey => ({ id, bytes: randomBytes(32) })
const one = makeKey('one')
const two = makeKey('two')
const text = fc.string({ unit: 'grapheme', maxLength: 200 })

function refuses(what: RegExp, work: () => unknown): void {
  assert.throws(work, (error) => error instanceof SealError && what.test(error.message))
}

test('what is sealed opens to the same text, with any of several keys, and never looks the same twice', () => {
  fc.assert(
    fc.property(text, text, (place, secret) => {
      const sealed = seal(one, place, secret)
      assert.equal(unseal([two, one], place, sealed), secret)
      assert.equal(sealed.keyId, 'one')
      assert.notEqual(seal(one, place, secret).sealed, sealed.sealed)
    }),
  )
})

test('another key, another place and any changed, missing or added byte are refused, each with its reason', () => {
  fc.assert(
    fc.property(text, fc.nat(), fc.integer({ min: 1, max: 255 }), (secret, at, mask) => {
      const sealed = seal(one, 'endpoint a', secret)
      refuses(/^the secret of endpoint a is sealed with key one, which/, () =>
        unseal([two], 'endpoint a', sealed),
      )
      const impostor = { ...two, id: 'one' }
      for (const [keys, place] of [
        [[impostor], 'endpoint a'],
        [[one], 'endpoint b'],
        [[one], 'endpoint a '],
      ] as const)
        refuses(/cannot be opened with key one: it was altered, moved/, () => unseal(keys, place, sealed))
      const bytes = Buffer.from(sealed.sealed, 'base64')
      const flipped = Buffer.from(bytes)
      flipped[at % bytes.length] = (flipped[at % bytes.length] ?? 0) ^ mask
      const cut = bytes.subarray(0, at % bytes.length)
      const grown = Buffer.concat([bytes, Buffer.from([mask])])
      for (const changed of [flipped, cut, grown])
        refuses(/cannot be opened/, () =>
          unseal([one], 'endpoint a', { keyId: 'one', sealed: changed.toString('base64') }),
        )
    }),
  )
})
