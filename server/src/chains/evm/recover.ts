import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { secp256k1 as noble } from '@noble/curves/secp256k1'
import { keccak_256 } from '@noble/hashes/sha3'
import type * as Secp256k1 from 'secp256k1'
import type { Hex } from 'viem'

/**
 * What we need from a secp256k1 library. `compact` is r and s, 32 bytes each; both functions throw on invalid input.
 */
type Curve = {
  /** The uncompressed public key, 65 bytes. */
  readonly recover: (digest: Uint8Array, compact: Uint8Array, yParity: number) => Uint8Array
  /** RFC 6979, low s. */
  readonly sign: (
    digest: Uint8Array,
    privateKey: Uint8Array,
  ) => { readonly compact: Uint8Array; readonly yParity: number }
}

/** The curve in plain JavaScript: works on every machine, about twenty times slower. */
export const nobleCurve: Curve = {
  recover: (digest, compact, yParity) =>
    noble.Signature.fromCompact(compact).addRecoveryBit(yParity).recoverPublicKey(digest).toRawBytes(false),
  sign: (digest, privateKey) => {
    const signature = noble.sign(digest, privateKey, { lowS: true })
    return { compact: signature.toCompactRawBytes(), yParity: signature.recovery }
  },
}

/** libsecp256k1, if its native build loads. */
export const nativeCurve: Curve | undefined = loadNative()

/**
 * Whether libsecp256k1 checks signatures. Without it everything works, but slowly: `serve` logs that when it starts.
 */
export const isNative: boolean = nativeCurve !== undefined

const fastestCurve = nativeCurve ?? nobleCurve

const order = Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex')
const halfOrder = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex')
const zero = Buffer.alloc(32)

/**
 * Who signed the digest, and the signature in the one form that tokens accept: 65 bytes, low s, v of 27 or 28. Wallets
 * also write v as 0 or 1, high s, or 64 bytes (EIP-2098); all of these are accepted. Null for anything else; never
 * throws.
 */
export function recoverSigner(
  digest: Uint8Array,
  signature: Uint8Array,
  curve: Curve = fastestCurve,
): { readonly address: Hex; readonly normalised: Hex } | null {
  const parsed = digest.length === 32 ? parseSignature(signature) : null
  if (parsed === null) return null
  const { compact, yParity } = parsed
  let publicKey: Uint8Array
  try {
    publicKey = curve.recover(digest, compact, yParity)
  } catch {
    // r is not the x coordinate of a point on the curve, or the key would be the point at infinity.
    return null
  }
  const hash = Buffer.from(keccak_256(publicKey.subarray(1)))
  return {
    address: `0x${hash.toString('hex', 12)}`,
    normalised: `0x${compact.toString('hex')}${yParity === 0 ? '1b' : '1c'}`,
  }
}

/** Signs a digest. If the key is not valid, throws without revealing it. */
export function signDigest(
  digest: Uint8Array,
  privateKey: Uint8Array,
  curve: Curve = fastestCurve,
): { readonly r: Hex; readonly s: Hex; readonly yParity: 0 | 1 } {
  assert.equal(digest.length, 32)
  const { compact, yParity } = sign(digest, privateKey, curve)
  // 2 and 3 mean an r above the curve's order, which nobody has ever seen.
  assert(yParity === 0 || yParity === 1)
  const text = Buffer.from(compact).toString('hex')
  return { r: `0x${text.slice(0, 64)}`, s: `0x${text.slice(64)}`, yParity }
}

function sign(digest: Uint8Array, privateKey: Uint8Array, curve: Curve): ReturnType<Curve['sign']> {
  try {
    return curve.sign(digest, privateKey)
  } catch {
    // Without the cause, because a library's message may contain the key.
    throw new Error('The private key is not valid.')
  }
}

/** r and s in range, with s low, copied from the caller's bytes; null if it is not a signature. */
function parseSignature(signature: Uint8Array): { compact: Buffer; yParity: number } | null {
  if (signature.length !== 65 && signature.length !== 64) return null
  const compact = Buffer.from(signature.subarray(0, 64))
  const s = compact.subarray(32)
  let yParity: number
  if (signature.length === 65) {
    const v = signature[64] ?? 0
    yParity = v >= 27 ? v - 27 : v
    if (yParity > 1) return null
  } else {
    // EIP-2098 keeps the parity in the highest bit of s.
    const first = s.readUInt8(0)
    yParity = first >> 7
    s.writeUInt8(first & 0x7f, 0)
  }
  if (!isScalar(compact.subarray(0, 32)) || !isScalar(s)) return null
  if (Buffer.compare(s, halfOrder) > 0) {
    negate(s)
    yParity = 1 - yParity
  }
  return { compact, yParity }
}

function isScalar(bytes: Buffer): boolean {
  return Buffer.compare(bytes, order) < 0 && Buffer.compare(bytes, zero) > 0
}

function negate(scalar: Buffer): void {
  const negative = BigInt(`0x${order.toString('hex')}`) - BigInt(`0x${scalar.toString('hex')}`)
  scalar.write(negative.toString(16).padStart(64, '0'), 'hex')
}

/** The package's own entry point silently falls back to `elliptic`, so we load its binding by name. */
function loadNative(): Curve | undefined {
  let native: typeof Secp256k1
  try {
    native = createRequire(import.meta.url)('secp256k1/bindings.js')
    // Blinds the arithmetic on private keys against timing side channels.
    native.contextRandomize(randomBytes(32))
  } catch {
    return undefined
  }
  return {
    recover: (digest, compact, yParity) => native.ecdsaRecover(compact, yParity, digest, false),
    sign: (digest, privateKey) => {
      const { signature, recid } = native.ecdsaSign(digest, privateKey)
      return { compact: signature, yParity: recid }
    },
  }
}
