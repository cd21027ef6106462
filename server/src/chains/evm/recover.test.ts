import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Hex, recoverAddress } from 'viem'
import { privateKeyToAddress, sign } from 'viem/accounts'
import { isNative, nativeCurve, nobleCurve, recoverSigner, signDigest } from './recover.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const curves = { native: nativeCurve ?? nobleCurve, noble: nobleCurve }
const word = fc.uint8Array({ minLength: 32, maxLength: 32 })
const key = fc.bigInt({ min: 1n, max: order - 1n })

type Parts = { readonly r: bigint; readonly s: bigint; readonly yParity: number }

/** Every way to write or corrupt a signature. viem decides what each form means, not this table. */
const forms: Record<string, (parts: Parts) => Uint8Array> = {
  'v 27 or 28': ({ r, s, yParity }) => bytes(r, s, 27 + yParity),
  'v 0 or 1': ({ r, s, yParity }) => bytes(r, s, yParity),
  'high s': ({ r, s, yParity }) => bytes(r, order - s, 28 - yParity),
  'high s, v 0 or 1': ({ r, s, yParity }) => bytes(r, order - s, 1 - yParity),
  'high s, parity not flipped': ({ r, s, yParity }) => bytes(r, order - s, 27 + yParity),
  'wrong parity': ({ r, s, yParity }) => bytes(r, s, 28 - yParity),
  'EIP-2098': ({ r, s, yParity }) => bytes(r, s + (BigInt(yParity) << 255n)),
  'EIP-2098, wrong parity': ({ r, s, yParity }) => bytes(r, s + (BigInt(1 - yParity) << 255n)),
  'v 2': ({ r, s }) => bytes(r, s, 2),
  'v 26': ({ r, s }) => bytes(r, s, 26),
  'v 29': ({ r, s }) => bytes(r, s, 29),
  'v 255': ({ r, s }) => bytes(r, s, 255),
  'v of EIP-155': ({ r, s, yParity }) => bytes(r, s, 37 + yParity),
  'zero r': ({ s, yParity }) => bytes(0n, s, 27 + yParity),
  'zero s': ({ r, yParity }) => bytes(r, 0n, 27 + yParity),
  'zero s, EIP-2098': ({ r, yParity }) => bytes(r, BigInt(yParity) << 255n),
  'r of the order': ({ s, yParity }) => bytes(order, s, 27 + yParity),
  'r above the order': ({ s, yParity }) => bytes(order + 1n, s, 27 + yParity),
  's of the order': ({ r, yParity }) => bytes(r, order, 27 + yParity),
  's above the order': ({ r, yParity }) => bytes(r, order + 1n, 27 + yParity),
  'all ones': () => new Uint8Array(65).fill(255),
  's of one': ({ r, yParity }) => bytes(r, 1n, 27 + yParity),
  's of the order less one': ({ r, yParity }) => bytes(r, order - 1n, 27 + yParity),
  's of half the order': ({ r, yParity }) => bytes(r, order >> 1n, 27 + yParity),
  's just above half the order': ({ r, yParity }) => bytes(r, (order >> 1n) + 1n, 27 + yParity),
  // With an r this small, recovery ids 2 and 3 also name points, but no token's ecrecover accepts them.
  'small r': ({ s, yParity }) => bytes(1n + (s % 40n), s, 27 + yParity),
  'small r, v 29 or 30': ({ s, yParity }) => bytes(1n + (s % 40n), s, 29 + yParity),
  'small r, v 2 or 3': ({ s, yParity }) => bytes(1n + (s % 40n), s, 2 + yParity),
  'another r': ({ r, s, yParity }) => bytes(r ^ 1n, s, 27 + yParity),
  'r and s exchanged': ({ r, s, yParity }) => bytes(s, r, 27 + yParity),
  empty: () => new Uint8Array(0),
  'one byte short of EIP-2098': ({ r, s }) => bytes(r, s).subarray(0, 63),
  'one byte long': ({ r, s, yParity }) => Buffer.concat([bytes(r, s, 27 + yParity), Buffer.alloc(1)]),
  'with a wrapper around it': ({ r, s, yParity }) =>
    Buffer.concat([Buffer.alloc(96), bytes(r, s, 27 + yParity)]),
}

