import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Hex, parseErc6492Signature, serializeErc6492Signature } from 'viem'
import { openCount, runs } from '../../../test/support/full.ts'
import { readSignature } from './signature.ts'

/** With FULL=1, each test reads a million signatures. */
const size = runs(10_000, 1_000_000)
const bytesMax = 4_096
const magic = '6492'.repeat(16)

const hex = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString('hex')}`
const bytes = (minLength: number, maxLength: number): fc.Arbitrary<Hex> =>
  fc.uint8Array({ minLength, maxLength, size: 'max' }).map(hex)
/** About as often short as long, with the lengths around whole words. */
const some = fc.oneof(bytes(0, 4), bytes(28, 36), bytes(60, 70), bytes(0, 700))
const wrapped = fc
  .record({ address: bytes(20, 20), data: some, signature: some })
  .map((parts) => ({ ...parts, text: serializeErc6492Signature(parts) }))
const isWrapped = (text: string) => text.endsWith(magic)
const refusalOf = (text: unknown): string => {
  const read = readSignature(text)
  return 'refusal' in read ? read.refusal : assert.fail(`${text} was read`)
}

test('a wrapper around a signature is taken off, whatever its factory and calldata are; what is inside stays as it is', (t) => {
  const count = openCount('signatures')
  fc.assert(
    fc.property(wrapped, fc.boolean(), ({ signature, text }, isUpper) => {
      count.add()
      const read = readSignature(isUpper ? `0x${text.slice(2).toUpperCase()}` : text)
      if (signature === '0x') return assert('refusal' in read && /empty/.test(read.refusal))
      count.add('read')
      assert.deepEqual(read, { signature, hasContractForm: true })
    }),
    size,
  )
  count.say(t)
})

test('a signature without a wrapper is read as it is, and only one that is longer than a key’s has a contract’s form', () => {
  fc.assert(
    fc.property(bytes(1, 200), (signature) => {
      fc.pre(!isWrapped(signature))
      assert.deepEqual(readSignature(signature), {
        signature,
        hasContractForm: signature.length > 2 + 2 * 65,
      })
    }),
    size,
  )
})

test('a wrapper is taken off once: what is wrapped twice, or ends with the magic bytes inside, is refused', () => {
  fc.assert(
    fc.property(wrapped, wrapped, some, (outer, inner, signature) => {
      for (const nested of [inner.text, `${signature}${magic}` as Hex]) {
        const text = serializeErc6492Signature({ ...outer, signature: nested })
        if (text.length > 2 + 2 * bytesMax) continue
        assert.match(refusalOf(text), /more than once/)
      }
    }),
    size,
  )
})

/** A change at one place of the wrapper: a byte, a word, bytes that are cut out or put in. */
const damage: fc.Arbitrary<(text: string) => string> = fc
  .record({
    at: fc.noBias(fc.nat({ max: 700 })),
    kind: fc.constantFrom('byte', 'word', 'cut', 'put'),
    value: fc.oneof(
      fc.noBias(fc.nat({ max: 700 })),
      fc.constantFrom(0, 32, 64, 96, 128, 160, 2 ** 31, 2 ** 32 - 1),
    ),
    isHuge: fc.boolean(),
  })
  .map(({ at, kind, value, isHuge }) => (text: string) => {
    const body = text.slice(2, -magic.length)
    const place = kind === 'byte' ? at % (body.length / 2) : 32 * (at % Math.ceil(body.length / 64))
    const put = { byte: 2, word: 64, cut: 0, put: 64 }[kind]
    const taken = { byte: 2, word: 64, cut: 64, put: 0 }[kind]
    const word = (isHuge ? 2n ** 256n - 1n - BigInt(value) : BigInt(value)).toString(16).padStart(64, '0')
    const changed = body.slice(0, 2 * place) + word.slice(64 - put) + body.slice(2 * place + taken)
    return `0x${changed}${magic}`
  })

/** What viem reads, if writing that again gives the same bytes; null if it does not, or reads nothing. */
function readByViem(text: Hex): Hex | null {
  try {
    const { address, data, signature } = parseErc6492Signature(text)
    if (address === undefined || data === undefined) return null
    return serializeErc6492Signature({ address, data, signature }) === text ? signature : null
  } catch {
    return null
  }
}

test('a damaged wrapper is read if and only if its bytes are the ones that abi.encode writes, and never throws', (t) => {
  const count = openCount('wrappers')
  fc.assert(
    fc.property(wrapped, fc.array(damage, { minLength: 1, maxLength: 3 }), ({ text }, damages) => {
      const damaged = damages.reduce((spoilt, spoil) => spoil(spoilt), text as string) as Hex
      const inside = readByViem(damaged)
      const read = readSignature(damaged)
      count.add()
      if (inside === null || inside === '0x' || isWrapped(inside)) return assert('refusal' in read, damaged)
      count.add('read')
      assert.deepEqual(read, { signature: inside, hasContractForm: true })
    }),
    size,
  )
  count.say(t)
  const { wrappers = 0, read = 0 } = count.counts
  assert(read > wrappers / 100 && read < wrappers / 2, `${read} of ${wrappers} were read`)
})

test('anything else is refused: no text, no hex, nothing, half a byte, or more bytes than the limit', () => {
  for (const text of [
    undefined,
    null,
    1,
    {},
    ['0x12'],
    '',
    '0x',
    '12',
    '0x1',
    '0X12',
    '0xgg',
    '0x12 ',
    ' 0x12',
    '0x12\n',
  ])
    assert.match(refusalOf(text), /must be hexadecimal/)
  const longest: Hex = `0x${'ab'.repeat(bytesMax)}`
  assert.deepEqual(readSignature(longest), { signature: longest, hasContractForm: true })
  assert.match(refusalOf(`${longest}ab`), /at most 4096 bytes/)
})

test('the limit counts the wrapper: of two wrappers around one signature, the one that is too long is refused', () => {
  const address: Hex = `0x${'11'.repeat(20)}`
  const signature: Hex = `0x${'22'.repeat(65)}`
  // Three words of head, two of lengths, three of the signature, and the magic bytes.
  const room = bytesMax - 9 * 32
  const within = serializeErc6492Signature({ address, data: `0x${'33'.repeat(room)}`, signature })
  assert.equal(within.length, 2 + 2 * bytesMax)
  assert.deepEqual(readSignature(within), { signature, hasContractForm: true })
  const beyond = serializeErc6492Signature({ address, data: `0x${'33'.repeat(room + 1)}`, signature })
  assert.match(refusalOf(beyond), /at most 4096 bytes/)
})

test('a compact signature whose s is the magic bytes is no wrapper, and refused like any other that is none', () => {
  assert.match(refusalOf(`0x${'11'.repeat(32)}${magic}`), /as ERC-6492 requires/)
})
