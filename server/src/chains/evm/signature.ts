import type { Hex } from '../hex.ts'

/**
 * All signatures of payments, refunds and proofs of wallets are read here, so that a signature has the same form
 * wherever it is judged, stored, compared and sent.
 *
 * Smart wallets may wrap a signature by ERC-6492, and some do so even if they are deployed:
 *
 *   abi.encode(address factory, bytes calldata, bytes signature), followed by 32 magic bytes
 *
 * The wrapper is removed once and dropped. The sender chose it and no wallet signed it, so its factory is never called,
 * and neither factory nor calldata are stored or shown to a node. The signature inside is judged as if it had come
 * without a wrapper.
 */
export type ReadSignature = {
  /** In lower case, without a wrapper. */
  readonly signature: Hex
  /** Whether it came in a form that only smart wallets use: wrapped, or longer than what a key signs. */
  readonly hasContractForm: boolean
}

/**
 * The longest signature that is read, its wrapper included, so that it fits into a payment's header. A wrapped
 * signature by a passkey has about 1,100 bytes, and 60 owners of a Safe sign with 3,900.
 */
const signatureBytesMax = 4_096
const keySignatureBytesMax = 65
const wordBytes = 32
const addressPaddingBytes = 12
/** The factory's address, and where the calldata and the signature begin. */
const headBytes = 3 * wordBytes
const magic = Buffer.from('6492'.repeat(wordBytes / 2), 'hex')

/** The signature, or what is wrong with it, as the end of a sentence: "must be …". */
export function readSignature(presented: unknown): ReadSignature | { readonly refusal: string } {
  if (typeof presented !== 'string' || presented.length > 2 + 2 * signatureBytesMax)
    return { refusal: `must be hexadecimal, with at most ${signatureBytesMax} bytes` }
  if (!/^0x(?:[0-9a-fA-F]{2})+$/.test(presented)) return { refusal: 'must be hexadecimal, beginning with 0x' }
  const bytes = Buffer.from(presented.slice(2), 'hex')
  if (!isWrapped(bytes))
    return { signature: toHex(bytes), hasContractForm: bytes.length > keySignatureBytesMax }
  const inner = unwrap(bytes.subarray(0, -magic.length))
  if (inner === null)
    return { refusal: 'must be encoded as ERC-6492 requires if it ends with its magic bytes' }
  if (inner.length === 0) return { refusal: 'must not be empty inside its ERC-6492 wrapper' }
  if (isWrapped(inner)) return { refusal: 'must not be wrapped more than once by ERC-6492' }
  return { signature: toHex(inner), hasContractForm: true }
}

function isWrapped(bytes: Buffer): boolean {
  return bytes.subarray(-magic.length).equals(magic)
}

/**
 * The signature in a wrapper; null if a single byte differs from what `abi.encode` writes. viem's decoder accepts
 * overlapping offsets, padding that is not zero, and extra bytes, and throws on anything else.
 */
function unwrap(wrapper: Buffer): Buffer | null {
  const calldata = readBytes(wrapper, headBytes)
  const signature = calldata && readBytes(wrapper, calldata.end)
  const isCanonical =
    signature?.end === wrapper.length &&
    isZero(wrapper.subarray(0, addressPaddingBytes)) &&
    readLength(wrapper, wordBytes) === headBytes &&
    readLength(wrapper, 2 * wordBytes) === calldata?.end
  return isCanonical ? signature.bytes : null
}

/** A length, as many bytes, and zeros up to the next whole word. */
function readBytes(from: Buffer, at: number): { readonly bytes: Buffer; readonly end: number } | null {
  const length = readLength(from, at)
  if (length === null) return null
  const start = at + wordBytes
  const end = start + Math.ceil(length / wordBytes) * wordBytes
  if (end > from.length || !isZero(from.subarray(start + length, end))) return null
  return { bytes: from.subarray(start, start + length), end }
}

/** A word that holds a length or an offset; null if it is missing, or too large to be either. */
function readLength(from: Buffer, at: number): number | null {
  const last = at + wordBytes - 4
  if (at + wordBytes > from.length || !isZero(from.subarray(at, last))) return null
  return from.readUInt32BE(last)
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0)
}

function toHex(bytes: Buffer): Hex {
  return `0x${bytes.toString('hex')}`
}