test('libsecp256k1 loads on the platforms that its build is shipped for', () => {
  const shipped = ['linux-x64', 'darwin-arm64', 'win32-x64']
  if (shipped.includes(`${process.platform}-${process.arch}`)) assert(isNative)
})

for (const [name, spoil] of Object.entries(forms)) {
  test(`both libraries agree with viem: ${name}`, async () => {
    await fc.assert(
      fc.asyncProperty(word, key, async (digest, secret) => {
        await checkAgainstViem(digest, spoil(parse(signDigest(digest, toBytes(secret)))))
      }),
      { numRuns: 40 },
    )
  })
}

test('both libraries agree with viem: random bytes', async () => {
  const signature = fc.oneof(
    fc.uint8Array({ minLength: 65, maxLength: 65 }),
    fc.uint8Array({ minLength: 64, maxLength: 64 }),
    fc.uint8Array({ maxLength: 130 }),
    fc
      .tuple(fc.uint8Array({ minLength: 64, maxLength: 64 }), fc.constantFrom(0, 1, 27, 28))
      .map(([rs, v]) => Uint8Array.from([...rs, v])),
  )
  await fc.assert(fc.asyncProperty(word, signature, checkAgainstViem), { numRuns: 400 })
})

test('every valid form of a signature recovers the signer and is normalised to the same bytes', () => {
  const honest = ['v 27 or 28', 'v 0 or 1', 'high s', 'high s, v 0 or 1', 'EIP-2098']
  fc.assert(
    fc.property(word, key, (digest, secret) => {
      const parts = parse(signDigest(digest, toBytes(secret)))
      const normalised = toHex(bytes(parts.r, parts.s, 27 + parts.yParity))
      const address = recoverSigner(digest, bytes(parts.r, parts.s, 27 + parts.yParity))?.address
      assert(address)
      for (const form of honest)
        assert.deepEqual(recoverSigner(digest, forms[form]?.(parts) ?? new Uint8Array()), {
          address,
          normalised,
        })
    }),
    { numRuns: 2000 },
  )
})

test('a different digest recovers a different signer, and the input bytes are not modified', () => {
  fc.assert(
    fc.property(word, word, key, (digest, other, secret) => {
      fc.pre(Buffer.compare(digest, other) !== 0)
      const parts = parse(signDigest(digest, toBytes(secret)))
      const signature = bytes(parts.r, order - parts.s, 1 - parts.yParity)
      const before = [toHex(digest), toHex(signature)]
      assert.notEqual(recoverSigner(digest, signature)?.address, recoverSigner(other, signature)?.address)
      assert.deepEqual([toHex(digest), toHex(signature)], before)
    }),
  )
})

test('a digest that is not 32 bytes is refused', () => {
  const { r, s, yParity } = parse(signDigest(new Uint8Array(32), toBytes(1n)))
  for (const curve of Object.values(curves))
    for (const length of [0, 31, 33, 64])
      assert.equal(recoverSigner(new Uint8Array(length), bytes(r, s, 27 + yParity), curve), null)
  assert.throws(() => signDigest(new Uint8Array(31), toBytes(1n)))
})

test('both libraries produce the same signatures as viem, byte for byte', async () => {
  await fc.assert(
    fc.asyncProperty(word, key, async (digest, secret) => {
      const { r, s, yParity } = await sign({ hash: toHex(digest), privateKey: toHex(toBytes(secret)) })
      for (const curve of Object.values(curves))
        assert.deepEqual(signDigest(digest, toBytes(secret), curve), { r, s, yParity })
      const { address } = recoverSigner(digest, bytes(BigInt(r), BigInt(s), yParity)) ?? {}
      assert.equal(address, privateKeyToAddress(toHex(toBytes(secret))).toLowerCase())
    }),
    { numRuns: 100 },
  )
})

