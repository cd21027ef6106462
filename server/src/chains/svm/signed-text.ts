import { createPublicKey, verify } from 'node:crypto'
import { getBase58Encoder } from '@solana/kit'

/** Whether a wallet signed this text with `signMessage`: the bytes of the text by ed25519, the signature in base58. */
export function isTextSigned(address: string, text: string, signature: string): boolean {
  // 64 bytes are 64 to 88 characters; the limit also bounds the arithmetic.
  if (!/^[1-9A-HJ-NP-Za-km-z]{64,88}$/.test(signature)) return false
  const bytes = Buffer.from(getBase58Encoder().encode(signature))
  const x = Buffer.from(getBase58Encoder().encode(address)).toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return bytes.length === 64 && verify(null, Buffer.from(text), key, bytes)
}
