import type { ParsedAddress } from '../address.ts'

const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** 32 bytes in base58. Each address has exactly one spelling, so equal texts are equal addresses. */
export function parseSolanaAddress(text: string): ParsedAddress {
  const wrong = { refusal: 'A Solana address is 32 bytes in base58.', fault: 'form' } as const
  // 32 bytes are 32 to 44 characters; the limit also bounds the arithmetic.
  if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(text)) return wrong
  let value = 0n
  for (const character of text) value = value * 58n + BigInt(alphabet.indexOf(character))
  const zeroBytes = /^1*/.exec(text)?.[0].length ?? 0
  const valueBytes = value === 0n ? 0 : Math.ceil(value.toString(16).length / 2)
  if (zeroBytes + valueBytes !== 32) return wrong
  return value === 0n
    ? { refusal: 'This is the system program. Money sent to it is lost.', fault: 'nobody' }
    : { address: text }
}