test('an invalid key is refused without appearing in the error', () => {
  const wrong = [
    new Uint8Array(32),
    toBytes(order),
    toBytes(order + 77n),
    toBytes(5n).subarray(1),
    new Uint8Array(0),
  ]
  for (const curve of Object.values(curves))
    for (const privateKey of wrong)
      assert.throws(
        () => signDigest(new Uint8Array(32), privateKey, curve),
        (error: Error) => error.message === 'The private key is not valid.' && error.cause === undefined,
      )
})

test('without the native build, plain JavaScript gives the same results', () => {
  const { r, s, yParity } = signDigest(new Uint8Array(32).fill(9), toBytes(42n))
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({
      resolve(name, context, next) {
        if (name.startsWith('secp256k1')) throw new Error('not built')
        return next(name, context)
      },
    })
    const { isNative, recoverSigner, signDigest } = await import(${JSON.stringify(new URL('recover.ts', import.meta.url))})
    const digest = new Uint8Array(32).fill(9)
    const signature = Buffer.from('${toHex(bytes(BigInt(r), BigInt(s), yParity)).slice(2)}', 'hex')
    const signed = signDigest(digest, Buffer.from('2a'.padStart(64, '0'), 'hex'))
    process.stdout.write(JSON.stringify({ isNative, recovered: recoverSigner(digest, signature), signed }))`
  const answer = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  assert.deepEqual(JSON.parse(answer), {
    isNative: false,
    recovered: recoverSigner(new Uint8Array(32).fill(9), bytes(BigInt(r), BigInt(s), yParity)),
    signed: { r, s, yParity },
  })
})

/**
 * Compares both libraries with viem, which recovers once from the signature as it was given, parsed independently, and
 * once from our normal form of it.
 */
async function checkAgainstViem(digest: Uint8Array, signature: Uint8Array): Promise<void> {
  const results = Object.values(curves).map((curve) => recoverSigner(digest, signature, curve))
  assert.deepEqual(results[0], results[1])
  const expected = await recoverWithViem(digest, signature)
  const [result] = results
  assert.equal(result?.address ?? null, expected)
  if (!result) return
  const { normalised } = result
  assert.match(normalised, /^0x[0-9a-f]{128}(1b|1c)$/)
  const s = BigInt(`0x${normalised.slice(66, 130)}`)
  assert(s > 0n && s <= order >> 1n)
  assert.equal((await recoverAddress({ hash: toHex(digest), signature: normalised })).toLowerCase(), expected)
}

async function recoverWithViem(digest: Uint8Array, signature: Uint8Array): Promise<string | null> {
  const text = toHex(signature).slice(2)
  let [r, s, v] = [text.slice(0, 64), text.slice(64, 128), text.slice(128)].map((part) =>
    BigInt(`0x${part || '0'}`),
  )
  if (r === undefined || s === undefined || v === undefined) return null
  if (signature.length === 64) [s, v] = [s % 2n ** 255n, s >> 255n]
  else if (signature.length !== 65) return null
  if (![0n, 1n, 27n, 28n].includes(v)) return null
  if (r === 0n || r >= order || s === 0n || s >= order) return null
  const given = toHex(bytes(r, s, v === 0n || v === 27n ? 27 : 28))
  try {
    return (await recoverAddress({ hash: toHex(digest), signature: given })).toLowerCase()
  } catch {
    return null
  }
}

function parse({ r, s, yParity }: { r: Hex; s: Hex; yParity: number }): Parts {
  return { r: BigInt(r), s: BigInt(s), yParity }
}

function bytes(r: bigint, s: bigint, v?: number): Uint8Array {
  return Buffer.concat([toBytes(r), toBytes(s), v === undefined ? Buffer.alloc(0) : Buffer.from([v])])
}

function toBytes(value: bigint): Uint8Array {
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex')
}

function toHex(value: Uint8Array): Hex {
  return `0x${Buffer.from(value).toString('hex')}`
}
