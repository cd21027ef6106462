/** Bytes as JSON-RPC writes them. Hex that is compared is always lower case. */
export type Hex = `0x${string}`

/** A transaction's hash as people type or paste it; null if it is not one. */
export function parseHash(text: string): Hex | null {
  const hash = text.trim().toLowerCase()
  return /^0x[0-9a-f]{64}$/.test(hash) ? (hash as Hex) : null
}
